import { once } from "node:events";
import { createServer, request } from "node:http";
import { connect } from "node:http2";
import { expect, test } from "vitest";
import type { ExternalAuthCheck } from "../../../src/plan/authentication.ts";
import type { ListenerItem, PlanItem, PortItem } from "../../../src/plan/plan.ts";
import type { Action } from "../../../src/plan/rule.ts";
import { type Answer, type Ask, answerOf, ask, textOf } from "../support/http-peers.ts";
import { backend, forwardTo, guard, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http: PortItem = port(80);
const shop: ListenerItem = listener("shop", http, "shop.example");

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

interface Said {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
}

/** What a service gets of a request and its body, and what of its answer goes where. */
export function describeAuthorizationParts(create: CreateDataPlane): void {
  const stage = setStage(create);
  const asked: Seen[] = [];

  const items = async (
    check: Partial<ExternalAuthCheck>,
    says: Said = {},
    action: Action = forwardTo("b"),
  ): Promise<PlanItem[]> => {
    asked.length = 0;
    const at = await stage.backends.http(async (got, response) => {
      const body = await textOf(got).catch(() => "cut off");
      asked.push({ method: got.method ?? "", url: got.url ?? "", headers: got.headers, body });
      response.writeHead(says.status ?? 200, says.headers ?? {}).end(says.body ?? "");
    });
    const external: ExternalAuthCheck = {
      type: "externalAuth",
      backend: "auth",
      path: { type: "prefix", value: "" },
      responseHeaders: ["x-user"],
      refusalHeaders: ["content-type"],
      timeoutMs: 5_000,
      ...check,
    };
    return [
      http,
      shop,
      guard("g", external),
      host(shop, "shop.example", [rule({ action, guards: ["g"] })]),
      backend("b", [await stage.backends.echo("b")]),
      backend("auth", [at]),
    ];
  };
  const start = async (
    check: Partial<ExternalAuthCheck>,
    says?: Said,
    action?: Action,
  ): Promise<PlaneUnderTest> => stage.start(await items(check, says, action));
  const get = (plane: PlaneUnderTest, more: Partial<Ask> = {}): Promise<Answer> =>
    ask(plane.at(80), { host: "shop.example", ...more });
  /** Over HTTP/1.1, without a length. */
  const sendChunks = async (plane: PlaneUnderTest, chunks: readonly string[]): Promise<Answer> => {
    const sent = request({
      host: "127.0.0.1",
      port: plane.at(80),
      method: "POST",
      headers: { host: "shop.example", "transfer-encoding": "chunked" },
      agent: false,
    });
    sent.on("error", () => {});
    for (const chunk of chunks) sent.write(chunk);
    sent.end();
    const [response] = await once(sent, "response");
    return await answerOf(response);
  };
  /** Over HTTP/2, in one frame and without a length. */
  const sendHttp2 = async (
    plane: PlaneUnderTest,
    body: string,
  ): Promise<{ status: unknown; body: string }> => {
    const session = connect(`http://127.0.0.1:${plane.at(80)}`);
    stage.onRelease(() => session.destroy());
    const stream = session.request({ ":method": "POST", ":path": "/", ":authority": "shop.example" });
    stream.on("error", () => {});
    stream.end(body);
    const [head] = await once(stream, "response");
    return { status: head[":status"], body: await textOf(stream) };
  };

  test("where only 200 lets a request pass, other successes are 403", async () => {
    for (const [status, expected] of [
      [200, 200],
      [202, 403],
      [204, 403],
    ] as const) {
      const plane = await start({ onlyOk: true }, { status });
      expect((await get(plane)).status, String(status)).toBe(expected);
      await plane.close();
    }
  });

  test("without a list the backend gets all fields of the answer but those of the answer itself", async () => {
    const said = {
      "x-user": "ann",
      "x-role": "admin",
      authorization: "Bearer inner",
      "content-type": "text/html",
      "x-forwarded-for": "1.2.3.4",
      "x-mergeway-host": "other.example",
      "x-envoy-original-path": "/admin",
    };
    const plane = await stage.start(
      (await items({}, { headers: { ...said, host: "other.example" } })).map((item) =>
        item.type === "guard" && item.check.type === "externalAuth"
          ? { ...item, check: withoutList(item.check) }
          : item,
      ),
    );
    const forged = { "x-role": "root", x_role: "root", "content-type": "application/json" };
    const { seen } = await get(plane, { method: "POST", headers: forged, body: "{}" });
    expect(seen.headers).toMatchObject({
      host: "shop.example",
      "x-user": "ann",
      "x-role": "admin",
      authorization: "Bearer inner",
      "content-type": "application/json",
      "x-forwarded-for": "127.0.0.1",
    });
    for (const name of ["x_role", "x-mergeway-host", "x-envoy-original-path"])
      expect(seen.headers[name], name).toBeUndefined();
  });

  test("an empty list of request fields leaves the service those that it always gets", async () => {
    const plane = await start({ requestHeaders: [] });
    await get(plane, { headers: { authorization: "a", cookie: "c=1", "x-more": "m" }, path: "/p?q" });
    expect(asked[0]).toMatchObject({ method: "GET", url: "/p?q" });
    expect(asked[0]?.headers).toMatchObject({
      host: "shop.example",
      authorization: "a",
      "content-length": "0",
    });
    expect(asked[0]?.headers["cookie"]).toBeUndefined();
    expect(asked[0]?.headers["x-more"]).toBeUndefined();
  });

  test("the service gets a body up to the limit, and the backend gets all of it as well", async () => {
    const plane = await start({ maxBodyBytes: 1_000 });
    const body = "x".repeat(1_000);
    const answer = await get(plane, { method: "POST", body });
    expect([answer.status, answer.seen.body]).toEqual([200, body]);
    expect(asked[0]).toMatchObject({ method: "POST", body });
    expect(asked[0]?.headers["content-length"]).toBe("1000");
    const parts = ["x".repeat(400), "y".repeat(600)];
    expect((await sendChunks(plane, parts)).seen.body).toBe(parts.join(""));
    expect(asked[1]?.body).toBe(parts.join(""));
    const framed = await sendHttp2(plane, body);
    expect([framed.status, JSON.parse(framed.body).body]).toEqual([200, body]);
    expect((await get(plane)).status).toBe(200);
    expect(asked.at(-1)?.headers["content-length"]).toBe("0");
  });

  test("a body over the limit is 413 for the client, and nobody gets it", async () => {
    const plane = await start({ maxBodyBytes: 1_000 });
    const long = "x".repeat(1_001);
    expect((await get(plane, { method: "POST", body: long })).status).toBe(413);
    expect((await sendChunks(plane, ["x".repeat(1_000), "y"])).status).toBe(413);
    expect((await sendHttp2(plane, long)).status).toBe(413);
    expect((await get(plane, { method: "POST", body: "x".repeat(300_000) })).status).toBe(413);
    expect(asked).toEqual([]);
  });

  test("a body is kept for mirrors and for a second attempt", async () => {
    const copies: string[] = [];
    const mirror = await stage.backends.http(async (got, response) => {
      copies.push(await textOf(got));
      response.end();
    });
    let attempts = 0;
    const bodies: string[] = [];
    const flaky = await stage.backends.http(async (got, response) => {
      bodies.push(await textOf(got));
      response.writeHead(attempts++ === 0 ? 503 : 200).end();
    });
    const action = forwardTo("flaky", {
      filters: { mirrors: [{ backend: "m", numerator: 1, denominator: 1 }] },
      retry: { attempts: 2, codes: [503] },
    });
    const plane = await stage.start([
      ...(await items({ maxBodyBytes: 10_000 }, {}, action)),
      backend("m", [mirror]),
      backend("flaky", [flaky]),
    ]);
    expect((await get(plane, { method: "POST", body: "whole" })).status).toBe(200);
    expect(bodies).toEqual(["whole", "whole"]);
    await expect.poll(() => copies).toEqual(["whole"]);
  });

  test("a WebSocket is asked about without a body, and opens", async () => {
    const server = createServer();
    server.on("upgrade", (_request, socket) => {
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhello",
      );
    });
    const at = await stage.backends.listen(server);
    const cookies = { "set-cookie": ["s=new; Path=/"] };
    const plane = await stage.start([
      ...(await items({ maxBodyBytes: 10 }, { headers: cookies }, forwardTo("ws"))),
      backend("ws", [at]),
    ]);
    const sent = request({
      host: "127.0.0.1",
      port: plane.at(80),
      headers: {
        host: "shop.example",
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      },
      agent: false,
    }).end();
    const [response, socket] = await once(sent, "upgrade");
    stage.onRelease(() => socket.destroy());
    expect([response.statusCode, response.headers["set-cookie"]]).toEqual([101, ["s=new; Path=/"]]);
    expect(asked).toHaveLength(1);
  });

  test("cookies of a service that lets a request pass reach the client beside the backend's", async () => {
    const own = await stage.backends.http((_request, response) =>
      response.writeHead(200, { "set-cookie": ["b=1"], "x-expires": "backend" }).end(),
    );
    const said = { "set-cookie": ["s=new; Path=/", "t=2"], "x-expires": "service", "x-other": "no" };
    const plane = await stage.start([
      ...(await items({}, { headers: said }, forwardTo("own"))),
      backend("own", [own]),
    ]);
    const { headers } = await get(plane);
    expect(headers["set-cookie"]?.toSorted()).toEqual(["b=1", "s=new; Path=/", "t=2"]);
    expect(headers["x-expires"]).toBe("backend");
    expect(headers["x-other"]).toBeUndefined();
  });

  test("listed fields reach the client in the place of the backend's, and nothing else does", async () => {
    const own = await stage.backends.http((_request, response) =>
      response.writeHead(200, { "x-expires": "backend" }).end("fine"),
    );
    const said = { "set-cookie": ["s=new"], "x-expires": "service", "content-length": "2" };
    const plane = await stage.start([
      ...(await items(
        { clientHeaders: ["x-expires", "content-length"] },
        { headers: said, body: "ok" },
        forwardTo("own"),
      )),
      backend("own", [own]),
    ]);
    const { headers, body } = await get(plane);
    expect([headers["x-expires"], headers["set-cookie"], body]).toEqual(["service", undefined, "fine"]);
  });

  test("redirects and answers of the gateway itself carry the cookies as well", async () => {
    const said = { headers: { "set-cookie": ["s=new"] } };
    const redirect: Action = { type: "redirect", statusCode: 302, hostname: "b.example", filters: {} };
    const plane = await start({}, said, redirect);
    const answer = await get(plane);
    expect([answer.status, answer.headers["set-cookie"]]).toEqual([302, ["s=new"]]);
    await plane.apply({
      upserts: [
        host(shop, "shop.example", [rule({ action: forwardTo("none"), guards: ["g"] })]),
        backend("none", []),
      ],
      removes: [],
    });
    const away = await get(plane);
    expect([away.status, away.headers["set-cookie"]]).toEqual([503, ["s=new"]]);
  });
}

function withoutList({ responseHeaders: _, ...check }: ExternalAuthCheck): ExternalAuthCheck {
  return check;
}
