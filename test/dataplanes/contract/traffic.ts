/** Every data plane counts the same requests the same way, in the same words. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { registerTraffic } from "../../../src/dataplanes/traffic/exposition.ts";
import { TrafficCounts } from "../../../src/dataplanes/traffic/traffic-counts.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { authority, issue } from "../support/certificates.ts";
import { ask } from "../support/http-peers.ts";
import {
  backend,
  certificate,
  forwardTo,
  guard,
  host,
  listener,
  port,
  rule,
  secure,
} from "../support/plan-builder.ts";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const tls = port(443, "tls");
const shop = listener("shop", http, "shop.example");
const news = listener("news", http, "news.example");
const ca = authority();
const forSafe = certificate("c-safe", issue(ca, ["safe.example"]));
const safe = secure("safe", tls, "safe.example", [forSafe]);
const strictTls = port(444, "tls", {
  clientValidation: { authorities: [ca.cert], mode: "AllowValidOnly" },
});
const strict = secure("strict", strictTls, "safe.example", [forSafe]);
const SOON = { timeout: 20_000, interval: 100 };

export function describeTraffic(create: CreateDataPlane): void {
  const stage = setStage(create);

  const registryOf = (traffic: TrafficCounts): Registry => {
    const registry = new Registry();
    registerTraffic(registry, traffic);
    return registry;
  };
  /** `labels value` of one metric, sorted. */
  const samples = async (registry: Registry, name: string): Promise<readonly string[]> =>
    (await registry.metrics())
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      .map((line) => line.slice(name.length))
      .toSorted();
  const labels = (id: string, more = ""): string =>
    `{kind="ListenerSet",namespace="${id}",name="own",listener_name="${id}"${more}}`;

  const failsOnce = (): ((request: IncomingMessage, response: ServerResponse) => void) => {
    let asked = 0;
    return (request, response) => {
      request.resume();
      response.writeHead(asked++ === 0 ? 503 : 200).end("12345");
    };
  };

  const plan = async (): Promise<PlanItem[]> => [
    http,
    tls,
    shop,
    news,
    safe,
    forSafe,
    guard("nobody", { type: "addresses", allow: ["198.51.100.1/32"] }),
    host(shop, "shop.example", [
      rule({ path: "/denied", action: forwardTo("b"), guards: ["nobody"] }),
      rule({ path: "/gone", action: forwardTo("gone") }),
      rule({ path: "/closed", action: forwardTo("closed") }),
      rule({ path: "/served", action: forwardTo("b") }),
    ]),
    host(news, "news.example", [
      rule({
        path: "/again",
        action: forwardTo("again", { retry: { attempts: 2, codes: [503], backoffMs: 1 } }),
      }),
    ]),
    host(safe, "safe.example", [rule({ action: forwardTo("b") })]),
    backend("b", [
      await stage.backends.http((request, response) => {
        request.resume().on("end", () => response.end("12345"));
      }),
    ]),
    backend("gone", []),
    backend("closed", [9]),
    backend("again", [await stage.backends.http(failsOnce())]),
  ];

  test("requests are counted by listener, route and status, with bytes, retries and reasons", async () => {
    const traffic = new TrafficCounts();
    const plane = await stage.start(await plan(), { traffic });
    const registry = registryOf(traffic);
    const status = async (path: string, hostname = "shop.example"): Promise<number> =>
      (await ask(plane.at(80), { host: hostname, path })).status;
    await ask(plane.at(80), { host: "shop.example", path: "/served", method: "POST", body: "abc" });
    expect(await status("/served?secret=1")).toBe(200);
    expect(await status("/again", "news.example")).toBe(200);
    expect(await status("/denied")).toBe(403);
    expect(await status("/gone")).toBe(503);
    expect(await status("/closed")).toBe(503);
    expect(await status("/nothing")).toBe(404);
    expect(await status("/", "news.example")).toBe(404);
    expect(await status("/", "invented.example")).toBe(404);
    await expect
      .poll(() => samples(registry, "mergeway_requests_total"), SOON)
      .toEqual(
        [
          `${labels("shop", ',route="HTTPRoute/apps/route",code="2xx"')} 2`,
          `${labels("news", ',route="HTTPRoute/apps/route",code="2xx"')} 1`,
          `${labels("shop", ',route="HTTPRoute/apps/route",code="4xx"')} 1`,
          `${labels("shop", ',route="HTTPRoute/apps/route",code="5xx"')} 2`,
          `${labels("shop", ',route="",code="4xx"')} 1`,
          `${labels("news", ',route="",code="4xx"')} 1`,
          '{kind="None",namespace="",name="",listener_name="",route="",code="4xx"} 1',
        ].toSorted(),
      );
    expect(await samples(registry, "mergeway_local_replies_total")).toEqual(
      [
        `${labels("shop", ',reason="AddressDenied"')} 1`,
        `${labels("shop", ',reason="NoEndpoints"')} 1`,
        `${labels("shop", ',reason="BackendUnreachable"')} 1`,
        `${labels("shop", ',reason="NoRoute"')} 1`,
        `${labels("news", ',reason="NoRoute"')} 1`,
        '{kind="None",namespace="",name="",listener_name="",reason="NoListener"} 1',
      ].toSorted(),
    );
    expect(await samples(registry, "mergeway_upstream_errors_total")).toEqual([
      '{service_namespace="apps",service_name="closed",service_port="80",reason="BackendUnreachable"} 1',
      '{service_namespace="apps",service_name="gone",service_port="80",reason="NoEndpoints"} 1',
    ]);
    expect(await samples(registry, "mergeway_retries_total")).toContain(`${labels("news")} 1`);
    expect(await samples(registry, "mergeway_request_bytes_total")).toContain(`${labels("shop")} 3`);
    expect(await samples(registry, "mergeway_request_duration_seconds_count")).toContain(
      `${labels("shop")} 6`,
    );
    const text = await registry.metrics();
    expect(text).not.toMatch(/secret|invented|nothing/);
    expect(await samples(registry, "mergeway_uncounted_requests_total")).toEqual([" 0"]);
  });

  test("connections and TLS handshakes are counted, and why handshakes failed", async () => {
    const traffic = new TrafficCounts();
    const plane = await stage.start([...(await plan()), strictTls, strict], { traffic });
    const registry = registryOf(traffic);
    const handshake = async (servername: string, at = 443): Promise<boolean> => {
      const socket = connectTls({ host: "127.0.0.1", port: plane.at(at), ca: ca.cert, servername });
      stage.onRelease(() => socket.destroy());
      if (at !== 443) socket.on("error", () => {});
      return await once(socket, "secureConnect").then(
        () => true,
        () => false,
      );
    };
    // Envoy's port was tried before.
    const [before = ""] = await samples(registry, "mergeway_connections_total");
    expect(await handshake("safe.example")).toBe(true);
    expect(await handshake("safe.example")).toBe(true);
    expect(await handshake("other.example")).toBe(false);
    await handshake("safe.example", 444);
    const noTls = connect(plane.at(443), "127.0.0.1").on("error", () => {});
    stage.onRelease(() => noTls.destroy());
    noTls.write("GET / HTTP/1.1\r\n\r\n");
    await expect
      .poll(() => samples(registry, "mergeway_tls_handshakes_total"), SOON)
      .toEqual([
        '{result="client_certificate"} 1',
        '{result="completed"} 2',
        '{result="failed"} 1',
        '{result="unknown_name"} 1',
      ]);
    await expect.poll(() => samples(registry, "mergeway_open_connections"), SOON).toEqual([" 2"]);
    const [after = ""] = await samples(registry, "mergeway_connections_total");
    expect(Number(after) - Number(before)).toBeGreaterThanOrEqual(5);
  });
}
