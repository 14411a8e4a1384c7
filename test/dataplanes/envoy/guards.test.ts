/** Guards on a real Envoy: where they stand, and ways around them that must not be. */

import { createSocket, type Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import { connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { LIMIT_FILTER } from "../../../src/dataplanes/envoy/compile/names.ts";
import { bucketOf, ScopeGuards } from "../../../src/dataplanes/envoy/compile/routes/guards.ts";
import type { EnvoyDataPlane } from "../../../src/dataplanes/envoy/envoy-data-plane.ts";
import { GatewayConfig } from "../../../src/dataplanes/envoy/gateway-config.ts";
import { type LimitShape, scopeLimits } from "../../../src/dataplanes/envoy/messages/guards.ts";
import type { GuardCheck, GuardItem, RateLimitCheck } from "../../../src/plan/guard.ts";
import type { PlanItem, PortItem } from "../../../src/plan/plan.ts";
import type { Rule } from "../../../src/plan/rule.ts";
import { setStage } from "../contract/stage.ts";
import { authority, issue } from "../support/certificates.ts";
import { createEnvoy } from "../support/envoy-plane.ts";
import { type Ask, ask } from "../support/http-peers.ts";
import {
  backend,
  certificate,
  forwardTo,
  gateway,
  guard,
  host,
  listener,
  port,
  rule,
  secure,
} from "../support/plan-builder.ts";
import { PlaneUnderTest } from "../support/plane-under-test.ts";

/** The proxy in front says who the client is: so a test can be any client. */
const http: PortItem = port(80, "http", { clientAddress: { forwardedFor: { hops: 1 } } });
const shop = listener("shop", http, "shop.example");
const wild = listener("wild", http, "*.wild.example");
const HOUR = 3_600_000;
const GUARDS = Number(process.env["ENVOY_GUARDS"] ?? 600);

const stage = setStage((options) => createEnvoy(options));

function limit(burst: number, more: Partial<RateLimitCheck> = {}): RateLimitCheck {
  return { type: "rateLimit", requests: 1, periodMs: HOUR, burst, key: { type: "all" }, ...more };
}

const only = (address: string): GuardCheck => ({ type: "addresses", allow: [`${address}/32`] });

async function serving(rules: readonly Rule[], guards: readonly GuardItem[]): Promise<PlaneUnderTest> {
  return stage.start([
    http,
    shop,
    wild,
    ...guards,
    ...[shop, wild].map((each) => host(each, each.hostname, rules)),
    backend("b", [await stage.backends.echo("b")]),
    backend("c", [await stage.backends.echo("c")]),
  ]);
}

function configOfGateway(): GatewayConfig {
  return new GatewayConfig({
    gateway,
    lingerMs: 0,
    trustedHops: 0,
    bind: ({ port: number }) => ({ address: "127.0.0.1", port: number }),
  });
}

async function statusFor(plane: PlaneUnderTest, client: string, more: Partial<Ask> = {}): Promise<number> {
  const headers = { "x-forwarded-for": client, ...more.headers };
  return (await ask(plane.at(80), { host: "shop.example", ...more, headers })).status;
}

async function admin(plane: PlaneUnderTest, path: string): Promise<string> {
  return (await (plane.plane as EnvoyDataPlane).process(gateway)?.admin("GET", path)) ?? "";
}

async function scopeCount(plane: PlaneUnderTest): Promise<number> {
  const dump = await admin(plane, "/config_dump?resource=dynamic_scoped_route_configs");
  return dump.match(/"string_key"/g)?.length ?? 0;
}

test("a changed guard changes no listener of Envoy", async () => {
  const plane = await serving(
    [rule({ action: forwardTo("b"), guards: ["g"] })],
    [guard("g", only("192.0.2.1"))],
  );
  const listeners = (): Promise<string> =>
    admin(plane, "/stats?filter=listener_manager.listener_(added|modified|removed|in_place_updated)$");
  const before = await listeners();
  expect(before).toContain("listener_added: 2");
  for (const check of [only("192.0.2.2"), limit(3), limit(1, { key: { type: "client" } })])
    await plane.apply({ upserts: [guard("g", check)], removes: [] });
  expect(await listeners()).toBe(before);
  expect(await statusFor(plane, "192.0.2.1")).toBe(200);
});

test.each([
  ["of the same range", (): string => "::/0"],
  ["of different ranges", (at: number): string => `10.${at >> 8}.${at & 255}.0/24`],
])("a long list %s is read once, whatever the number of hostnames", (_, text) => {
  const config = configOfGateway();
  let readings = 0;
  const range = new Proxy(
    Array.from({ length: 4_096 }, (_each, at) => text(at)),
    {
      get(list, property, receiver) {
        if (property === "0") readings++;
        return Reflect.get(list, property, receiver);
      },
    },
  );
  const guards = ["g", "h"].map((id) => guard(id, { type: "addresses", allow: range, deny: range }));
  const hosts = Array.from({ length: 60 }, (_each, at) =>
    host(wild, `h${at}.wild.example`, [rule({ action: forwardTo("b"), guards: ["g", "h"] })]),
  );
  config.apply({ upserts: [http, wild, ...guards, ...hosts, backend("b", [1])], removes: [] });
  // Two guards with two lists each.
  expect(readings).toBe(4);
  expect(config.store.get("scope", "80/h59.wild.example")).toBeDefined();
});

test("all limits of a hostname with keys share one budget of keys", () => {
  const byClient: LimitShape = { word: "0", bucket: bucketOf(limit(1)), key: { type: "client" } };
  const shapes = (keyed: number): readonly LimitShape[] =>
    Array.from({ length: keyed + 1 }, (_, at) =>
      at < keyed ? { ...byClient, word: `${at}` } : { ...byClient, word: `${at}`, key: { type: "all" } },
    );
  for (const [keyed, keys] of [
    [1, 4_096],
    [2, 2_048],
    [3, 1_365],
    [64, 64],
    [100, 64],
  ] as const) {
    const checks = Array.from({ length: keyed + 1 }, (_, at) =>
      guard(`g${at}`, limit(1, at < keyed ? { key: { type: "client" } } : {})),
    );
    const guards = new ScopeGuards(
      checks.map(({ id }) => rule({ action: forwardTo("b"), guards: [id] })),
      (id) => checks.find((each) => each.id === id),
    );
    const limits = guards.scope.filter(([filter]) => filter === LIMIT_FILTER);
    expect(limits, `${keyed}`).toEqual([[LIMIT_FILTER, scopeLimits(shapes(keyed), keys)]]);
  }
});

test("a changed guard changes the scopes and ports whose rules name it, and nothing else", () => {
  const config = configOfGateway();
  const tcp = port(7000, "tcp");
  const open = listener("open", tcp, "", { protocol: "TCP" });
  const other = listener("other", http, "other.example");
  const guarded = (by: string): Rule => rule({ action: forwardTo("b"), guards: [by] });
  const names = [
    ["scope", "80/shop.example"],
    ["scope", "80/*.wild.example"],
    ["scope", "80/a.wild.example"],
    ["scope", "80/other.example"],
    ["listener", "port-80"],
    ["listener", "port-7000"],
  ] as const;
  const versions = (): readonly (string | undefined)[] =>
    names.map(([kind, name]) => config.store.get(kind, name)?.version);
  const changed = (upserts: readonly PlanItem[], removes: readonly string[] = []): readonly string[] => {
    const before = versions();
    config.apply({ upserts, removes });
    return versions().flatMap((version, at) => (version === before[at] ? [] : [names[at]?.[1] ?? ""]));
  };
  // Hosts before their guards, and both before their listeners.
  config.apply({
    upserts: [
      host(shop, "shop.example", [guarded("g")]),
      host(wild, "*.wild.example", [guarded("w")]),
      host(wild, "a.wild.example", []),
      host(other, "other.example", [rule({ action: forwardTo("b") })]),
      host(open, "", [rule({ kind: "TCPRoute", action: forwardTo("b"), guards: ["g"] })]),
      guard("g", only("192.0.2.1")),
      ...[other, wild, shop, open, http, tcp],
      backend("b", [1]),
    ],
    removes: [],
  });
  const ofG = ["80/shop.example", "port-7000"];
  const ofW = ["80/*.wild.example", "80/a.wild.example"];
  expect(changed([guard("w", limit(1))])).toEqual(ofW);
  expect(changed([guard("g", only("192.0.2.2"))])).toEqual(ofG);
  expect(changed([guard("unused", limit(1))])).toEqual([]);
  expect(changed([], ["w"])).toEqual(ofW);
  expect(changed([guard("w", limit(1)), guard("g", only("192.0.2.3"))])).toEqual([
    "80/shop.example",
    ...ofW,
    "port-7000",
  ]);
  expect(changed([host(shop, "shop.example", [guarded("w")])])).toEqual(["80/shop.example"]);
  expect(changed([guard("g", only("192.0.2.4"))])).toEqual(["port-7000"]);
  expect(changed([guard("w", limit(2))])).toEqual(["80/shop.example", ...ofW]);
  config.close();
});

test("WebSockets are guarded under every spelling of every kind of host, by both kinds of guards", async () => {
  let reached = 0;
  const at = await stage.backends.http((_request, response) => {
    reached++;
    response.end();
  });
  const plane = await serving(
    [rule({ action: forwardTo("b"), guards: ["g"] })],
    [guard("g", only("192.0.2.1"))],
  );
  await plane.apply({ upserts: [backend("b", [at])], removes: [] });
  const names = [
    "shop.example",
    "SHOP.example",
    "shop.example.",
    "Shop.Example.:80",
    "a.wild.example",
    "A.b.WILD.example.",
  ];
  const webSocket = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
  const statuses = async (): Promise<readonly number[]> => {
    const all: number[] = [];
    for (const name of names) {
      all.push(await statusFor(plane, "192.0.2.2", { host: name, headers: webSocket }));
      all.push(await extendedConnect(plane.at(80), name, "192.0.2.2"));
    }
    return all;
  };
  expect(new Set(await statuses())).toEqual(new Set([403]));
  await plane.apply({ upserts: [guard("g", limit(1))], removes: [] });
  for (const name of ["shop.example", "x.wild.example"]) await statusFor(plane, "192.0.2.2", { host: name });
  expect(reached).toBe(2);
  expect(new Set(await statuses())).toEqual(new Set([429]));
  expect(reached).toBe(2);
});

test("all routes that a rule becomes draw from one bucket, and so do other rules with the guard", async () => {
  const shares = ["b", "c"].map((id) => ({ backend: id, weight: 1, filters: {} }));
  const redirect = { type: "redirect", statusCode: 302, hostname: "x.example", filters: {} } as const;
  const plane = await serving(
    [
      rule({ path: "/shares", action: forwardTo([...shares, { weight: 1, filters: {} }]), guards: ["g"] }),
      rule({ path: "/redirect", action: redirect, guards: ["g"] }),
      rule({ path: "/free", action: forwardTo("b") }),
    ],
    [guard("g", limit(12))],
  );
  const counts = new Map<number, number>();
  for (let asked = 0; asked < 20; asked++) {
    const status = await statusFor(plane, "192.0.2.1", { path: asked % 4 === 0 ? "/redirect" : "/shares" });
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  expect(counts.get(429)).toBe(8);
  expect(await statusFor(plane, "192.0.2.1", { path: "/free" })).toBe(200);
});

test("all limits of a rule hold, each with its own key", async () => {
  const plane = await serving(
    [rule({ action: forwardTo("b"), guards: ["all", "each", "user"] })],
    [
      guard("all", limit(5)),
      guard("each", limit(3, { key: { type: "client" } })),
      guard("user", limit(2, { key: { type: "header", name: "x-user" } })),
    ],
  );
  const as = (client: string, user: string): Promise<number> =>
    statusFor(plane, client, { headers: { "x-user": user } });
  expect([await as("192.0.2.1", "a"), await as("192.0.2.1", "a"), await as("192.0.2.1", "a")]).toEqual([
    200, 200, 429,
  ]);
  expect([await as("192.0.2.1", "b"), await as("192.0.2.1", "c")]).toContain(429);
  for (let asked = 0; asked < 6; asked++) await as(`192.0.2.${10 + asked}`, `u${asked}`);
  expect(await as("192.0.2.99", "new")).toBe(429);
});

test("a request of a denied client is 403 whatever its body, and a malformed one is 400 as before", async () => {
  const plane = await serving(
    [rule({ action: forwardTo("b"), guards: ["g"] })],
    [guard("g", only("192.0.2.1"))],
  );
  const headers = { "transfer-encoding": "chunked" };
  expect(await statusFor(plane, "192.0.2.2", { method: "POST", headers, body: "x" })).toBe(403);
  expect(await statusFor(plane, "192.0.2.1", { method: "POST", headers, body: "x" })).toBe(200);
  expect(await statusFor(plane, "192.0.2.2", { host: "shop.example:+80" })).toBe(400);
  const denied = await ask(plane.at(80), {
    host: "shop.example",
    headers: { "x-forwarded-for": "192.0.2.2" },
  });
  expect(denied.body).toBe("clients of this address are not served\n");
  expect(await plane.record(({ status }) => status === 403)).toMatchObject({
    reason: "AddressDenied",
    client: "192.0.2.2",
    route: { name: "route" },
  });
});

test("a list that most routes share does not hold for the others, nor for what has no rule", async () => {
  const https: PortItem = port(443, "tls");
  const ca = authority();
  const pair = certificate("c", issue(ca, ["a.example", "b.example"]));
  const [a, b] = ["a", "b"].map((name) => secure(name, https, `${name}.example`, [pair]));
  if (a === undefined || b === undefined) throw new Error("unreachable");
  const plane = await stage.start([
    https,
    pair,
    a,
    b,
    guard("nobody", { type: "addresses", allow: [] }),
    guard("others", { type: "addresses", deny: ["192.0.2.1/32"] }),
    guard("local", { type: "addresses", allow: ["127.0.0.0/8"] }),
    host(a, "a.example", [
      rule({ path: "/1", action: forwardTo("to"), guards: ["nobody"] }),
      rule({ path: "/2", action: forwardTo("to"), guards: ["nobody"] }),
      rule({ path: "/3", action: forwardTo("to"), guards: ["local", "others"] }),
      rule({ path: "/4", action: forwardTo("to"), guards: ["local", "nobody"] }),
      rule({ path: "/5", action: forwardTo("to") }),
      rule({ path: "/6", action: forwardTo("to"), guards: ["missing"] }),
    ]),
    backend("to", [await stage.backends.echo("to")]),
  ]);
  const at = async (path: string, name = "a.example"): Promise<number> =>
    (await ask(plane.at(443), { host: name, path, tls: { servername: "a.example", ca: ca.cert } })).status;
  expect([
    await at("/1"),
    await at("/2"),
    await at("/3"),
    await at("/4"),
    await at("/5"),
    await at("/6"),
  ]).toEqual([403, 403, 200, 403, 200, 500]);
  expect(await at("/none")).toBe(404);
  expect(await at("/", "b.example")).toBe(421);
  expect(await plane.record(({ path }) => path === "/6")).toMatchObject({ reason: "PolicyUnavailable" });
});

test("what cannot be applied lets nothing pass, and what allows no request is 429", async () => {
  const plane = await serving([rule({ action: forwardTo("b"), guards: ["g"] })], [guard("g", limit(1))]);
  const unusable: readonly GuardCheck[] = [
    { type: "addresses", allow: ["127.0.0.0/8", "not a range"] },
    { type: "addresses", deny: ["10.0.0.0/33"] },
    limit(5, { periodMs: 0 }),
    limit(5, { requests: Number.NaN }),
    limit(5, { key: { type: "header", name: "no name" } }),
  ];
  for (const check of unusable) {
    await plane.apply({ upserts: [guard("g", check)], removes: [] });
    expect(await statusFor(plane, "127.0.0.1"), JSON.stringify(check)).toBe(500);
  }
  for (const check of [limit(0), limit(5, { requests: 0 })]) {
    await plane.apply({ upserts: [guard("g", check)], removes: [] });
    const answer = await ask(plane.at(80), { host: "shop.example" });
    expect([answer.status, answer.headers["retry-after"], answer.body]).toEqual([
      429,
      "3600",
      "too many requests\n",
    ]);
  }
  expect(await plane.record(({ status }) => status === 429)).toMatchObject({ reason: "RateLimited" });
  await plane.apply({ upserts: [guard("g", limit(1))], removes: [] });
  expect(await statusFor(plane, "127.0.0.1")).toBe(200);
});

test("on a port for both IPv4 and IPv6, clients of IPv4 are compared as such", async () => {
  const both: PortItem = port(80);
  const own = listener("own", both, "shop.example");
  const items: readonly PlanItem[] = [
    both,
    own,
    guard("g", { type: "addresses", allow: ["127.0.0.0/8"] }),
    host(own, "shop.example", [rule({ action: forwardTo("b"), guards: ["g"] })]),
    backend("b", [await stage.backends.echo("b")]),
  ];
  const plane = await PlaneUnderTest.start(
    (options) => createEnvoy({ ...options, bind: { ...options.bind, address: "::" } }),
    items,
  );
  stage.onRelease(() => plane.close());
  expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
  await plane.apply({ upserts: [guard("g", { type: "addresses", allow: ["::/0"] })], removes: [] });
  expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(403);
});

test("with hops, entries of proxies are counted and not read", async () => {
  const far = port(80, "http", { clientAddress: { forwardedFor: { hops: 3 } } });
  const own = listener("own", far, "shop.example");
  const plane = await stage.start([
    far,
    own,
    guard("g", only("192.0.2.1")),
    host(own, "shop.example", [rule({ action: forwardTo("b"), guards: ["g"] })]),
    backend("b", [await stage.backends.echo("b")]),
  ]);
  expect(await statusFor(plane, "192.0.2.1, unknown, 203.0.113.7")).toBe(200);
  expect(await statusFor(plane, "unknown, 192.0.2.1, 203.0.113.7")).toBe(200);
  expect(await statusFor(plane, "192.0.2.1, 192.0.2.9, unknown, 203.0.113.7")).toBe(403);
});

test("trust by networks holds on TLS ports, also for listeners with chains of their own", async () => {
  const https = port(443, "tls", { clientAddress: { forwardedFor: { networks: ["127.0.0.1/32"] } } });
  const ca = authority();
  const pair = certificate("c", issue(ca, ["a.example", "b.example"]));
  const plain = secure("a", https, "a.example", [pair]);
  const strict = listener("b", https, "b.example", {
    tls: { mode: "Terminate", certificates: [pair.id], minVersion: "1.3" },
  });
  const plane = await stage.start([
    https,
    pair,
    guard("g", only("192.0.2.1")),
    ...[plain, strict].flatMap((each) => [
      each,
      host(each, each.hostname, [
        rule({ path: "/open", action: forwardTo("to") }),
        rule({ action: forwardTo("to"), guards: ["g"] }),
      ]),
    ]),
    backend("to", [await stage.backends.echo("to")]),
  ]);
  const headers = { "x-forwarded-for": "192.0.2.1" };
  for (const name of ["a.example", "b.example"]) {
    const asked = { host: name, headers, tls: { servername: name, ca: ca.cert } };
    expect((await ask(plane.at(443), asked)).status).toBe(200);
    expect((await ask(plane.at(443), { ...asked, from: "127.0.0.2" })).status).toBe(403);
    const { seen } = await ask(plane.at(443), { ...asked, path: "/open", from: "127.0.0.2" });
    expect(seen.headers["x-forwarded-for"]).toBe("127.0.0.2");
  }
});

test("datagrams of denied clients reach no backend", async () => {
  const udp = port(9001, "udp");
  const open = listener("open", udp, "", { protocol: "UDP" });
  const server = createSocket("udp4").bind(0, "127.0.0.1");
  stage.onRelease(() => server.close());
  await once(server, "listening");
  const heard: string[] = [];
  server.on("message", (bytes, from) => {
    heard.push(String(bytes));
    server.send("echo", from.port, from.address);
  });
  const plane = await stage.start([
    udp,
    open,
    guard("g", { type: "addresses", allow: ["127.0.0.0/8"], deny: ["127.0.0.2/32"] }),
    host(open, "", [rule({ kind: "UDPRoute", action: forwardTo("s"), guards: ["g"] })]),
    backend("s", [server.address().port], { protocol: "udp" }),
  ]);
  const clientAt = async (address: string): Promise<DatagramSocket> => {
    const client = createSocket("udp4").bind(0, address);
    stage.onRelease(() => client.close());
    await once(client, "listening");
    return client;
  };
  const answers = async (from: string, text: string): Promise<boolean> => {
    const client = await clientAt(from);
    client.send(text, plane.at(9001), "127.0.0.1");
    return await Promise.race([
      once(client, "message").then(() => true),
      new Promise<boolean>((resolve) => setTimeout(resolve, 300, false)),
    ]);
  };
  expect([await answers("127.0.0.1", "a"), await answers("127.0.0.2", "b")]).toEqual([true, false]);
  await plane.apply({ upserts: [], removes: ["g"] });
  expect(await answers("127.0.0.1", "c")).toBe(false);
  await plane.apply({ upserts: [guard("g", limit(5))], removes: [] });
  expect(await answers("127.0.0.1", "d")).toBe(false);
  expect(heard).toEqual(["a"]);
});

test(`Envoy takes all of ${GUARDS} guards with generated values`, async () => {
  const number = fc.oneof(
    fc.constantFrom(
      0,
      1,
      49,
      50,
      51,
      1000,
      2 ** 31,
      2 ** 32 - 1,
      2 ** 32,
      2 ** 53,
      1e300,
      Infinity,
      -1,
      0.5,
      Number.NaN,
    ),
    fc.double(),
    fc.nat(),
  );
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary" }),
    fc.constantFrom("", "host", ":path", "x-user", "X-User", "cookie"),
  );
  const address = fc.oneof(fc.ipV4(), fc.ipV6(), text);
  const range = fc
    .tuple(address, fc.oneof(fc.nat(129), fc.constantFrom(0, 32, 128)))
    .map(([prefix, length]) => `${prefix}/${length}`);
  const good = fc.oneof(
    fc.tuple(fc.ipV4(), fc.nat(32)).map(([prefix, length]) => `${prefix}/${length}`),
    fc.tuple(fc.ipV6(), fc.nat(128)).map(([prefix, length]) => `${prefix}/${length}`),
  );
  const ranges = fc.oneof(fc.array(range), fc.array(good), fc.array(good, { maxLength: 300 }));
  const check: fc.Arbitrary<GuardCheck> = fc.oneof(
    fc.record(
      { type: fc.constant("addresses" as const), allow: ranges, deny: ranges },
      { requiredKeys: ["type"] },
    ),
    fc.record({
      type: fc.constant("rateLimit" as const),
      requests: number,
      periodMs: number,
      burst: number,
      key: fc.oneof(
        fc.constant({ type: "all" as const }),
        fc.constant({ type: "client" as const }),
        text.map((name) => ({ type: "header" as const, name })),
      ),
    }),
  );
  const checks = fc.sample(check, { numRuns: GUARDS, seed: 20_261_118 });
  const guards = checks.map((each, at) => guard(`g ${at}`, each));
  // Each alone, and several together; with streams, where lists are filter chains.
  const rulesAt = (at: number): readonly Rule[] =>
    [[at], [at, (at * 7 + 1) % GUARDS, (at * 3 + 2) % GUARDS]].map((some, index) =>
      rule({ path: `/${index}`, action: forwardTo("b"), guards: some.map((each) => `g ${each}`) }),
    );
  const tls = port(443, "tls");
  const streams = checks.slice(0, 60).flatMap((_, at) => {
    const own = listener(`s ${at}`, tls, `s${at}.example`, {
      protocol: "TLS",
      tls: { mode: "Passthrough", certificates: [] },
    });
    return [
      own,
      host(own, own.hostname, [
        { ...rule({ kind: "TLSRoute", action: forwardTo("b"), guards: [`g ${at}`] }) },
      ]),
    ];
  });
  const networks = checks
    .flatMap((each) => (each.type === "addresses" ? [each.allow ?? []] : []))
    .slice(0, 30);
  const ports = networks.flatMap((each, at) => {
    const trusting = port(2000 + at, "http", {
      clientAddress: { forwardedFor: { networks: each }, proxyProtocol: "optional" },
    });
    return [trusting, listener(`p ${at}`, trusting, "")];
  });
  const lines: string[] = [];
  const plane = await PlaneUnderTest.start(
    (options) => createEnvoy(options, { onDebug: (line) => lines.push(line) }),
    [
      http,
      tls,
      ...guards,
      ...checks.flatMap((_, at) => {
        const own = listener(`l ${at}`, http, `h${at}.example`);
        return [own, host(own, own.hostname, rulesAt(at))];
      }),
      ...streams,
      ...ports,
      backend("b", [await stage.backends.echo("b")]),
    ],
  );
  stage.onRelease(() => plane.close());
  expect(lines.map((line) => line.slice(0, 600))).toEqual([]);
  expect(await scopeCount(plane)).toBeGreaterThanOrEqual(GUARDS);
}, 120_000);

async function extendedConnect(at: number, name: string, client: string): Promise<number> {
  const session = connectHttp2(`http://127.0.0.1:${at}`);
  stage.onRelease(() => session.destroy());
  await once(session, "remoteSettings");
  const stream = session.request({
    ":method": "CONNECT",
    ":protocol": "websocket",
    ":scheme": "http",
    ":path": "/",
    ":authority": name,
    "sec-websocket-version": "13",
    "x-forwarded-for": client,
  });
  const [head] = (await once(stream, "response")) as [IncomingHttpHeaders];
  stream.resume();
  return Number(head[":status"]);
}
