/**
 * What a real Envoy refuses though our checks let it through: the plan is given to the data plane
 * as no engine would write it. The offending rule is found and contained, its author is told, and
 * nobody else notices.
 */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { EnvoyDataPlane, EnvoyOptions } from "../../../../src/dataplanes/envoy/envoy-data-plane.ts";
import type { ListenerItem, PlanItem } from "../../../../src/plan/plan.ts";
import type { Rule } from "../../../../src/plan/rule.ts";
import { authority, issue } from "../../support/certificates.ts";
import { createEnvoy } from "../../support/envoy-plane.ts";
import { ask, Backends } from "../../support/http-peers.ts";
import {
  backend,
  certificate,
  forwardTo,
  gateway,
  guard,
  host,
  listener,
  port,
  type RuleShape,
  rule,
  secure,
} from "../../support/plan-builder.ts";
import { PlaneUnderTest } from "../../support/plane-under-test.ts";

const ca = authority();
const http = port(80);
const shared = listener("shared", http, "shop.example");
/** Longer than a header's value may be for Envoy (HeaderValue.value). */
const TOO_LONG = "x".repeat(20_000);
const hostId = "host-shared-shop.example";

function of(namespace: string, shape: RuleShape, index = 0): Rule {
  const made = rule(shape);
  return { ...made, origin: { ...made.origin, namespace, name: `${namespace}-route`, rule: index } };
}

/** A rule whose action Envoy refuses. */
function badAction(namespace: string, path: string, salt = ""): Rule {
  const edits = { requestHeaders: [{ op: "set" as const, name: "x-long", value: TOO_LONG + salt }] };
  return of(namespace, { path, action: forwardTo("b", { filters: edits }) });
}

/** A rule whose match Envoy refuses. */
function badMatch(namespace: string): Rule {
  return of(namespace, { path: "/a#b", action: forwardTo("b") });
}

const good = (namespace: string, path: string): Rule => of(namespace, { path, action: forwardTo("b") });
const serving = (rules: readonly Rule[]): PlanItem => host(shared, "shop.example", rules);

