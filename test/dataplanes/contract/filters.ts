import { once } from "node:events";
import { connect as connectHttp2, createSecureServer as createSecureHttp2Server } from "node:http2";
import { createServer as createSecureServer } from "node:https";
import type { TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import type { PlanItem } from "../../../src/plan/plan.ts";
import type { CorsPolicy, ForwardAction } from "../../../src/plan/rule.ts";
import { authority, issue } from "../support/certificates.ts";
import { ask, textOf } from "../support/http-peers.ts";
import { lastingPort } from "../support/lasting-port.ts";
import {
  backend,
  certificate,
  forwardTo,
  gateway,
  host,
  listener,
  port,
  rule,
} from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");

/** What a rule can do to requests and answers on their way. */
export function describeFilters(create: CreateDataPlane): void {
  const stage = setStage(create);
  const startWith = (
    action: ForwardAction,
    items: readonly PlanItem[],
    path = "/",
  ): Promise<PlaneUnderTest> =>
    stage.start([http, shop, host(shop, "shop.example", [rule({ path, action })]), ...items]);

  test("edits request headers of the rule, then of the backend", async () => {
    const plane = await startWith(
      forwardTo(
        [
          {
            backend: "b",
            weight: 1,
            filters: {
              requestHeaders: [
                { op: "add", name: "x-both", value: "backend" },
                { op: "set", name: "x-set", value: "backend" },
                { op: "remove", name: "x-added" },
              ],
            },
          },
        ],
        {
          filters: {
            requestHeaders: [
              { op: "set", name: "x-set", value: "rule" },
              { op: "add", name: "x-both", value: "rule" },
              { op: "add", name: "x-added", value: "rule" },
              { op: "remove", name: "x-gone" },
              { op: "set", name: "content-length", value: "1" },
              { op: "set", name: "transfer-encoding", value: "chunked" },
            ],
          },
        },
      ),
      [backend("b", [await stage.backends.echo("b")])],
    );
    const { seen } = await ask(plane.at(80), {
      host: "shop.example",
      method: "POST",
      body: "whole",
      headers: { "x-set": "client", "x-both": "client", "x-gone": "client" },
    });
    expect(seen.headers).toMatchObject({ "x-set": "backend", "x-both": "client, rule, backend" });
    expect(seen.headers).not.toHaveProperty("x-gone");
    expect(seen.headers).not.toHaveProperty("x-added");
    expect(seen.body).toBe("whole");
  });

  test("edits response headers of the rule, then of the backend", async () => {
    const at = await stage.backends.http((_request, response) => {
      response.writeHead(200, { "x-set": "backend", "x-gone": "1", "set-cookie": ["a=1", "b=2"] });
      response.end();
    });
    const plane = await startWith(
      forwardTo(
        [
          {
            backend: "b",
            weight: 1,
            filters: { responseHeaders: [{ op: "add", name: "x-both", value: "2" }] },
          },
        ],
        {
          filters: {
            responseHeaders: [
              { op: "set", name: "x-set", value: "rule" },
              { op: "add", name: "x-both", value: "1" },
              { op: "remove", name: "x-gone" },
            ],
          },
        },
      ),
      [backend("b", [at])],
    );
    const { headers } = await ask(plane.at(80), { host: "shop.example" });
    expect(headers).toMatchObject({ "x-set": "rule", "x-both": "1, 2", "set-cookie": ["a=1", "b=2"] });
    expect(headers).not.toHaveProperty("x-gone");
  });

  test("rewrites host and path", async () => {
    const plane = await startWith(
      forwardTo("b", {
        filters: { rewrite: { hostname: "inner.example", path: { type: "prefix", value: "/v2" } } },
      }),
      [backend("b", [await stage.backends.echo("b")])],
      "/api",
    );
    const { seen } = await ask(plane.at(80), { host: "shop.example", path: "/api/items?q=%2F" });
    expect(seen).toMatchObject({ url: "/v2/items?q=%2F", headers: { host: "inner.example" } });
    expect(seen.headers["x-forwarded-host"]).toBe("shop.example");
  });

  test("mirrors requests with their bodies, and is not held up by mirrors", async () => {
    const mirrored: string[] = [];
    const mirror = await stage.backends.http(async (request, response) => {
      mirrored.push(`${request.method} ${request.url} ${request.headers.host} ${await textOf(request)}`);
      response.writeHead(500).end();
    });
    const plane = await startWith(
      forwardTo("b", {
        filters: {
          mirrors: [
            { backend: "m", numerator: 1, denominator: 1 },
            { backend: "closed", numerator: 1, denominator: 1 },
            { backend: "m", numerator: 0, denominator: 100 },
            { numerator: 1, denominator: 1 },
          ],
        },
      }),
      [
        backend("b", [await stage.backends.echo("b")]),
        backend("m", [mirror]),
        backend("closed", [await lastingPort()]),
      ],
    );
    const answer = await ask(plane.at(80), {
      host: "shop.example",
      path: "/x",
      method: "POST",
      body: "copy",
    });
    expect(answer.seen.body).toBe("copy");
    await expect.poll(() => mirrored).toEqual(["POST /x shop.example copy"]);
  });

  test("504 when the backend or the whole request takes too long; a late answer is cut off", async () => {
    const at = await stage.backends.http((request, response) => {
      if (request.url === "/late") response.write("begun");
    });
    const action = (timeouts: ForwardAction["timeouts"]): ForwardAction => forwardTo("b", { timeouts });
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({ path: "/backend", action: action({ backendRequestMs: 100 }) }),
        rule({ path: "/request", action: action({ requestMs: 100 }) }),
        rule({ path: "/late", action: action({ requestMs: 100 }) }),
      ]),
      backend("b", [at]),
    ]);
    expect((await ask(plane.at(80), { host: "shop.example", path: "/backend" })).status).toBe(504);
    expect(
      (await ask(plane.at(80), { host: "shop.example", path: "/request", method: "POST", body: "x" })).status,
    ).toBe(504);
    await expect(ask(plane.at(80), { host: "shop.example", path: "/late" })).rejects.toThrow();
    expect(await plane.record(({ path }) => path === "/request")).toMatchObject({ reason: "RequestTimeout" });
  });

  test("retries by code, after resets and after timed-out attempts, with the body from its beginning", async () => {
    let calls = 0;
    const bodies: string[] = [];
    const at = await stage.backends.http(async (request, response) => {
      calls++;
      bodies.push(await textOf(request));
      if (request.url === "/reset" && calls % 3 !== 0) request.socket.destroy();
      else if (request.url === "/slow" && calls % 3 !== 0) return;
      else response.writeHead(request.url === "/code" && calls % 3 !== 0 ? 503 : 200).end(String(calls));
    });
    const plane = await startWith(
      forwardTo("b", {
        retry: { attempts: 2, codes: [503], backoffMs: 1 },
        timeouts: { backendRequestMs: 200 },
      }),
      [backend("b", [at])],
    );
    for (const path of ["/code", "/reset", "/slow"]) {
      calls = 0;
      bodies.length = 0;
      const answer = await ask(plane.at(80), { host: "shop.example", path, method: "POST", body: "again" });
      expect(answer).toMatchObject({ status: 200, body: "3" });
      expect(bodies).toEqual(["again", "again", "again"]);
    }
  });

  test("gives up after the last retry, and never resends a body that it no longer has", async () => {
    let calls = 0;
    const at = await stage.backends.http(async (request, response) => {
      await textOf(request);
      calls++;
      response.writeHead(503).end();
    });
    const plane = await startWith(forwardTo("b", { retry: { attempts: 3, codes: [503], backoffMs: 1 } }), [
      backend("b", [at]),
    ]);
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(503);
    expect(calls).toBe(4);
    calls = 0;
    const large = Buffer.alloc(1024 * 1024);
    expect((await ask(plane.at(80), { host: "shop.example", method: "POST", body: large })).status).toBe(503);
    expect(calls).toBe(1);
  });

  const policy: CorsPolicy = {
    allowOrigins: ["https://app.example", "https://*.apps.example"],
    allowCredentials: false,
    allowMethods: ["GET", "PUT"],
    allowHeaders: ["x-one", "x-two"],
    exposeHeaders: ["x-seen"],
    maxAgeSeconds: 60,
  };

  test("answers CORS preflights and marks answers, for allowed origins only", async () => {
    const at = await stage.backends.http((_request, response) =>
      response.writeHead(200, { "access-control-allow-origin": "*" }).end(),
    );
    const plane = await startWith(forwardTo("b", { filters: { cors: policy } }), [backend("b", [at])]);
    const preflight = (origin: string): ReturnType<typeof ask> =>
      ask(plane.at(80), {
        host: "shop.example",
        method: "OPTIONS",
        headers: {
          origin,
          "access-control-request-method": "PUT",
          "access-control-request-headers": "x-one",
        },
      });
    for (const origin of ["https://app.example", "https://a.b.apps.example"]) {
      const { status, headers } = await preflight(origin);
      expect([200, 204]).toContain(status);
      expect(headers).toMatchObject({
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "GET, PUT",
        "access-control-allow-headers": "x-one, x-two",
        "access-control-max-age": "60",
      });
      expect(headers).not.toHaveProperty("access-control-allow-credentials");
      const actual = await ask(plane.at(80), { host: "shop.example", headers: { origin } });
      expect(actual.headers).toMatchObject({
        "access-control-allow-origin": origin,
        "access-control-expose-headers": "x-seen",
        vary: expect.stringMatching(/origin/i),
      });
    }
    for (const origin of [
      "https://evil.example",
      "http://app.example",
      "https://.apps.example",
      "https://evil/.apps.example",
    ]) {
      expect((await preflight(origin)).headers).not.toHaveProperty("access-control-allow-origin");
      const actual = await ask(plane.at(80), { host: "shop.example", headers: { origin } });
      expect(actual.status).toBe(200);
      expect(actual.headers).not.toHaveProperty("access-control-allow-origin");
    }
  });

  test("CORS with credentials never says *", async () => {
    const cors = {
      ...policy,
      allowOrigins: ["*"],
      allowMethods: ["*"],
      allowHeaders: ["*"],
      allowCredentials: true,
    };
    const at = await stage.backends.echo("b");
    const plane = await startWith(forwardTo("b", { filters: { cors } }), [backend("b", [at])]);
    const { headers } = await ask(plane.at(80), {
      host: "shop.example",
      method: "OPTIONS",
      headers: {
        origin: "https://any.example",
        "access-control-request-method": "PATCH",
        "access-control-request-headers": "x-any",
      },
    });
    expect(headers).toMatchObject({
      "access-control-allow-origin": "https://any.example",
      "access-control-allow-methods": "PATCH",
      "access-control-allow-headers": "x-any",
      "access-control-allow-credentials": "true",
    });
  });

  test("speaks TLS to backends as their policies ask, and shows the Gateway's certificate", async () => {
    const ca = authority("backends");
    const clients = authority("gateways");
    const own = issue(ca, ["inner.example", "spiffe://mesh/shop"]);
    const client = certificate("c-client", issue(clients, ["edge.example"]));
    const server = createSecureServer(
      { cert: own.cert, key: own.key, ca: clients.cert, requestCert: true, rejectUnauthorized: true },
      (request, response) => {
        const socket = request.socket as TLSSocket & { servername?: string };
        response.end(
          `${socket.servername} ${socket.getPeerCertificate().subjectaltname} ${request.headers.host}`,
        );
      },
    );
    const at = await stage.backends.listen(server);
    const withTls = (
      id: string,
      hostname: string,
      sans: readonly { type: "Hostname" | "URI"; value: string }[] = [],
    ) => backend(id, [at], { tls: { hostname, subjectAltNames: sans, authorities: [ca.cert] } });
    const rules = ["good", "named", "uri", "wrong", "unknown"].map((id) =>
      rule({ path: `/${id}`, action: forwardTo(id) }),
    );
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", rules),
      { type: "gateway", id: "g", gateway, clientCertificate: client.id },
      client,
      withTls("good", "inner.example"),
      withTls("named", "other.example", [{ type: "Hostname", value: "inner.example" }]),
      withTls("uri", "other.example", [{ type: "URI", value: "spiffe://mesh/shop" }]),
      withTls("wrong", "other.example"),
      backend("unknown", [at], {
        tls: { hostname: "inner.example", subjectAltNames: [], authorities: [clients.cert] },
      }),
    ]);
    const get = (path: string): ReturnType<typeof ask> => ask(plane.at(80), { host: "shop.example", path });
    expect((await get("/good")).body).toBe("inner.example DNS:edge.example shop.example");
    expect((await get("/named")).body).toBe("other.example DNS:edge.example shop.example");
    expect((await get("/uri")).status).toBe(200);
    expect((await get("/wrong")).status).toBe(503);
    expect((await get("/unknown")).status).toBe(503);
  });

  test("speaks HTTP/2 over TLS to backends of gRPC routes", async () => {
    const ca = authority("backends");
    const own = issue(ca, ["inner.example"]);
    const server = createSecureHttp2Server({ cert: own.cert, key: own.key });
    server.on("stream", (stream, headers) => {
      stream.respond({ ":status": 200 });
      stream.end(`${headers[":scheme"]} ${headers[":authority"]}`);
    });
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b"), kind: "GRPCRoute" })]),
      backend("b", [await stage.backends.listen(server)], {
        tls: { hostname: "inner.example", subjectAltNames: [], authorities: [ca.cert] },
      }),
    ]);
    const session = connectHttp2(`http://127.0.0.1:${plane.at(80)}`);
    stage.onRelease(() => session.destroy());
    const stream = session.request({ ":path": "/a.B/C", ":authority": "shop.example", ":method": "POST" });
    stream.end("x");
    await once(stream, "response");
    expect(await textOf(stream)).toBe("https shop.example");
  });
}
