/** Changes that once ended in a wrong state, each as small as it goes. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PlanItem } from "../../src/plan/plan.ts";
import { authority, issue } from "./certificates.ts";
import { createEnvoy } from "./envoy-plane.ts";
import { ask, Backends } from "./http-peers.ts";
import { backend, certificate, forwardTo, host, listener, port, rule, secure } from "./plan-builder.ts";
import { PlaneUnderTest } from "./plane-under-test.ts";

const ca = authority();
const http = port(80);
const https = port(443, "tls");

describe("changes on one Envoy", () => {
  const open: PlaneUnderTest[] = [];
  let backends: Backends;

  beforeEach(() => {
    backends = new Backends();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((plane) => plane.close()));
    await backends.release();
  });
  const start = async (items: readonly PlanItem[]): Promise<PlaneUnderTest> => {
    const plane = await PlaneUnderTest.start((options) => createEnvoy(options), items);
    open.push(plane);
    return plane;
  };

  test("a backend that has served HTTP alone serves gRPC as well: its second cluster gets the endpoints that the first one has", async () => {
    const one = listener("one", http, "one.example");
    const two = listener("two", http, "two.example");
    const plane = await start([
      http,
      one,
      two,
      host(one, "one.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await backends.echo("b")]),
    ]);
    await plane.apply({
      upserts: [
        host(two, "two.example", [rule({ kind: "GRPCRoute", path: "/pkg.Shop", action: forwardTo("b") })]),
      ],
      removes: [],
    });
    // Envoy answers for no cluster while one of them waits for endpoints.
    await plane.apply({
      upserts: [
        host(two, "two.example", [rule({ action: forwardTo("c") })]),
        backend("c", [await backends.echo("c")]),
      ],
      removes: [],
    });
    expect((await ask(plane.at(80), { host: "two.example" })).seen.backend).toBe("c");
  });

  test("a name that was a listener's own and then a wildcard's is refused when both have gone", async () => {
    const pair = certificate("c", issue(ca, ["a.w.example", "*.w.example", "other.example"]));
    const exact = secure("exact", https, "a.w.example", [pair]);
    const wild = secure("wild", https, "*.w.example", [pair]);
    const other = secure("other", https, "other.example", [pair]);
    const plane = await start([
      https,
      pair,
      other,
      ...[exact, wild].flatMap((each) => [
        each,
        host(each, each.hostname, [rule({ action: forwardTo("b") })]),
      ]),
      backend("b", [await backends.echo("b")]),
    ]);
    const over = (name: string) => ({ host: name, tls: { ca: ca.cert, servername: name } });
    expect((await ask(plane.at(443), over("a.w.example"))).status).toBe(200);
    await plane.apply({ upserts: [], removes: ["exact", "host-exact-a.w.example"] });
    expect((await ask(plane.at(443), over("a.w.example"))).status).toBe(200);
    await plane.apply({ upserts: [], removes: ["wild", "host-wild-*.w.example"] });
    await expect(ask(plane.at(443), over("a.w.example"))).rejects.toThrow();
    expect((await ask(plane.at(443), over("other.example"))).status).toBe(404);
  });
});
