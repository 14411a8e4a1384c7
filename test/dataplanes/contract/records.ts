/** Every data plane tells the same of a request, and traces it the same way. */
import { expect, test } from "vitest";
import type { RequestRecord } from "../../../src/dataplanes/request-record.ts";
import { jsonLine } from "../../../src/dataplanes/telemetry/log-lines.ts";
import { PlanNames } from "../../../src/dataplanes/telemetry/plan-names.ts";
import { attributesOf, named } from "../../../src/dataplanes/telemetry/request-fields.ts";
import type { SamplingSettings } from "../../../src/dataplanes/telemetry/telemetry-settings.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { ask } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const SAMPLED = `00-${TRACE}-${SPAN}-01`;
const NOT_SAMPLED = `00-${TRACE}-${SPAN}-00`;
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])$/;

export function describeRecords(create: CreateDataPlane): void {
  const stage = setStage(create);

  async function plan(): Promise<readonly PlanItem[]> {
    const quiet = { kind: "HTTPRoute", namespace: "shop", name: "quiet", rule: 0, match: 0 } as const;
    const toQuiet = rule({ path: { type: "prefix", value: "/quiet" }, action: forwardTo("to") });
    const rewritten = rule({
      path: { type: "prefix", value: "/old" },
      action: forwardTo("to", { filters: { rewrite: { path: { type: "full", value: "/new" } } } }),
    });
    return [
      http,
      shop,
      host(shop, "shop.example", [
        { ...toQuiet, origin: quiet },
        rewritten,
        rule({ action: forwardTo("to") }),
      ]),
      backend("to", [await stage.backends.echo("a")]),
    ];
  }

  async function serve(tracing?: SamplingSettings): Promise<PlaneUnderTest> {
    return await stage.start(await plan(), tracing === undefined ? {} : { tracing });
  }

  async function traced(
    plane: PlaneUnderTest,
    path: string,
    traceparent?: string,
  ): Promise<{ readonly told: RegExpExecArray; readonly record: RequestRecord; readonly state: unknown }> {
    const headers = traceparent === undefined ? {} : { traceparent, tracestate: "vendor=1" };
    const { seen } = await ask(plane.at(80), { host: "shop.example", path, headers });
    const told = TRACEPARENT.exec(String(seen.headers["traceparent"]));
    if (told === null) throw new Error(`no trace context: ${seen.headers["traceparent"]}`);
    const record = await plane.record((each) => each.path === path);
    return { told, record, state: seen.headers["tracestate"] };
  }

  test("a record tells who was asked for what, who served, and what came of it", async () => {
    const plane = await serve();
    const id = "7b674932-635d-4ceb-b907-12674f8c7267";
    const headers = { "user-agent": "test/1", authorization: "Bearer secret", "x-request-id": id };
    const path = "/old?token=secret";
    await ask(plane.at(80), { host: "shop.example", path, method: "POST", headers, body: "12345" });
    const record = await plane.record((each) => each.path === "/old");
    expect(record).toMatchObject({
      client: "127.0.0.1",
      protocol: "HTTP/1.1",
      scheme: "http",
      method: "POST",
      authority: "shop.example",
      userAgent: "test/1",
      gateway: "infra/edge",
      port: 80,
      listener: "shop",
      hostname: "shop.example",
      route: { kind: "HTTPRoute", rule: 0 },
      backend: "to",
      endpoint: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      status: 200,
      bytesReceived: 5,
    });
    expect(record.durationMs).toBeGreaterThan(0);
    expect(Math.abs(record.time - Date.now())).toBeLessThan(60_000);
    expect(record.trace).toBeUndefined();
    expect(JSON.stringify(record)).not.toContain("secret");
    const names = new PlanNames();
    names.apply({ upserts: await plan(), removes: [] });
    const line = JSON.parse(jsonLine(named(record, names))) as Record<string, unknown>;
    expect(line).toMatchObject({
      listenerKind: "ListenerSet",
      listenerNamespace: "shop",
      listenerName: "own",
      listenerSection: "shop",
      serviceNamespace: "apps",
      serviceName: "to",
      servicePort: 80,
    });
    expect(Object.fromEntries(attributesOf(named(record, names)))).toMatchObject({
      "http.request.method": "POST",
      "http.response.status_code": 200,
      "url.path": "/old",
      "mergeway.listener.name": "own",
    });
  });

  test("what a client says cannot end a line or be taken for control characters", async () => {
    const plane = await serve();
    const agent = 'a" \\ \u009b31m \u00e2\u0080\u00ae {"status":200}';
    await ask(plane.at(80), { host: "shop.example", path: "/hostile", headers: { "user-agent": agent } });
    const record = await plane.record((each) => each.path === "/hostile");
    const line = jsonLine(named(record, new PlanNames()));
    expect(line).toMatch(/^[\x20-\x7e\xa0-\xff]*$/);
    const { userAgent } = JSON.parse(line) as { readonly userAgent: string };
    // The lone byte makes it no UTF-8, so that it is read as Latin-1.
    expect(userAgent).toBe(agent);
  });

  test("UTF-8 of a client is read as such", async () => {
    const plane = await serve();
    const headers = { "user-agent": Buffer.from("größe \u202e").toString("latin1") };
    await ask(plane.at(80), { host: "shop.example", path: "/utf8", headers });
    const line = jsonLine(named(await plane.record((each) => each.path === "/utf8"), new PlanNames()));
    expect(line).toContain('"userAgent":"größe \\u202e"');
  });

  test("a request that no rule matches has a reason, and neither route nor backend", async () => {
    const plane = await stage.start([http, shop, host(shop, "shop.example", [])]);
    await ask(plane.at(80), { host: "shop.example", path: "/nothing" });
    const record = await plane.record((each) => each.path === "/nothing");
    expect(record).toMatchObject({ status: 404, reason: "NoRoute", listener: "shop" });
    expect(record.route).toBeUndefined();
    expect(record.endpoint).toBeUndefined();
  });

  test("without tracing, what a client says of its trace reaches the backend", async () => {
    const plane = await serve();
    const headers = { traceparent: SAMPLED, tracestate: "vendor=1" };
    const { seen } = await ask(plane.at(80), { host: "shop.example", headers });
    expect(seen.headers).toMatchObject(headers);
  });

  test("each request begins a trace, whatever its client says of one", async () => {
    const plane = await serve({ samplingPercentage: 100 });
    const first = await traced(plane, "/first", SAMPLED);
    const second = await traced(plane, "/second", NOT_SAMPLED);
    for (const { told, record, state } of [first, second]) {
      expect(told[1]).not.toBe(TRACE);
      expect(told[3]).toBe("01");
      // Envoy sends an empty one.
      expect(state ?? "").toBe("");
      expect(record.trace).toEqual({ traceId: told[1], spanId: told[2], isSampled: true });
    }
    expect(first.told[1]).not.toBe(second.told[1]);
  });

  test.each([0, 1])(
    "nothing is sampled at 0 percent, whatever a client says, if %i proxies are trusted",
    async (trustedHops) => {
      const plane = await stage.start(await plan(), { tracing: { samplingPercentage: 0 }, trustedHops });
      // The digit is where Envoy writes that a client has asked for a trace.
      const id = "7b674932-635d-bceb-b907-12674f8c7267";
      const forcing = { "x-client-trace-id": "mine", "x-envoy-force-trace": "1", "x-request-id": id };
      const headers = { ...forcing, traceparent: SAMPLED };
      const { seen } = await ask(plane.at(80), { host: "shop.example", path: "/none", headers });
      expect(TRACEPARENT.exec(String(seen.headers["traceparent"]))?.[3]).toBe("00");
      expect((await plane.record((each) => each.path === "/none")).trace?.isSampled).toBe(false);
    },
  );

  test("a client's trace goes on where that is wanted, and its client may leave it out", async () => {
    const plane = await serve({ clientContext: "Continue" });
    const sampled = await traced(plane, "/in", SAMPLED);
    expect(sampled.told[1]).toBe(TRACE);
    expect(sampled.told[2]).not.toBe(SPAN);
    expect(sampled.told[3]).toBe("01");
    expect(sampled.state).toBe("vendor=1");
    expect(sampled.record.trace).toEqual({
      traceId: TRACE,
      spanId: sampled.told[2],
      parentId: SPAN,
      isSampled: true,
    });
    const left = await traced(plane, "/out", NOT_SAMPLED);
    expect(left.told[1]).toBe(TRACE);
    expect(left.told[3]).toBe("00");
    expect(left.record.trace?.isSampled).toBe(false);
  });

  test("a client whose trace goes on cannot have it sampled", async () => {
    const plane = await serve({ clientContext: "Continue", samplingPercentage: 0 });
    const { told, record } = await traced(plane, "/forced", SAMPLED);
    expect(told[3]).toBe("00");
    expect(record.trace).toMatchObject({ traceId: TRACE, isSampled: false });
  });

  test.each([
    ["a route", { kind: "HTTPRoute", namespace: "shop", name: "quiet" }, "01"],
    ["an object with listeners", { kind: "ListenerSet", namespace: "shop", name: "own" }, "00"],
  ] as const)("%s can have a percentage of its own", async (_, target, others) => {
    const plane = await serve({ overrides: [{ ...target, samplingPercentage: 0 }] });
    expect((await traced(plane, "/quiet")).told[3]).toBe("00");
    expect((await traced(plane, "/other")).told[3]).toBe(others);
  });

  test("an answer of the gateway itself is in a trace as well", async () => {
    const plane = await stage.start([http, shop, host(shop, "shop.example", [])], {
      tracing: { clientContext: "Continue" },
    });
    const headers = { traceparent: SAMPLED };
    await ask(plane.at(80), { host: "shop.example", path: "/nothing", headers });
    const { trace } = await plane.record((each) => each.path === "/nothing");
    expect(trace).toMatchObject({ traceId: TRACE, parentId: SPAN, isSampled: true });
    await ask(plane.at(80), { host: "shop.example", path: "/left", headers: { traceparent: NOT_SAMPLED } });
    expect((await plane.record((each) => each.path === "/left")).trace?.isSampled).toBe(false);
  });

  test("only sampled requests are recorded where nothing else is wanted", async () => {
    const overrides = [
      { kind: "HTTPRoute", namespace: "shop", name: "quiet", samplingPercentage: 0 },
    ] as const;
    const plane = await stage.start(await plan(), { tracing: { overrides }, onlySampled: true });
    await ask(plane.at(80), { host: "shop.example", path: "/quiet" });
    await ask(plane.at(80), { host: "shop.example", path: "/loud" });
    await plane.record((each) => each.path === "/loud");
    expect(plane.records.map(({ path }) => path)).toEqual(["/loud"]);
  });
}
