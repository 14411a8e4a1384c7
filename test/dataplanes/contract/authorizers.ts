import type { ServerHttp2Stream } from "node:http2";
import { expect, test } from "vitest";
import { frame } from "../../../src/dataplanes/envoy/wire/grpc-frames.ts";
import type { ExternalAuthCheck } from "../../../src/plan/authentication.ts";
import type { ListenerItem, PlanItem, PortItem } from "../../../src/plan/plan.ts";
import { authorizer, no, type Question, respond, yes } from "../support/authorizer.ts";
import { type Answer, type Ask, ask } from "../support/http-peers.ts";
import { backend, forwardTo, guard, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http: PortItem = port(80);
const shop: ListenerItem = listener("shop", http, "shop.example");
const wild: ListenerItem = listener("wild", http, "*.wild.example");

type Judge = (question: Question, stream: ServerHttp2Stream) => Uint8Array | undefined;

const GOOD = { authorization: "Bearer good" };
/** Lets whoever has the token pass, as somebody. */
const byToken: Judge = ({ headers }) =>
  headers["authorization"] === "Bearer good"
    ? yes({ headers: [["x-user", "ann"]] })
    : no({ status: 401, headers: [["www-authenticate", "Bearer"]], body: "who are you?" });

/** A service is asked by Envoy's gRPC protocol, envoy.service.auth.v3. */
export function describeAuthorizers(create: CreateDataPlane): void {
  const stage = setStage(create);
  const asked: Question[] = [];

  const items = async (check: Partial<ExternalAuthCheck>, judge: Judge): Promise<PlanItem[]> => {
    asked.length = 0;
    const server = authorizer((question, stream) => {
      asked.push(question);
      return judge(question, stream);
    });
    const external: ExternalAuthCheck = {
      type: "externalAuth",
      protocol: "grpc",
      backend: "auth",
      path: { type: "prefix", value: "" },
      refusalHeaders: [],
      timeoutMs: 2_000,
      ...check,
    };
    return [
      http,
      shop,
      wild,
      guard("g", external),
      ...[shop, wild].map((each) =>
        host(each, each.hostname, [rule({ action: forwardTo("b"), guards: ["g"] })]),
      ),
      backend("b", [await stage.backends.echo("b")]),
      backend("auth", [await stage.backends.listen(server)]),
    ];
  };
  const start = async (check: Partial<ExternalAuthCheck>, judge: Judge): Promise<PlaneUnderTest> =>
    stage.start(await items(check, judge));
  const get = (plane: PlaneUnderTest, more: Partial<Ask> = {}): Promise<Answer> =>
    ask(plane.at(80), { host: "shop.example", ...more });
  const statusOf = async (plane: PlaneUnderTest, more?: Partial<Ask>): Promise<number> =>
    (await get(plane, more)).status;

  test("it is told what the request is, and by whom it was sent", async () => {
    const plane = await start({}, byToken);
    const headers = { ...GOOD, "x-more": "m", connection: "x-drop", "x-drop": "d" };
    expect(await statusOf(plane, { method: "DELETE", path: "/a?b=c", headers })).toBe(200);
    expect(asked[0]).toMatchObject({
      method: "DELETE",
      host: "shop.example",
      path: "/a?b=c",
      scheme: "http",
      protocol: "HTTP/1.1",
      peer: "127.0.0.1",
      body: "",
    });
    expect(asked[0]?.headers).toMatchObject({
      ":authority": "shop.example",
      ":method": "DELETE",
      ":path": "/a?b=c",
      ":scheme": "http",
      authorization: "Bearer good",
      "x-more": "m",
      "x-forwarded-for": "127.0.0.1",
    });
    const hidden = Object.keys(asked[0]?.headers ?? {}).filter((name) =>
      /^x-mergeway|^connection$/.test(name),
    );
    expect(hidden).toEqual([]);
  });

  test("with a list it gets the fields of the list and no others", async () => {
    const plane = await start({ requestHeaders: ["authorization"] }, byToken);
    expect(await statusOf(plane, { headers: { ...GOOD, cookie: "c=1" } })).toBe(200);
    expect(asked[0]?.headers).toEqual(GOOD);
  });

  test("it sets, adds and removes fields, hides parameters, and has fields for the client", async () => {
    const plane = await start({}, () =>
      yes({
        headers: [
          ["x-user", "ann"],
          ["x-tag", "two", true],
          ["X-Role", "admin"],
          ["host", "evil.example"],
          ["content-length", "0"],
          ["x-forwarded-for", "9.9.9.9"],
        ],
        remove: ["x-secret", "host", "content-length", "x-forwarded-for"],
        removeQueries: ["token"],
        answer: [
          ["set-cookie", "s=1"],
          ["set-cookie", "t=2"],
          ["x-seen", "yes"],
          ["content-length", "0"],
        ],
      }),
    );
    const headers = { "x-user": "root", x_user: "root", "x-tag": "one", "x-secret": "s", x_secret: "s" };
    const {
      status,
      seen,
      headers: got,
    } = await get(plane, {
      ...{ headers, method: "POST", body: "whole", path: "/p?token=t&a=1" },
    });
    expect([status, seen.url, seen.body]).toEqual([200, "/p?a=1", "whole"]);
    expect(seen.headers).toMatchObject({
      host: "shop.example",
      "x-user": "ann",
      "x-tag": "one,two",
      "x-role": "admin",
      "x-forwarded-for": "127.0.0.1",
    });
    for (const name of ["x_user", "x-secret", "x_secret"]) expect(seen.headers[name], name).toBeUndefined();
    expect([got["set-cookie"], got["x-seen"]]).toEqual([["s=1", "t=2"], "yes"]);
  });

  test("with a list of fields for the backend it sets no others, and no client can forge them", async () => {
    const judge: Judge = () => yes({ headers: [["x-role", "admin"]] });
    const plane = await start({ responseHeaders: ["x-user"] }, judge);
    const { seen } = await get(plane, { headers: { "x-user": "root" } });
    expect([seen.headers["x-user"], seen.headers["x-role"]]).toEqual([undefined, undefined]);
  });

  test("a refusal is the client's answer, and 403 where it says no status", async () => {
    const plane = await start({}, ({ path }) => {
      if (path === "/plain") return no();
      if (path === "/success") return no({ status: 200, body: "no" });
      if (path === "/both") return no({ status: 402 }, 0);
      return no({
        status: 302,
        headers: [
          ["location", "https://login.example/"],
          ["set-cookie", "a=1"],
          ["set-cookie", "b=2"],
          ["content-length", "1"],
        ],
        body: "go there",
      });
    });
    const { status, headers, body } = await get(plane);
    expect([status, headers.location, body]).toEqual([302, "https://login.example/", "go there"]);
    expect(headers["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect(await statusOf(plane, { path: "/plain" })).toBe(403);
    expect(await statusOf(plane, { path: "/success" })).toBe(403);
    expect(await statusOf(plane, { path: "/both" })).toBe(402);
  });

  test("however a host is written and whatever the protocol is, nobody passes unasked", async () => {
    const plane = await start({}, byToken);
    for (const name of [
      "shop.example",
      "SHOP.example.",
      "Shop.Example.:80",
      "a.wild.example",
      "A.B.WILD.example.",
    ])
      expect(await statusOf(plane, { host: name }), name).toBe(401);
    expect((await stage.askHttp2(plane.at(80), {}))[":status"]).toBe(401);
    const upgrade = {
      ...{ ":method": "CONNECT", ":protocol": "websocket", ":scheme": "http" },
      "sec-websocket-version": "13",
    };
    expect((await stage.askHttp2(plane.at(80), upgrade))[":status"]).toBe(401);
    const webSocket = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
    expect(await statusOf(plane, { headers: webSocket, host: "A.wild.example" })).toBe(401);
    const grpc = await get(plane, { headers: { "content-type": "application/grpc" } });
    expect([grpc.status, grpc.headers["grpc-status"]]).toEqual([200, "16"]);
    expect(await statusOf(plane, { host: "A.B.WILD.example.", headers: GOOD })).toBe(200);
    expect((await stage.askHttp2(plane.at(80), GOOD))[":status"]).toBe(200);
    expect(asked.at(-1)?.protocol).toBe("HTTP/2");
  });

  test("the body is text where it is text, bytes where it is not, and 413 beyond the limit", async () => {
    const plane = await start({ maxBodyBytes: 100 }, ({ body, rawBody }) =>
      body === "good" || rawBody === "fffe" ? yes() : no(),
    );
    const good = await get(plane, { method: "POST", body: "good" });
    expect([good.status, good.seen.body]).toEqual([200, "good"]);
    expect(await statusOf(plane, { method: "POST", body: Buffer.from([0xff, 0xfe]) })).toBe(200);
    expect(await statusOf(plane, { method: "POST", body: "bad" })).toBe(403);
    expect(await statusOf(plane, { method: "POST", body: "x".repeat(101) })).toBe(413);
    expect(asked).toHaveLength(3);
  });

  test("whatever is no proper answer lets nothing pass", async () => {
    const head = { ":status": 200, "content-type": "application/grpc" };
    const badly: Readonly<Record<string, Judge>> = {
      hangs: () => undefined,
      breaks: (_question, stream) => void stream.close(2),
      "is another service": (_question, stream) => {
        stream.respond({ ":status": 200, "content-type": "text/html" });
        stream.end("<html>");
        return undefined;
      },
      "answers another status": (_question, stream) => {
        stream.respond({ ...head, ":status": 503 });
        stream.end(frame(yes()));
        return undefined;
      },
      "fails without a message": (_question, stream) => {
        stream.respond({ ...head, "grpc-status": 13 }, { endStream: true });
        return undefined;
      },
      "fails after a message": (_question, stream) => void respond(stream, yes(), 13),
      "has no status": (_question, stream) => {
        stream.respond(head);
        stream.end(frame(yes()));
        return undefined;
      },
      "says nothing": (_question, stream) => {
        stream.respond({ ...head, "grpc-status": 0 }, { endStream: true });
        return undefined;
      },
      "speaks twice": (_question, stream) =>
        void respond(stream, Buffer.concat([yes(), frame(yes()).subarray(0, 5), yes()])),
      "sends garbage": () => Buffer.from("ffffffffffffffffffffffff", "hex"),
      "says too much": () => no({ body: "x".repeat(10_000_000) }),
      "says a little too much": () => no({ body: "x".repeat(70_000) }),
      "never ends": (_question, stream) => {
        stream.respond(head);
        stream.write(frame(yes()));
        return undefined;
      },
      "ends a line": () => yes({ headers: [["x-user", "ann\r\nx-role: admin"]] }),
      "sets parameters": () => yes({ setQueries: ["admin"] }),
    };
    const plane = await start({ timeoutMs: 400 }, (question, stream) => {
      const judge = badly[decodeURIComponent(question.path.slice(1))];
      return judge === undefined ? yes() : judge(question, stream);
    });
    for (const name of Object.keys(badly)) {
      expect([name, await statusOf(plane, { path: `/${encodeURIComponent(name)}` })]).toEqual([name, 503]);
    }
    expect(await statusOf(plane, { path: "/fine" })).toBe(200);
  });

  test("endpoints that do not answer are passed over, and a service without any is 503", async () => {
    const plane = await start({}, byToken);
    const first = await stage.backends.listen(authorizer(() => yes()));
    await plane.apply({ upserts: [backend("auth", [1, first])], removes: [] });
    for (const _ of [1, 2]) expect(await statusOf(plane)).toBe(200);
    await plane.apply({ upserts: [backend("auth", [1])], removes: [] });
    expect(await statusOf(plane)).toBe(503);
    await plane.apply({ upserts: [backend("auth", [])], removes: [] });
    expect(await statusOf(plane)).toBe(503);
    await plane.apply({ upserts: [{ ...backend("auth", [first]), refused: "no" }], removes: [] });
    expect(await statusOf(plane)).toBe(500);
  });

  test("a service that says it goes away is asked on another connection", async () => {
    const plane = await start({}, (_question, stream) => {
      stream.session?.goaway();
      return yes();
    });
    for (const _ of [1, 2, 3]) expect(await statusOf(plane)).toBe(200);
  });

  test("a client that goes away while the service is asked leaves nothing behind", async () => {
    let closed = 0;
    const plane = await start({ timeoutMs: 20_000 }, (_question, stream) => {
      stream.on("close", () => closed++);
      return undefined;
    });
    const socket = await stage.sockets.connect(plane.at(80));
    socket.write("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    await expect.poll(() => asked.length).toBe(1);
    socket.resetAndDestroy();
    await expect.poll(() => closed, { timeout: 5_000 }).toBe(1);
  });
}