describe("a NACK of Envoy", () => {
  const open: PlaneUnderTest[] = [];
  const logged: string[] = [];
  let backends: Backends;

  beforeEach(() => {
    backends = new Backends();
    logged.length = 0;
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((plane) => plane.close()));
    await backends.release();
  });

  async function start(
    items: readonly PlanItem[],
    options: Omit<EnvoyOptions, "bind"> = {},
  ): Promise<{ readonly plane: PlaneUnderTest; readonly envoy: EnvoyDataPlane }> {
    let envoy: EnvoyDataPlane | undefined;
    const plane = await PlaneUnderTest.start((given) => {
      envoy = createEnvoy(given, { onLog: (line) => logged.push(line), ...options });
      return envoy;
    }, items);
    open.push(plane);
    if (envoy === undefined) throw new Error("no Envoy was made");
    return { plane, envoy };
  }
  const common = async (): Promise<readonly PlanItem[]> => [
    http,
    shared,
    backend("b", [await backends.echo("b")]),
  ];
  const statusOf = async (plane: PlaneUnderTest, path: string, at = "shop.example"): Promise<number> =>
    (await ask(plane.at(80), { host: at, path })).status;
  const apply = (plane: PlaneUnderTest, ...upserts: readonly PlanItem[]): Promise<void> =>
    plane.apply({ upserts, removes: [] });

  test("of one tenant's action makes its rule answer 500, and other rules of the hostname stay up to date", async () => {
    const { plane } = await start([...(await common()), serving([good("one", "/one"), good("two", "/")])]);
    await apply(
      plane,
      serving([badAction("bad", "/one/deep"), good("one", "/one"), good("two", "/new"), good("two", "/")]),
    );
    expect(await statusOf(plane, "/one/deep/er")).toBe(500);
    expect(await statusOf(plane, "/one/other")).toBe(200);
    expect(await statusOf(plane, "/new")).toBe(200);
    expect(plane.report("shared")).toEqual({ id: "shared", state: "programmed" });
    expect(plane.report(hostId)).toEqual({
      id: hostId,
      state: "rejected",
      reason: "Refused",
      message: "the data plane refuses rules of the hostname",
      rules: [
        {
          kind: "HTTPRoute",
          namespace: "bad",
          name: "bad-route",
          rule: 0,
          message:
            "the data plane refuses rules[0].filters (RequestHeaderModifier): requests that the rule matches are answered with 500",
        },
      ],
    });

    await apply(plane, serving([badAction("bad", "/one/deep"), good("two", "/newer")]));
    expect(await statusOf(plane, "/newer")).toBe(200);
    expect(await statusOf(plane, "/one/deep")).toBe(500);
    expect(await statusOf(plane, "/one")).toBe(404);

    await apply(plane, serving([good("bad", "/one/deep"), good("two", "/newer")]));
    await plane.until(() => plane.report(hostId)?.state === "programmed");
    expect(await statusOf(plane, "/one/deep")).toBe(200);
  });

  test("of one tenant's match makes its rule match no request", async () => {
    const { plane } = await start([...(await common()), serving([good("one", "/one")])]);
    await apply(plane, serving([badMatch("bad"), good("one", "/new")]));
    expect(await statusOf(plane, "/new")).toBe(200);
    expect(await statusOf(plane, "/a")).toBe(404);
    expect(plane.report(hostId)?.rules?.[0]?.message).toBe(
      "the data plane refuses rules[0].matches[0].path: no request is taken by the rule",
    );
    await apply(plane, serving([good("one", "/new")]));
    await plane.until(() => plane.report(hostId)?.state === "programmed");
  });

  test("of a guarded rule's match leaves its requests to no rule that lets everybody in", async () => {
    const { plane } = await start([
      ...(await common()),
      guard("g", { type: "addresses", allow: ["192.0.2.1/32"] }),
      serving([good("one", "/first"), { ...badMatch("bad"), guards: ["g"] }, good("bad", "/")]),
    ]);
    expect(await statusOf(plane, "/first")).toBe(200);
    expect(await statusOf(plane, "/a")).toBe(500);
    await apply(plane, serving([good("one", "/first"), good("bad", "/")]));
    await plane.until(() => plane.report(hostId)?.state === "programmed");
    expect(await statusOf(plane, "/a")).toBe(200);
  });

  test("of one rule lets a fresh Envoy serve all other rules from its first request on", async () => {
    const other = listener("other", http, "other.example");
    const { plane, envoy } = await start([
      ...(await common()),
      serving([badAction("bad", "/bad"), badMatch("worse"), good("one", "/one")]),
      other,
      host(other, "other.example", [good("far", "/")]),
    ]);
    const right = async (): Promise<void> => {
      expect(await statusOf(plane, "/one")).toBe(200);
      expect(await statusOf(plane, "/bad")).toBe(500);
      expect(await statusOf(plane, "/", "other.example")).toBe(200);
    };
    await right();
    expect(
      plane
        .report(hostId)
        ?.rules?.map(({ namespace }) => namespace)
        .sort(),
    ).toEqual(["bad", "worse"]);
    // And the next one, which is told what the first has found out.
    const pid = envoy.process(gateway)?.pid;
    if (pid === undefined) throw new Error("no process");
    const refusals = logged.filter((line) => line.startsWith("Envoy refuses")).length;
    process.kill(pid, "SIGKILL");
    await expect.poll(() => envoy.process(gateway)?.pid ?? pid, { timeout: 10_000 }).not.toBe(pid);
    await plane.until(() => plane.report("shared")?.state === "programmed");
    await envoy.settle();
    await right();
    expect(logged.filter((line) => line.startsWith("Envoy refuses")).length).toBe(refusals);
  });

  test("of a wildcard's rule is contained in all scopes that have the rule", async () => {
    const wide = listener("wide", http, "*.w.example");
    const hosts = Array.from({ length: 12 }, (_, at) =>
      host(wide, `n${at}.w.example`, [good("one", `/${at}`)]),
    );
    const { plane } = await start([...(await common()), wide, ...hosts]);
    const all = host(wide, "*.w.example", [badAction("bad", "/bad"), good("two", "/all")]);
    await apply(plane, all);
    for (const at of [0, 7, 11]) {
      expect(await statusOf(plane, `/${at}`, `n${at}.w.example`)).toBe(200);
      expect(await statusOf(plane, "/all", `n${at}.w.example`)).toBe(200);
      expect(await statusOf(plane, "/bad", `n${at}.w.example`)).toBe(500);
    }
    expect(plane.report(all.id)?.rules).toHaveLength(1);
  });

  test("of a hundred rules of one tenant costs a limited number of tries, and no rule of others", async () => {
    const { plane, envoy } = await start([...(await common()), serving([good("one", "/one")])]);
    const sent = (): number => envoy.replicas.reduce((sum, { stream }) => sum + stream.sent, 0);
    const before = sent();
    const bad = Array.from({ length: 100 }, (_, at) => badAction("bad", `/bad${at}`));
    const innocent = Array.from({ length: 60 }, (_, at) => good(`tenant-${at}`, `/t${at}`));
    await apply(plane, serving([...bad, ...innocent]));
    for (const at of [0, 31, 59]) expect(await statusOf(plane, `/t${at}`)).toBe(200);
    expect(await statusOf(plane, "/bad0")).toBe(500);
    expect(sent() - before).toBeLessThan(200);
    expect(new Set(plane.report(hostId)?.rules?.map(({ namespace }) => namespace))).toEqual(new Set(["bad"]));
  });

  test("of a rule that changes all the time does not delay other tenants", async () => {
    const { plane, envoy } = await start([...(await common()), serving([good("one", "/0")])]);
    let round = 0;
    const churn = setInterval(() => {
      round++;
      envoy.apply({
        upserts: [serving([badAction("bad", "/bad", String(round)), good("one", `/${wanted}`)])],
        removes: [],
      });
    }, 5);
    let wanted = 0;
    try {
      for (wanted = 1; wanted <= 3; wanted++) {
        const path = `/${wanted}`;
        await expect.poll(() => statusOf(plane, path), { timeout: 20_000, interval: 20 }).toBe(200);
      }
    } finally {
      clearInterval(churn);
    }
    expect(round).toBeGreaterThan(3);
    await envoy.settle();
    await apply(plane, serving([good("one", "/last")]));
    expect(await statusOf(plane, "/last")).toBe(200);
    expect(plane.report("shared")).toEqual({ id: "shared", state: "programmed" });
  });

  test("of a cluster makes its routes answer 500 until the cluster changes, and only then is it tried again", async () => {
    const echo = await backends.echo("tls");
    const tls = (hostname: string): PlanItem =>
      backend("t", [echo], { tls: { hostname, subjectAltNames: [], authorities: "system" } });
    const { plane, envoy } = await start([
      ...(await common()),
      backend("t", [echo]),
      serving([of("bad", { path: "/t", action: forwardTo("t") }), good("one", "/one")]),
    ]);
    expect(await statusOf(plane, "/t")).toBe(200);
    // Longer than a server name may be for Envoy (UpstreamTlsContext.sni).
    await apply(plane, tls("n".repeat(300)));
    await plane.until(() => plane.report("t")?.state === "rejected");
    await envoy.settle();
    expect(plane.report("t")).toEqual({
      id: "t",
      state: "rejected",
      reason: "Refused",
      message: "the data plane refuses the configuration of the backend",
    });
    expect(await statusOf(plane, "/t")).toBe(500);
    expect(await statusOf(plane, "/one")).toBe(200);

    const refusals = logged.length;
    await apply(plane, { ...tls("n".repeat(300)), endpoints: [] } as PlanItem);
    expect(await statusOf(plane, "/t")).toBe(500);
    expect(logged.slice(refusals)).toEqual([]);

    await apply(plane, backend("t", [echo]));
    await plane.until(() => plane.report("t")?.state === "programmed");
    expect(await statusOf(plane, "/t")).toBe(200);
  });

  test("of a listener's TLS settings closes its connections, and other listeners of the port stay up to date", async () => {
    const https = port(443, "tls");
    const own = certificate("c", issue(ca, ["*.t.example"]));
    const secured = (id: string, more: object = {}): ListenerItem => ({
      ...secure(id, https, `${id}.t.example`, [own]),
      tls: { mode: "Terminate", certificates: ["c"], ...more },
    });
    const routed = (of: ListenerItem): PlanItem => host(of, of.hostname, [good("one", "/")]);
    // Longer than the name of a protocol may be (RFC 7301, 3.1).
    const bad = secured("bad", { alpn: ["h".repeat(300)] });
    const picky = secured("picky", { minVersion: "1.3" });
    const plain = secured("plain");
    const items = [https, own, picky, plain, bad, ...[picky, plain, bad].map(routed)];
    const { plane } = await start([...(await common()), ...items]);
    const over = async (name: string): Promise<number> => {
      const servername = `${name}.t.example`;
      return (await ask(plane.at(443), { host: servername, tls: { ca: ca.cert, servername } })).status;
    };
    await plane.until(() => plane.report("bad")?.state === "rejected");
    expect(plane.report("bad")).toEqual({
      id: "bad",
      state: "rejected",
      reason: "Refused",
      message: "the data plane refuses the listener: connections to it are closed",
    });
    expect(plane.report("picky")).toEqual({ id: "picky", state: "programmed" });
    expect(await over("picky")).toBe(200);
    expect(await over("plain")).toBe(200);
    await expect(over("bad")).rejects.toThrow();

    const later = secured("later", { minVersion: "1.3" });
    await apply(plane, later, routed(later));
    expect(await over("later")).toBe(200);
    await apply(plane, secured("bad"));
    await plane.until(() => plane.report("bad")?.state === "programmed");
    expect(await over("bad")).toBe(200);
  });

  test("is reported and logged without any text of the configuration", async () => {
    const secret = "a-tenants-secret-header";
    const debug: string[] = [];
    const edits = { requestHeaders: [{ op: "set" as const, name: "authorization", value: secret }] };
    const items = [
      ...(await common()),
      serving([
        of("one", { path: "/one", action: forwardTo("b", { filters: edits }) }),
        badAction("bad", "/bad"),
        badMatch("worse"),
      ]),
    ];
    const { plane } = await start(items, { onDebug: (line) => debug.push(line) });
    expect(plane.report(hostId)?.state).toBe("rejected");
    const told = JSON.stringify(["shared", hostId, "b", http.id].map((id) => plane.report(id)));
    for (const text of [told, ...logged]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain("xxx");
    }
    expect(logged.some((line) => line === "Envoy refuses the scope 80/shop.example")).toBe(true);
    expect(debug.join("\n")).toContain("Envoy refuses the scope 80/shop.example: ");
  });
});
