import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { registerTraffic } from "../../../src/dataplanes/traffic/exposition.ts";
import { TrafficCounts } from "../../../src/dataplanes/traffic/traffic-counts.ts";
import type { CountedRequest } from "../../../src/dataplanes/traffic/traffic-numbers.ts";
import { TrafficTally } from "../../../src/dataplanes/traffic/traffic-tally.ts";
import { backend, listener, port } from "../support/plan-builder.ts";

const http = port(80);
const one = listener("one", http, "one.example");
const two = listener("two", http, "two.example");

function request(listenerId: string, more: Partial<CountedRequest> = {}): CountedRequest {
  return { listener: listenerId, status: 200, durationMs: 3, bytesReceived: 1, bytesSent: 2, ...more };
}

function route(name: string): NonNullable<CountedRequest["route"]> {
  return { kind: "HTTPRoute", namespace: "apps", name };
}

async function samples(counts: TrafficCounts, name: string): Promise<readonly string[]> {
  const registry = new Registry();
  registerTraffic(registry, counts);
  const lines = (await registry.metrics()).split("\n");
  return lines.filter((line) => line.startsWith(`${name}{`)).map((line) => line.slice(name.length));
}

describe("counts of traffic", () => {
  test("sum up what several threads have counted", () => {
    const counts = new TrafficCounts();
    counts.apply({ upserts: [one], removes: [] });
    for (const thread of [new TrafficTally(), new TrafficTally()]) {
      thread.countRequest(request("one"));
      thread.countRequest(request("one", { status: 502 }));
      counts.add(structuredClone(thread.take()));
      expect(thread.isEmpty).toBe(true);
    }
    expect(counts.byListener()).toEqual([{ listener: "ListenerSet/one/own#one", requests: 4, errors: 2 }]);
  });

  test("have no more connections of a thread that has ended", () => {
    const counts = new TrafficCounts();
    const [first, second] = [{}, {}];
    counts.setOpen(first, 3);
    counts.setOpen(second, 4);
    counts.tally.open = 1;
    expect(counts.openConnections).toBe(8);
    counts.setOpen(first, undefined);
    expect(counts.openConnections).toBe(5);
  });

  test("put routes beyond the limit into an overflow of their own listener", async () => {
    const counts = new TrafficCounts({ routesOfListener: 2 });
    counts.apply({ upserts: [one, two], removes: [] });
    for (let index = 0; index < 10; index++)
      counts.tally.countRequest(request("one", { route: route(`r${index}`) }));
    counts.tally.countRequest(request("two", { route: route("r9") }));
    const all = await samples(counts, "mergeway_requests_total");
    expect(all).toHaveLength(4);
    expect(all.filter((line) => line.includes('route="Overflow"'))).toEqual([
      '{kind="ListenerSet",namespace="one",name="own",listener_name="one",route="Overflow",code="2xx"} 8',
    ]);
    expect(all.some((line) => line.includes('namespace="two"') && line.includes("r9"))).toBe(true);
  });

  test("let a route that is used take the place of one that is idle, and keep the sum", async () => {
    const counts = new TrafficCounts({ routesOfListener: 1, idleMs: 0 });
    counts.apply({ upserts: [one], removes: [] });
    for (const name of ["first", "second", "third"]) {
      counts.tally.countRequest(request("one", { route: route(name) }));
      await samples(counts, "mergeway_requests_total");
    }
    const all = await samples(counts, "mergeway_requests_total");
    expect(all.map((line) => /route="([^"]*)".* (\d+)/.exec(line)?.slice(1))).toEqual([
      ["Overflow", "2"],
      ["HTTPRoute/apps/third", "1"],
    ]);
  });

  test("put listeners and backends beyond the limit into an overflow of all", async () => {
    const counts = new TrafficCounts({ listeners: 1, backends: 1 });
    counts.apply({ upserts: [one, two, backend("a", []), backend("b", [])], removes: [] });
    const failed = { status: 503, reason: "NoEndpoints" };
    counts.tally.countRequest(request("one", { ...failed, backend: "a" }));
    counts.tally.countRequest(request("two", { ...failed, backend: "b" }));
    expect(await samples(counts, "mergeway_requests_total")).toContain(
      '{kind="Overflow",namespace="",name="",listener_name="",route="",code="5xx"} 1',
    );
    expect(await samples(counts, "mergeway_upstream_errors_total")).toEqual([
      '{service_namespace="apps",service_name="a",service_port="80",reason="NoEndpoints"} 1',
      '{service_namespace="",service_name="Overflow",service_port="",reason="NoEndpoints"} 1',
    ]);
  });

  test("forget what has left the plan, and take late requests of it without a name", async () => {
    const counts = new TrafficCounts();
    counts.apply({ upserts: [one], removes: [] });
    counts.tally.countRequest(request("one"));
    counts.apply({ upserts: [], removes: ["one"] });
    expect(await samples(counts, "mergeway_requests_total")).toEqual([]);
    counts.tally.countRequest(request("one"));
    const [late = ""] = await samples(counts, "mergeway_requests_total");
    expect(late).toContain('kind="Overflow"');
  });

  test("show a cumulative histogram", async () => {
    const counts = new TrafficCounts();
    counts.apply({ upserts: [one], removes: [] });
    for (const durationMs of [1, 30, 60_000]) counts.tally.countRequest(request("one", { durationMs }));
    const buckets = await samples(counts, "mergeway_request_duration_seconds_bucket");
    const value = (le: string): string | undefined =>
      buckets.find((line) => line.includes(`le="${le}"`))?.split(" ")[1];
    expect([value("0.001"), value("0.025"), value("0.05"), value("30"), value("+Inf")]).toEqual([
      "1",
      "1",
      "2",
      "2",
      "3",
    ]);
  });
});
