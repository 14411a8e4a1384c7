/**
 * Spans of requests reach a collector that speaks OTLP over gRPC, and only where they are asked
 * for.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { EnvoyDataPlane } from "../../../src/dataplanes/envoy/envoy-data-plane.ts";
import type { ClientAddressPlan } from "../../../src/plan/client-address.ts";
import { createEnvoy } from "../support/envoy-plane.ts";
import { ask, Backends } from "../support/http-peers.ts";
import { lastingPort } from "../support/lasting-port.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import { SpanCollector } from "../support/span-collector.ts";

const EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const WAIT = { timeout: 15_000, interval: 50 };

describe("tracing by Envoy", () => {
  let collector: SpanCollector;
  let backends: Backends;
  const planes: EnvoyDataPlane[] = [];
  let endpoint: string;
  let at: number;

  beforeEach(async () => {
    collector = new SpanCollector();
    endpoint = await collector.open();
    backends = new Backends();
    at = await lastingPort();
  });

  afterEach(async () => {
    for (const plane of planes.splice(0)) await plane.close({ graceMs: 0 });
    await backends.release();
    collector.close();
  });

  async function serve(sampling: number, clientAddress?: ClientAddressPlan): Promise<void> {
    const plane = createEnvoy({ bind: { address: "127.0.0.1" } }, { tracing: { endpoint, sampling } });
    planes.push(plane);
    const open = port(at, "http", clientAddress === undefined ? {} : { clientAddress });
    const one = listener("one", open, "a.example");
    plane.apply({
      upserts: [
        open,
        one,
        host(one, "a.example", [rule({ action: forwardTo("to") })]),
        backend("to", [await backends.echo("a")]),
      ],
      removes: [],
    });
    await expect
      .poll(
        () =>
          ask(at, { host: "other.example" }).then(
            ({ status }) => status,
            () => 0,
          ),
        WAIT,
      )
      .toBe(404);
  }

  test("a span of each request reaches the collector, and the backend is told its trace", async () => {
    await serve(100);
    const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`;
    const { seen } = await ask(at, { host: "a.example", headers: { traceparent } });
    expect(String(seen.headers["traceparent"])).toContain(TRACE);
    expect(seen.headers["traceparent"]).not.toBe(traceparent);
    await expect.poll(() => collector.all.includes(Buffer.from(TRACE, "hex")), WAIT).toBe(true);
    expect([...collector.paths]).toEqual([EXPORT]);
    // The Gateway is the service.
    expect(collector.all.includes("infra/edge")).toBe(true);
  });

  test.each([
    ["nobody is trusted", undefined],
    ["hops are trusted", { forwardedFor: { hops: 1 } }],
    ["networks are trusted", { forwardedFor: { networks: ["127.0.0.0/8"] } }],
  ])(
    "nothing is sampled at 0 percent, whatever header of Envoy's own a client sends, if %s",
    async (_, trust) => {
      await serve(0, trust);
      // The digit is where Envoy writes that a client has asked for a trace.
      const id = "7b674932-635d-bceb-b907-12674f8c7267";
      const headers = { "x-client-trace-id": "mine", "x-envoy-force-trace": "1", "x-request-id": id };
      for (let count = 0; count < 20; count++) await ask(at, { host: "a.example", path: "/quiet", headers });
      // An Envoy that begins later and does sample: by the time that its spans are there, those of
      // the first would be.
      at = await lastingPort();
      await serve(100);
      await ask(at, { host: "a.example", path: "/loud" });
      await expect.poll(() => collector.all.includes("/loud"), WAIT).toBe(true);
      expect(collector.all.includes("/quiet")).toBe(false);
    },
  );
});
