import { once } from "node:events";
import { connect as connectHttp2, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { connect } from "node:net";
import { expect, test } from "vitest";
import type { GuardCheck, RateLimitCheck, RateLimitKey } from "../../../src/plan/guard.ts";
import type { ListenerItem, PlanItem, PortItem } from "../../../src/plan/plan.ts";
import type { Action } from "../../../src/plan/rule.ts";
import { authority, issue } from "../support/certificates.ts";
import { type Answer, type Ask, ask } from "../support/http-peers.ts";
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
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { readAll } from "../support/sockets.ts";
import { setStage } from "./stage.ts";

/** The proxy in front says who the client is: so a test can be any client. */
const http: PortItem = port(80, "http", { clientAddress: { forwardedFor: { hops: 1 } } });
const plain: PortItem = port(81);
const shop = listener("shop", http, "shop.example");
const wild = listener("wild", http, "*.wild.example");
const HOUR = 3_600_000;

/** A bucket that does not fill again while a test runs. */
function limit(burst: number, key: RateLimitKey = { type: "all" }): RateLimitCheck {
  return { type: "rateLimit", requests: 1, periodMs: HOUR, burst, key };
}

/** What a request must meet before its rule acts. */
export function describeGuards(create: CreateDataPlane): void {
  const stage = setStage(create);
  const items = async (check: GuardCheck, action: Action = forwardTo("b")): Promise<PlanItem[]> => [
    http,
    shop,
    wild,
    guard("g", check),
    ...[shop, wild].map((each) => host(each, each.hostname, [rule({ action, guards: ["g"] })])),
    backend("b", [await stage.backends.echo("b")]),
  ];
  const start = async (check: GuardCheck, action?: Action): Promise<PlaneUnderTest> =>
    stage.start(await items(check, action));
  const askAs = (plane: PlaneUnderTest, client: string, more: Partial<Ask> = {}): Promise<Answer> =>
    ask(plane.at(80), {
      host: "shop.example",
      ...more,
      headers: { "x-forwarded-for": client, ...more.headers },
    });
  const statusFor = async (plane: PlaneUnderTest, client: string, more?: Partial<Ask>): Promise<number> =>
    (await askAs(plane, client, more)).status;
  const statuses = async (count: number, one: () => Promise<number>): Promise<readonly number[]> => {
    const all: number[] = [];
    for (let asked = 0; asked < count; asked++) all.push(await one());
    return all;
  };
  const askHttp2 = async (at: number, headers: OutgoingHttpHeaders): Promise<IncomingHttpHeaders> => {
    const session = connectHttp2(`http://127.0.0.1:${at}`);
    stage.onRelease(() => session.destroy());
    if (headers[":protocol"] !== undefined) await once(session, "remoteSettings");
    const stream = session.request({ ":path": "/", ":authority": "shop.example", ...headers });
    const [head] = (await once(stream, "response")) as [IncomingHttpHeaders];
    stream.resume();
    return head;
  };

  test("an allow list lets its addresses in and nobody else", async () => {
    const plane = await start({ type: "addresses", allow: ["198.51.100.0/24", "2001:db8:1::/48"] });
    for (const client of [
      "198.51.100.0",
      "198.51.100.255",
      "::ffff:198.51.100.7",
      "::ffff:c633:6407",
      "2001:db8:1::",
      "2001:DB8:1:ffff:ffff:ffff:ffff:ffff",
    ]) {
      expect(await statusFor(plane, client), client).toBe(200);
    }
    for (const client of [
      "198.51.99.255",
      "198.51.101.0",
      "127.0.0.1",
      "::ffff:198.51.101.1",
      "2001:db8:0:ffff:ffff:ffff:ffff:ffff",
      "2001:db8:2::",
      "::1",
    ]) {
      expect(await statusFor(plane, client), client).toBe(403);
    }
    const { client } = await plane.record(({ status }) => status === 403);
    expect(client).toBe("198.51.99.255");
  });

  test("a deny list comes before an allow list, and alone it lets everybody else in", async () => {
    const plane = await start({
      type: "addresses",
      allow: ["10.0.0.0/8", "10.1.2.3/32"],
      deny: ["10.1.0.0/16", "10.1.2.0/24", "2001:db8::/32"],
    });
    expect(await statusFor(plane, "10.0.0.1")).toBe(200);
    expect(await statusFor(plane, "10.2.0.0")).toBe(200);
    // Nested ranges: the wider one counts behind the end of the narrower one, too.
    expect(await statusFor(plane, "10.1.2.3")).toBe(403);
    expect(await statusFor(plane, "10.1.200.1")).toBe(403);
    expect(await statusFor(plane, "192.0.2.1")).toBe(403);

    await plane.apply({
      upserts: [guard("g", { type: "addresses", deny: ["10.1.0.0/16", "2001:db8::/32"] })],
      removes: [],
    });
    expect(await statusFor(plane, "10.1.2.3")).toBe(403);
    expect(await statusFor(plane, "2001:db8::1")).toBe(403);
    expect(await statusFor(plane, "192.0.2.1")).toBe(200);
    expect(await statusFor(plane, "2001:db9::1")).toBe(200);
  });

  test("ranges of everything are of one family, and an empty allow list lets nobody in", async () => {
    const plane = await start({ type: "addresses", allow: ["::/0"] });
    expect(await statusFor(plane, "2001:db8::1")).toBe(200);
    expect(await statusFor(plane, "192.0.2.1")).toBe(403);
    await plane.apply({ upserts: [guard("g", { type: "addresses", allow: ["0.0.0.0/0"] })], removes: [] });
    expect(await statusFor(plane, "2001:db8::1")).toBe(403);
    expect(await statusFor(plane, "::ffff:192.0.2.1")).toBe(200);
    expect(await statusFor(plane, "192.0.2.1")).toBe(200);
    await plane.apply({ upserts: [guard("g", { type: "addresses", allow: [] })], removes: [] });
    expect(await statusFor(plane, "192.0.2.1")).toBe(403);
  });

  test("however a host is written, its rules are guarded", async () => {
    const plane = await start({ type: "addresses", allow: ["192.0.2.1/32"] });
    for (const name of [
      "SHOP.example",
      "shop.example.",
      "Shop.Example.:80",
      "a.wild.example",
      "A.B.WILD.example.",
    ]) {
      expect(await statusFor(plane, "192.0.2.1", { host: name }), name).toBe(200);
      expect(await statusFor(plane, "192.0.2.2", { host: name }), name).toBe(403);
    }
  });

  test("whatever the protocol is, a denied client reaches no backend", async () => {
    let reached = 0;
    const at = await stage.backends.http((_request, response) => {
      reached++;
      response.end();
    });
    const allow = ["192.0.2.1/32"];
    const plane = await stage.start([...(await items({ type: "addresses", allow })), backend("b", [at])]);
    const denied = { "x-forwarded-for": "192.0.2.2" };
    expect((await askHttp2(plane.at(80), denied))[":status"]).toBe(403);
    const upgrade = {
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":scheme": "http",
      "sec-websocket-version": "13",
    };
    expect((await askHttp2(plane.at(80), { ...upgrade, ...denied }))[":status"]).toBe(403);
    const webSocket = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
    expect(await statusFor(plane, "192.0.2.2", { headers: webSocket })).toBe(403);
    expect(await statusFor(plane, "192.0.2.2", { method: "POST", body: "x".repeat(100_000) })).toBe(403);
    const grpc = await askAs(plane, "192.0.2.2", { headers: { "content-type": "application/grpc" } });
    expect([grpc.status, grpc.headers["grpc-status"]]).toEqual([200, "7"]);
    expect(reached).toBe(0);
    expect((await askHttp2(plane.at(80), { "x-forwarded-for": "192.0.2.1" }))[":status"]).toBe(200);
    expect(reached).toBe(1);
  });

  test("redirects, fixed answers and CORS preflights are guarded as well", async () => {
    const check: GuardCheck = { type: "addresses", deny: ["192.0.2.2/32"] };
    const redirect: Action = { type: "redirect", statusCode: 302, hostname: "b.example", filters: {} };
    const cors = {
      allowOrigins: ["*"],
      allowCredentials: false,
      allowMethods: ["GET"],
      allowHeaders: [],
      exposeHeaders: [],
      maxAgeSeconds: 5,
    };
    const plane = await start(check, redirect);
    expect(await statusFor(plane, "192.0.2.1")).toBe(302);
    expect(await statusFor(plane, "192.0.2.2")).toBe(403);
    const use = (action: Action): Promise<void> =>
      plane.apply({
        upserts: [host(shop, "shop.example", [rule({ action, guards: ["g"] })])],
        removes: [],
      });
    await use({ type: "respond", status: 500, reason: "the backend is not there" });
    expect(await statusFor(plane, "192.0.2.1")).toBe(500);
    expect(await statusFor(plane, "192.0.2.2")).toBe(403);
    await use(forwardTo("b", { filters: { cors } }));
    const preflight = {
      method: "OPTIONS",
      headers: { origin: "https://a.example", "access-control-request-method": "GET" },
    };
    const answer = await askAs(plane, "192.0.2.1", preflight);
    expect(answer.status).toBeLessThan(300);
    expect(answer.headers["access-control-allow-origin"]).toMatch(/^(\*|https:\/\/a\.example)$/);
    expect(await statusFor(plane, "192.0.2.2", preflight)).toBe(403);
  });

  test("on a port that trusts nobody, a forged X-Forwarded-For does not pass a list", async () => {
    const own = listener("own", plain, "shop.example");
    const plane = await stage.start([
      plain,
      own,
      guard("g", { type: "addresses", allow: ["192.0.2.1/32", "127.0.0.3/32"] }),
      host(own, "shop.example", [rule({ action: forwardTo("b"), guards: ["g"] })]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
    const headers = { "x-forwarded-for": "192.0.2.1", "x-real-ip": "192.0.2.1", forwarded: "for=192.0.2.1" };
    expect((await ask(plane.at(81), { host: "shop.example", headers })).status).toBe(403);
    expect((await ask(plane.at(81), { host: "shop.example", from: "127.0.0.3" })).status).toBe(200);
  });

  test("a bucket gives its burst, then refuses, and says when to come again", async () => {
    const plane = await start({
      type: "rateLimit",
      requests: 1,
      periodMs: 1500,
      burst: 3,
      key: { type: "all" },
    });
    expect(await statuses(4, () => statusFor(plane, "192.0.2.1"))).toEqual([200, 200, 200, 429]);
    const refused = await askAs(plane, "192.0.2.1");
    expect(refused.status).toBe(429);
    expect(refused.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
    const grpc = await askAs(plane, "192.0.2.1", { headers: { "content-type": "application/grpc" } });
    expect([grpc.status, grpc.headers["grpc-status"]]).toEqual([200, "14"]);
    await expect.poll(() => statusFor(plane, "192.0.2.1"), { timeout: 5_000, interval: 100 }).toBe(200);
    expect(await statusFor(plane, "192.0.2.1")).toBe(429);
  });

  test("HTTP/2 streams of one connection share the bucket with all others", async () => {
    const plane = await start(limit(5));
    const session = connectHttp2(`http://127.0.0.1:${plane.at(80)}`);
    stage.onRelease(() => session.destroy());
    const one = async (): Promise<number> => {
      const stream = session.request({ ":path": "/", ":authority": "shop.example" });
      const [head] = (await once(stream, "response")) as [{ ":status": number }];
      stream.resume();
      return head[":status"];
    };
    const all = await Promise.all(Array.from({ length: 8 }, one));
    expect(all.toSorted()).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
    expect(await statusFor(plane, "192.0.2.1")).toBe(429);
  });

  test("each client has a bucket of its own, and all addresses of an IPv6 /64 are one client", async () => {
    const plane = await start(limit(1, { type: "client" }));
    expect(await statuses(2, () => statusFor(plane, "192.0.2.1"))).toEqual([200, 429]);
    expect(await statusFor(plane, "::ffff:192.0.2.1")).toBe(429);
    expect(await statuses(2, () => statusFor(plane, "192.0.2.2"))).toEqual([200, 429]);
    expect(await statusFor(plane, "2001:db8:0:1::1")).toBe(200);
    expect(await statusFor(plane, "2001:db8:0:1:ffff::2")).toBe(429);
    expect(await statusFor(plane, "2001:db8:0:2::1")).toBe(200);
  });

  test("each value of a header has a bucket; absent, empty and repeated ones share one", async () => {
    const plane = await start(limit(1, { type: "header", name: "x-user" }));
    const as = (value: string | string[]): Promise<number> =>
      statusFor(plane, "192.0.2.1", { headers: { "X-User": value } });
    expect(await statuses(2, () => as("a"))).toEqual([200, 429]);
    expect(await as("b")).toBe(200);
    expect(await as("A")).toBe(200);
    expect(await statusFor(plane, "192.0.2.1")).toBe(200);
    expect(await as("")).toBe(429);
    expect(await as(["a", "b"])).toBe(429);
    expect(await as(["c", "d"])).toBe(429);
  });

  test("a limit for each Host counts for each hostname pattern, however the host is written", async () => {
    const plane = await start(limit(1, { type: "header", name: "Host" }));
    const as = (name: string): Promise<number> => statusFor(plane, "192.0.2.1", { host: name });
    expect(await as("shop.example")).toBe(200);
    for (const name of [
      "shop.example",
      "SHOP.example",
      "shop.example.",
      "shop.example:80",
      "shop.example:8080",
    ])
      expect(await as(name), name).toBe(429);
    expect(await as("a.wild.example")).toBe(200);
    expect(await as("A.wild.example:81")).toBe(429);
  });

  test("hostnames of listeners have buckets of their own; names under one wildcard share one", async () => {
    const plane = await start(limit(1));
    const as = (name: string): Promise<number> => statusFor(plane, "192.0.2.1", { host: name });
    expect(await statuses(2, () => as("shop.example"))).toEqual([200, 429]);
    expect(await as("SHOP.example.")).toBe(429);
    expect(await as("a.wild.example")).toBe(200);
    expect(await as("b.wild.example")).toBe(429);
    expect(await as("A.WILD.example.")).toBe(429);
  });

  test("a bucket belongs to the most specific hostname, also where a wider one's rule serves", async () => {
    const served = await items(limit(1));
    const other = rule({ path: "/other", action: forwardTo("b") });
    const plane = await stage.start([...served, host(wild, "a.wild.example", [other])]);
    const as = (name: string): Promise<number> => statusFor(plane, "192.0.2.1", { host: name });
    expect(await as("a.wild.example")).toBe(200);
    expect(await as("b.wild.example")).toBe(200);
    expect(await as("a.wild.example")).toBe(429);
    expect(await as("b.wild.example")).toBe(429);
  });

  test("all guards of a rule must let a request pass, and those of other rules do not count", async () => {
    const plane = await stage.start([
      http,
      shop,
      guard("who", { type: "addresses", allow: ["192.0.2.1/32"] }),
      guard("how-often", limit(1)),
      host(shop, "shop.example", [
        rule({ path: "/both", action: forwardTo("b"), guards: ["who", "how-often"] }),
        rule({ path: "/open", action: forwardTo("b") }),
      ]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
    // Who is denied takes no token.
    expect(await statusFor(plane, "192.0.2.2", { path: "/both" })).toBe(403);
    expect(await statusFor(plane, "192.0.2.1", { path: "/both" })).toBe(200);
    expect(await statusFor(plane, "192.0.2.1", { path: "/both" })).toBe(429);
    expect(await statusFor(plane, "192.0.2.2", { path: "/open" })).toBe(200);
  });

  test("a rule whose guard is missing lets nothing pass until the guard is there", async () => {
    const served = await items({ type: "addresses", allow: ["192.0.2.1/32"] });
    const plane = await stage.start(served.filter(({ id }) => id !== "g"));
    expect(await statusFor(plane, "192.0.2.1")).toBe(500);
    const grpc = await askAs(plane, "192.0.2.1", { headers: { "content-type": "application/grpc" } });
    expect([grpc.status, grpc.headers["grpc-status"]]).toEqual([200, "2"]);
    await plane.apply({ upserts: served.filter(({ id }) => id === "g"), removes: [] });
    expect(await statusFor(plane, "192.0.2.1")).toBe(200);
    expect(await statusFor(plane, "192.0.2.2")).toBe(403);
    await plane.apply({ upserts: [], removes: ["g"] });
    expect(await statusFor(plane, "192.0.2.1")).toBe(500);
  });

  test("a changed limit holds from its change on, and other changes leave buckets as they are", async () => {
    const plane = await start(limit(2));
    expect(await statuses(3, () => statusFor(plane, "192.0.2.1"))).toEqual([200, 200, 429]);
    await plane.apply({
      upserts: [
        host(shop, "other.example", []),
        guard("other", { type: "addresses", allow: [] }),
        backend("b", [await stage.backends.echo("b")]),
      ],
      removes: [],
    });
    expect(await statusFor(plane, "192.0.2.1")).toBe(429);
    const fast: GuardCheck = {
      type: "rateLimit",
      requests: 1000,
      periodMs: 1000,
      burst: 50,
      key: { type: "all" },
    };
    await plane.apply({ upserts: [guard("g", fast)], removes: [] });
    await expect.poll(() => statusFor(plane, "192.0.2.1"), { timeout: 5_000 }).toBe(200);
  });

  test("limits may be very large, and requests may come in very short or very long periods", async () => {
    const plane = await start(limit(1));
    const key: RateLimitKey = { type: "all" };
    const largest = 2 ** 31 - 1;
    const checks: RateLimitCheck[] = [
      { type: "rateLimit", requests: largest, periodMs: 1000, burst: largest, key },
      { type: "rateLimit", requests: 100_000, periodMs: 1000, burst: largest, key },
      { type: "rateLimit", requests: 1, periodMs: 30 * 24 * HOUR, burst: 100_000, key },
    ];
    for (const check of checks) {
      await plane.apply({ upserts: [guard("g", check)], removes: [] });
      expect(await statuses(5, () => statusFor(plane, "192.0.2.1"))).toEqual([200, 200, 200, 200, 200]);
    }
  });

  test("streams of denied clients are closed before a backend hears of them", async () => {
    let reached = 0;
    const at = await stage.sockets.serve((socket) => {
      reached++;
      socket.end("hello");
    });
    const tcp = port(7000, "tcp");
    const tls = port(443, "tls");
    const ca = authority();
    const forA = certificate("c-a", issue(ca, ["a.example"]));
    const open: ListenerItem = listener("open", tcp, "", { protocol: "TCP" });
    const a = { ...secure("a", tls, "a.example", [forA]), protocol: "TLS" as const };
    const streams = rule({ action: forwardTo("s"), kind: "TCPRoute", guards: ["g"] });
    const plane = await stage.start([
      tcp,
      tls,
      open,
      a,
      forA,
      guard("g", { type: "addresses", deny: ["127.0.0.1/32"] }),
      host(open, "", [streams]),
      host(a, "a.example", [streams]),
      backend("s", [at], { protocol: "tcp" }),
    ]);
    const heard = async (): Promise<string> => {
      // A reset may come before the connection is told to be there.
      const socket = stage.sockets.keep(connect({ host: "127.0.0.1", port: plane.at(7000) }));
      return await readAll(socket).then(String, () => "");
    };
    expect(await heard()).toBe("");
    const session = ask(plane.at(443), { host: "a.example", tls: { servername: "a.example", ca: ca.cert } });
    await expect(session).rejects.toThrow();
    expect(reached).toBe(0);
    await plane.apply({ upserts: [guard("g", { type: "addresses", deny: ["127.0.0.2/32"] })], removes: [] });
    expect(await heard()).toBe("hello");
  });
}
