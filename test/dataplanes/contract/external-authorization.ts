import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, test } from "vitest";
import type { ExternalAuthCheck } from "../../../src/plan/authentication.ts";
import type { ListenerItem, PlanItem, PortItem } from "../../../src/plan/plan.ts";
import type { Action } from "../../../src/plan/rule.ts";
import { type Answer, type Ask, ask } from "../support/http-peers.ts";
import { backend, forwardTo, guard, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http: PortItem = port(80);
const shop: ListenerItem = listener("shop", http, "shop.example");
const wild: ListenerItem = listener("wild", http, "*.wild.example");

function external(more: Partial<ExternalAuthCheck> = {}): ExternalAuthCheck {
  return {
    type: "externalAuth",
    backend: "auth",
    path: { type: "prefix", value: "" },
    responseHeaders: ["x-user"],
    refusalHeaders: ["location", "set-cookie", "www-authenticate", "content-type"],
    timeoutMs: 2_000,
    ...more,
  };
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** Lets whoever has the token pass, as somebody. */
const byToken: Handler = ({ headers }, response) => {
  if (headers.authorization !== "Bearer good") {
    response.writeHead(401, { "www-authenticate": "Bearer", "x-secret": "inner" }).end("who are you?");
    return;
  }
  response.writeHead(200, { "x-user": "ann", "x-other": "no" }).end("welcome");
};

const GOOD = { authorization: "Bearer good" };

/** A service is asked whether a request may pass. */
export function describeExternalAuthorization(create: CreateDataPlane): void {
  const stage = setStage(create);
  const asked: { method: string; url: string; headers: Readonly<Record<string, unknown>> }[] = [];

  const items = async (check: ExternalAuthCheck, handler: Handler, action?: Action): Promise<PlanItem[]> => {
    asked.length = 0;
    const at = await stage.backends.http((request, response) => {
      asked.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers });
      handler(request, response);
    });
    const to = action ?? forwardTo("b");
    return [
      http,
      shop,
      wild,
      guard("g", check),
      ...[shop, wild].map((each) =>
        host(each, each.hostname, [rule({ path: "/open", action: to }), rule({ action: to, guards: ["g"] })]),
      ),
      backend("b", [await stage.backends.echo("b")]),
      backend("auth", [at]),
    ];
  };
  const start = async (
    check: Partial<ExternalAuthCheck> = {},
    handler: Handler = byToken,
    action?: Action,
  ): Promise<PlaneUnderTest> => stage.start(await items(external(check), handler, action));
  const get = (plane: PlaneUnderTest, more: Partial<Ask> = {}): Promise<Answer> =>
    ask(plane.at(80), { host: "shop.example", ...more });
  const statusOf = async (plane: PlaneUnderTest, more?: Partial<Ask>): Promise<number> =>
    (await get(plane, more)).status;

  test("2xx lets a request pass with the named fields, and nobody else can set them", async () => {
    const plane = await start({ responseHeaders: ["x-user", "x-groups"] });
    const forged = { "x-user": "root", x_user: "root", "x.user": "root", "x-groups": "admins" };
    const { status, seen } = await get(plane, { headers: { ...GOOD, ...forged }, path: "/a?b=c" });
    expect(status).toBe(200);
    expect(seen.headers).toMatchObject({ "x-user": "ann", authorization: "Bearer good" });
    for (const name of ["x_user", "x.user", "x-groups", "x-other"])
      expect(seen.headers[name]).toBeUndefined();
    expect(seen.url).toBe("/a?b=c");
  });

  test("what is not 2xx is the client's answer, with the named fields and the body", async () => {
    const plane = await start();
    const refused = await get(plane);
    expect([refused.status, refused.body]).toEqual([401, "who are you?"]);
    expect(refused.headers["www-authenticate"]).toBe("Bearer");
    expect(refused.headers["x-secret"]).toBeUndefined();
    expect(await statusOf(plane, { path: "/open" })).toBe(200);
    const head = await get(plane, { method: "HEAD" });
    expect([head.status, head.body]).toEqual([401, ""]);
  });

  test("a refusal keeps its body where the gateway has words of its own for the status", async () => {
    const plane = await start({}, ({ url }, response) => {
      response.writeHead(Number(url?.slice(1)), { "content-type": "text/plain" }).end("slow down, \u00fcser");
    });
    for (const code of [400, 403, 413, 429]) {
      const { status, headers, body } = await get(plane, { path: `/${code}` });
      expect([status, headers["content-type"], body]).toEqual([code, "text/plain", "slow down, \u00fcser"]);
    }
  });

  test("a redirect to a login page reaches the client with all of its cookies", async () => {
    const plane = await start({}, (_request, response) => {
      response.setHeader("set-cookie", ["a=1; Path=/", "b=2; Path=/"]);
      response.writeHead(302, { location: "https://login.example/?rd=%2F" }).end();
    });
    const { status, headers } = await get(plane);
    expect([status, headers.location]).toEqual([302, "https://login.example/?rd=%2F"]);
    expect(headers["set-cookie"]).toEqual(["a=1; Path=/", "b=2; Path=/"]);
    // It is the client that follows, also where the service redirects to itself.
    expect(asked).toHaveLength(1);
  });

  test("with a prefix, the service sees method, host, path and query, and no body", async () => {
    const plane = await start({ path: { type: "prefix", value: "/check/" }, requestHeaders: ["x-wanted"] });
    const headers = { ...GOOD, "x-wanted": "yes", "x-unwanted": "no", "x-forwarded-uri": "/forged" };
    const answer = await get(plane, { method: "POST", path: "/a/b?c=d", body: "secret", headers });
    expect(answer.seen).toMatchObject({ method: "POST", body: "secret" });
    const [first] = asked;
    expect(first).toMatchObject({ method: "POST", url: "/check/a/b?c=d" });
    expect(first?.headers).toMatchObject({
      host: "shop.example",
      authorization: "Bearer good",
      "x-wanted": "yes",
      "x-forwarded-method": "POST",
      "x-forwarded-uri": "/a/b?c=d",
      "x-forwarded-host": "shop.example",
      "x-forwarded-proto": "http",
      "x-forwarded-for": "127.0.0.1",
    });
    expect(first?.headers["x-unwanted"]).toBeUndefined();
    expect(Object.keys(first?.headers ?? {}).filter((name) => name.startsWith("x-mergeway"))).toEqual([]);
  });

  test("with an exact path, the service gets GET of that path", async () => {
    const plane = await start({ path: { type: "exact", value: "/oauth2/auth" } });
    expect(
      await statusOf(plane, { method: "DELETE", path: "/x?y", headers: { ...GOOD, cookie: "c=1" } }),
    ).toBe(200);
    expect(asked[0]).toMatchObject({ method: "GET", url: "/oauth2/auth" });
    expect(asked[0]?.headers).toMatchObject({
      "x-forwarded-method": "DELETE",
      "x-forwarded-uri": "/x?y",
      cookie: "c=1",
    });
  });

  test("however a host is written and whatever the protocol is, nobody passes unasked", async () => {
    let reached = 0;
    const at = await stage.backends.http((_request, response) => {
      reached++;
      response.end();
    });
    const plane = await stage.start([...(await items(external(), byToken)), backend("b", [at])]);
    for (const name of [
      "shop.example",
      "SHOP.example",
      "shop.example.",
      "Shop.Example.:80",
      "a.wild.example",
      "A.B.WILD.example.",
    ]) {
      expect(await statusOf(plane, { host: name }), name).toBe(401);
    }
    expect((await stage.askHttp2(plane.at(80), {}))[":status"]).toBe(401);
    expect((await stage.askHttp2(plane.at(80), { ":authority": "A.WILD.example" }))[":status"]).toBe(401);
    const upgrade = {
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":scheme": "http",
      "sec-websocket-version": "13",
    };
    expect((await stage.askHttp2(plane.at(80), upgrade))[":status"]).toBe(401);
    const webSocket = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
    expect(await statusOf(plane, { headers: webSocket })).toBe(401);
    expect(await statusOf(plane, { headers: webSocket, host: "A.wild.example" })).toBe(401);
    expect(await statusOf(plane, { method: "POST", body: "x".repeat(100_000) })).toBe(401);
    const grpc = await get(plane, { headers: { "content-type": "application/grpc" } });
    expect([grpc.status, grpc.headers["grpc-status"]]).toEqual([200, "16"]);
    expect(reached).toBe(0);
    expect((await stage.askHttp2(plane.at(80), GOOD))[":status"]).toBe(200);
    expect(await statusOf(plane, { host: "A.B.WILD.example.", headers: GOOD })).toBe(200);
    expect(reached).toBe(2);
  });

  test("redirects and fixed answers are guarded; a preflight is answered without credentials", async () => {
    const plane = await start({}, byToken, {
      type: "redirect",
      statusCode: 302,
      hostname: "b.example",
      filters: {},
    });
    expect(await statusOf(plane)).toBe(401);
    expect(await statusOf(plane, { headers: GOOD })).toBe(302);
    const use = (action: Action): Promise<void> =>
      plane.apply({
        upserts: [host(shop, "shop.example", [rule({ action, guards: ["g"] })])],
        removes: [],
      });
    await use({ type: "respond", status: 500, reason: "the backend is not there" });
    expect(await statusOf(plane)).toBe(401);
    expect(await statusOf(plane, { headers: GOOD })).toBe(500);
    const cors = {
      allowOrigins: ["https://a.example"],
      allowCredentials: false,
      allowMethods: ["GET"],
      allowHeaders: [],
      exposeHeaders: [],
      maxAgeSeconds: 5,
    };
    await use(forwardTo("b", { filters: { cors } }));
    const origin = { origin: "https://a.example" };
    const preflight = { ...origin, "access-control-request-method": "GET" };
    expect(await statusOf(plane, { method: "OPTIONS", headers: preflight })).toBeLessThan(300);
    expect(await statusOf(plane, { method: "OPTIONS", headers: origin })).toBe(401);
    expect(await statusOf(plane, { headers: preflight })).toBe(401);
  });

  test("a service that hangs, fails, breaks off or says too much lets nothing pass", async () => {
    const handlers: Readonly<Record<string, Handler>> = {
      hangs: () => {},
      fails: (_request, response) => response.writeHead(500).end("secret stack"),
      breaks: (request) => request.socket.destroy(),
      "says too much": (_request, response) => response.writeHead(403).end("x".repeat(10_000_000)),
      "has too long a header": (_request, response) =>
        response.writeHead(200, { "x-user": "x".repeat(100_000) }).end(),
      "never ends": (_request, response) => response.writeHead(403).write("x"),
      switches: (_request, response) =>
        response.writeHead(101, { connection: "upgrade", upgrade: "other" }).end(),
    };
    const plane = await start({ timeoutMs: 300 }, ({ url }, response) => {
      const handler = handlers[decodeURIComponent(url?.slice(1) ?? "")];
      if (handler === undefined) response.end();
      else handler({ url, socket: response.socket } as IncomingMessage, response);
    });
    for (const name of Object.keys(handlers)) {
      const { status, body } = await get(plane, { path: `/${encodeURIComponent(name)}` });
      expect([name, status, body.includes("secret")]).toEqual([name, 503, false]);
    }
    expect(await statusOf(plane, { path: "/fine" })).toBe(200);
  });

  test("2xx counts when its header is there, whether its body ends or not", async () => {
    let ended = 0;
    const plane = await start({ timeoutMs: 600_000 }, ({ url }, response) => {
      response.on("close", () => ended++);
      response.writeHead(200, { "x-user": "ann" });
      // The first never ends, and the second would not for a long time.
      if (url === "/silent") response.write("x");
      else response.write("x".repeat(10_000_000));
    });
    for (const path of ["/silent", "/long"]) {
      const { status, seen } = await get(plane, { path });
      expect([path, status, seen.headers["x-user"]]).toEqual([path, 200, "ann"]);
    }
    await expect.poll(() => ended, { timeout: 20_000 }).toBe(2);
  });

  test("a service without endpoints is 503, one that is not there or refused is 500", async () => {
    const plane = await start();
    await plane.apply({ upserts: [backend("auth", [])], removes: [] });
    expect(await statusOf(plane, { headers: GOOD })).toBe(503);
    const gone = await stage.backends.http(() => {});
    await plane.apply({
      upserts: [backend("auth", [1, gone]), guard("g", external({ timeoutMs: 300 }))],
      removes: [],
    });
    expect(await statusOf(plane, { headers: GOOD })).toBe(503);
    await plane.apply({ upserts: [{ ...backend("auth", [gone]), refused: "no" }], removes: [] });
    expect(await statusOf(plane, { headers: GOOD })).toBe(500);
    expect(await statusOf(plane, { path: "/open" })).toBe(200);
  });

  test("all guards are asked, in order, and the first to set a field decides its value", async () => {
    const first = await stage.backends.http((_request, response) =>
      response.writeHead(200, { "x-user": "platform" }).end(),
    );
    const served = await items(external(), byToken);
    const plane = await stage.start([
      ...served,
      guard("platform", external({ backend: "first" })),
      backend("first", [first]),
      host(shop, "shop.example", [rule({ action: forwardTo("b"), guards: ["platform", "g"] })]),
    ]);
    expect(await statusOf(plane)).toBe(401);
    const { seen } = await get(plane, { headers: GOOD });
    expect(seen.headers["x-user"]).toBe("platform");
  });

  test("a guard that is changed or removed holds from then on", async () => {
    const plane = await start();
    const other = await stage.backends.http((_request, response) => response.writeHead(403).end());
    await plane.apply({ upserts: [backend("auth", [other])], removes: [] });
    expect(await statusOf(plane, { headers: GOOD })).toBe(403);
    await plane.apply({ upserts: [], removes: ["g"] });
    expect(await statusOf(plane, { headers: GOOD })).toBe(500);
    const open = [shop, wild].map((each) => host(each, each.hostname, [rule({ action: forwardTo("b") })]));
    await plane.apply({ upserts: open, removes: [] });
    expect(await statusOf(plane)).toBe(200);
  });

  test("a client that goes away while the service is asked leaves nothing behind", async () => {
    let closed = 0;
    const plane = await start({ timeoutMs: 20_000 }, (_request, response) =>
      response.on("close", () => closed++),
    );
    const socket = await stage.sockets.connect(plane.at(80));
    socket.write("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    await expect.poll(() => asked.length).toBe(1);
    socket.resetAndDestroy();
    await expect.poll(() => closed, { timeout: 5_000 }).toBe(1);
  });
}
