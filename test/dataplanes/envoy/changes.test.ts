/** Changes that once ended in a wrong state, each as small as it goes. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { EnvoyDataPlane } from "../../../src/dataplanes/envoy/envoy-data-plane.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { authority, issue } from "../support/certificates.ts";
import { createEnvoy } from "../support/envoy-plane.ts";
import { ask, Backends } from "../support/http-peers.ts";
import {
  backend,
  certificate,
  forwardTo,
  gateway,
  host,
  listener,
  port,
  rule,
  secure,
} from "../support/plan-builder.ts";
import { PlaneUnderTest } from "../support/plane-under-test.ts";

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

  test("what Envoy counts does not grow with tenants, their certificates or their backends", async () => {
    let envoy: EnvoyDataPlane | undefined;
    const tenants = async (from: number, to: number): Promise<readonly PlanItem[]> => {
      const items: PlanItem[] = [];
      for (let at = from; at < to; at++) {
        const pair = certificate(`c-${at}`, issue(ca, [`t${at}.example`]));
        const own = secure(`t-${at}`, https, `t${at}.example`, [pair]);
        items.push(pair, own, host(own, own.hostname, [rule({ action: forwardTo(`b-${at}`) })]));
        items.push(backend(`b-${at}`, [await backends.echo(`b-${at}`)]));
      }
      return items;
    };
    const useAndCount = async (tenantsNow: number): Promise<number> => {
      for (let at = 0; at < tenantsNow; at++) {
        const name = `t${at}.example`;
        expect(
          (await ask(plane.at(443), { host: name, tls: { ca: ca.cert, servername: name } })).status,
        ).toBe(200);
      }
      const stats = (await envoy?.process(gateway)?.admin("GET", "/stats")) ?? "";
      expect(stats).toContain("http.https.downstream_rq_total");
      return stats.split("\n").length;
    };
    const plane = await PlaneUnderTest.start(
      (options) => {
        envoy = createEnvoy(options);
        return envoy;
      },
      [https, ...(await tenants(0, 3))],
    );
    open.push(plane);
    const few = await useAndCount(3);
    await plane.apply({ upserts: await tenants(3, 13), removes: [] });
    expect((await useAndCount(13)) - few).toBeLessThan(10);
  });
});
