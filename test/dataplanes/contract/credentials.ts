import { hashSync } from "bcryptjs";
import { expect, test } from "vitest";
import {
  type ApiKeyCheck,
  type AuthenticationCheck,
  type BasicAuthCheck,
  ClientCredentials,
} from "../../../src/plan/authentication.ts";
import type { ListenerItem, PlanItem, PortItem } from "../../../src/plan/plan.ts";
import { type Answer, type Ask, ask } from "../support/http-peers.ts";
import { backend, forwardTo, guard, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http: PortItem = port(80);
const shop: ListenerItem = listener("shop", http, "shop.example");
const wild: ListenerItem = listener("wild", http, "*.wild.example");

/** Made with `openssl passwd -apr1` and `htpasswd -s`; the password is the name. */
const USERS: readonly string[] = [
  `bcrypt:${hashSync("bcrypt", 4)}`,
  "apr1:$apr1$r31.....$dgWiH2syS1n3X3ab6nQPl0",
  "sha:{SHA}2PRZAyDhNDqRW2OUFwZQqPNdaSY=",
];

function basic(lines: readonly string[], more: Partial<BasicAuthCheck> = {}): BasicAuthCheck {
  return { type: "basicAuth", users: new ClientCredentials(lines.join("\n")), ...more };
}

function keys(more: Partial<ApiKeyCheck> = {}): ApiKeyCheck {
  return {
    type: "apiKeys",
    keys: new ClientCredentials("ann:key-of-ann\nbob:key-of-bob"),
    headers: ["x-api-key"],
    queries: ["key"],
    ...more,
  };
}

function login(user: string, password: string = user): { readonly authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` };
}

/** Passwords and keys that a request must have. */
export function describeCredentials(create: CreateDataPlane): void {
  const stage = setStage(create);
  const items = async (check: AuthenticationCheck): Promise<PlanItem[]> => [
    http,
    shop,
    wild,
    guard("g", check),
    ...[shop, wild].map((each) =>
      host(each, each.hostname, [rule({ action: forwardTo("b"), guards: ["g"] })]),
    ),
    backend("b", [await stage.backends.echo("b")]),
  ];
  const start = async (check: AuthenticationCheck): Promise<PlaneUnderTest> =>
    stage.start(await items(check));
  const get = (plane: PlaneUnderTest, more: Partial<Ask> = {}): Promise<Answer> =>
    ask(plane.at(80), { host: "shop.example", ...more });
  const statusOf = async (plane: PlaneUnderTest, more?: Partial<Ask>): Promise<number> =>
    (await get(plane, more)).status;

  test("users of an htpasswd file pass with their passwords, whatever the hash is", async () => {
    const plane = await start(basic(USERS, { userHeader: "x-user" }));
    for (const user of ["bcrypt", "apr1", "sha"]) {
      const { status, seen } = await get(plane, {
        headers: { ...login(user), "x-user": "root", x_user: "root" },
      });
      expect([user, status, seen.headers["x-user"], seen.headers["x_user"]]).toEqual([
        user,
        200,
        user,
        undefined,
      ]);
      expect(seen.headers["authorization"]).toBeUndefined();
      expect(await statusOf(plane, { headers: login(user, "wrong") }), user).toBe(401);
      expect(await statusOf(plane, { headers: login(user, "") }), user).toBe(401);
      // Once more, from what is known.
      expect(await statusOf(plane, { headers: login(user) }), user).toBe(200);
    }
    const refused = await get(plane);
    expect(refused.status).toBe(401);
    expect(refused.headers["www-authenticate"]).toMatch(/^Basic realm=/);
  });

  test("credentials that are malformed, doubled or of nobody do not pass", async () => {
    const plane = await start(basic([...USERS, "odd:not-a-hash", "empty:"]));
    const good = login("sha").authorization;
    const fields: readonly (string | string[])[] = [
      "Basic",
      "Basic ",
      "Basic !!!",
      `Basic ${Buffer.from("sha").toString("base64")}`,
      `Basic ${Buffer.from("sha:sha\n").toString("base64")}`,
      good.replace("Basic", "Bearer"),
      `${good}, ${good}`,
      [good, good],
      login("nobody").authorization,
      login("odd", "not-a-hash").authorization,
      login("empty", "").authorization,
      login("__proto__").authorization,
      login("bcrypt", "x".repeat(10_000)).authorization,
    ];
    for (const authorization of fields)
      expect(await statusOf(plane, { headers: { authorization } }), String(authorization).slice(0, 80)).toBe(
        401,
      );
    expect(await statusOf(plane, { headers: { authorization: good.replace("Basic", "basic") } })).toBe(200);
  });

  test("a changed file holds at once, also for passwords that were right before", async () => {
    const plane = await start(basic([USERS[0] ?? ""]));
    expect(await statusOf(plane, { headers: login("bcrypt") })).toBe(200);
    await plane.apply({ upserts: [guard("g", basic([`bcrypt:${hashSync("other", 4)}`]))], removes: [] });
    expect(await statusOf(plane, { headers: login("bcrypt") })).toBe(401);
    expect(await statusOf(plane, { headers: login("bcrypt", "other") })).toBe(200);
    await plane.apply({ upserts: [guard("g", basic([""]))], removes: [] });
    expect(await statusOf(plane, { headers: login("bcrypt", "other") })).toBe(401);
    expect(await statusOf(plane, { headers: login("", "") })).toBe(401);
  });

  test("ten thousand users are searched at once", async () => {
    const many = Array.from(
      { length: 10_000 },
      (_, index) => `user-${index}:{SHA}2PRZAyDhNDqRW2OUFwZQqPNdaSY=`,
    );
    const plane = await start(basic(many));
    expect(await statusOf(plane, { headers: login("user-9999", "sha") })).toBe(200);
    const began = performance.now();
    for (let round = 0; round < 20; round++)
      expect(await statusOf(plane, { headers: login(`user-${round}`, "sha") })).toBe(200);
    expect(performance.now() - began).toBeLessThan(2_000);
  });

  test("who tries slow passwords keeps nobody else waiting", async () => {
    const plane = await start(basic([`slow:${hashSync("slow", 12)}`]));
    await plane.apply({
      upserts: [
        guard("open", keys()),
        host(wild, wild.hostname, [rule({ action: forwardTo("b"), guards: ["open"] })]),
      ],
      removes: [],
    });
    const tries = Array.from({ length: 80 }, (_, index) =>
      statusOf(plane, { headers: login("slow", `wrong ${index}`) }),
    );
    await new Promise((resolve) => setTimeout(resolve, 100));
    const began = performance.now();
    expect(await statusOf(plane, { host: "a.wild.example", headers: { "x-api-key": "key-of-ann" } })).toBe(
      200,
    );
    expect(performance.now() - began).toBeLessThan(1_000);
    // More than may wait are told so at once; the others find out that they are wrong.
    const first = await Promise.race(tries);
    expect([401, 503]).toContain(first);
    await plane.close();
    await Promise.allSettled(tries);
  }, 30_000);

  test("a key in a header or in the query passes, and the backend does not see it", async () => {
    const plane = await start(keys({ clientHeader: "x-client" }));
    const inHeader = await get(plane, {
      path: "/a?b=c",
      headers: { "x-api-key": "key-of-ann", "x-client": "root", "X.Client": "root" },
    });
    expect(inHeader.status).toBe(200);
    expect(inHeader.seen.headers).toMatchObject({ "x-client": "ann" });
    for (const name of ["x-api-key", "x.client"]) expect(inHeader.seen.headers[name]).toBeUndefined();
    expect(inHeader.seen.url).toBe("/a?b=c");
    const inQuery = await get(plane, { path: "/a?x=1&key=key-of-bob&y=2" });
    expect([inQuery.status, inQuery.seen.headers["x-client"]]).toEqual([200, "bob"]);
    expect(inQuery.seen.url).toBe("/a?x=1&y=2");
  });

  test("keys that are wrong, empty, doubled or elsewhere do not pass", async () => {
    const plane = await start(keys());
    const statusWith = (headers: Ask["headers"], path = "/"): Promise<number> =>
      statusOf(plane, { path, headers: headers ?? {} });
    expect(await statusWith({})).toBe(401);
    for (const value of ["", "key-of-an", "key-of-annn", "KEY-OF-ANN", "ann", "ann:key-of-ann"])
      expect(await statusWith({ "x-api-key": value }), value).toBe(401);
    expect(await statusWith({ "x-api-key": ["key-of-ann", "key-of-ann"] })).toBe(401);
    expect(await statusWith({ "x-api-key": "key-of-ann" }, "/?key=key-of-bob")).toBe(401);
    expect(await statusWith({}, "/?key=key-of-ann&key=key-of-ann")).toBe(401);
    expect(await statusWith({ "x-other": "key-of-ann", cookie: "key=key-of-ann" })).toBe(401);
    expect(await statusWith({}, "/key-of-ann?other=key-of-ann")).toBe(401);
    const { headers } = await get(plane);
    expect(headers["www-authenticate"]).toBe("ApiKey");
  });

  test("a key may be a bearer token", async () => {
    const plane = await start(keys({ headers: ["authorization"], queries: [] }));
    expect(await statusOf(plane, { headers: { authorization: "Bearer key-of-ann" } })).toBe(200);
    expect(await statusOf(plane, { headers: { authorization: "key-of-ann" } })).toBe(200);
    expect(await statusOf(plane, { headers: { authorization: "Bearer key-of-eve" } })).toBe(401);
  });

  for (const [what, check, right] of [
    ["a password", basic(USERS), login("sha")],
    ["a key", keys(), { "x-api-key": "key-of-ann" }],
  ] as const) {
    test(`however a host is written and whatever the protocol is, nobody passes without ${what}`, async () => {
      let reached = 0;
      const at = await stage.backends.http((_request, response) => {
        reached++;
        response.end();
      });
      const plane = await stage.start([...(await items(check)), backend("b", [at])]);
      for (const name of [
        "shop.example",
        "SHOP.example.",
        "Shop.Example.:80",
        "a.wild.example",
        "A.WILD.example.",
      ])
        expect(await statusOf(plane, { host: name }), name).toBe(401);
      expect((await stage.askHttp2(plane.at(80), {}))[":status"]).toBe(401);
      const upgrade = { ":method": "CONNECT", ":protocol": "websocket", ":scheme": "http" };
      expect(
        (await stage.askHttp2(plane.at(80), { ...upgrade, "sec-websocket-version": "13" }))[":status"],
      ).toBe(401);
      const webSocket = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
      expect(await statusOf(plane, { headers: webSocket })).toBe(401);
      const grpc = await get(plane, { headers: { "content-type": "application/grpc" } });
      expect([grpc.status, grpc.headers["grpc-status"]]).toEqual([200, "16"]);
      expect(reached).toBe(0);
      expect(await statusOf(plane, { host: "A.WILD.example.", headers: right })).toBe(200);
      expect((await stage.askHttp2(plane.at(80), right))[":status"]).toBe(200);
      expect(reached).toBe(2);
    });
  }

  test("credentials of several guards are all needed", async () => {
    const plane = await stage.start([
      ...(await items(basic(USERS))),
      guard("k", keys()),
      host(shop, "shop.example", [rule({ action: forwardTo("b"), guards: ["k", "g"] })]),
    ]);
    const key = { "x-api-key": "key-of-ann" };
    expect(await statusOf(plane, { headers: key })).toBe(401);
    expect(await statusOf(plane, { headers: login("sha") })).toBe(401);
    expect(await statusOf(plane, { headers: { ...key, ...login("sha") } })).toBe(200);
  });

  test("a field that a guard sets cannot come in behind the body", async () => {
    const plane = await start(keys({ clientHeader: "x-client" }));
    const socket = await stage.sockets.connect(plane.at(80));
    socket.write(
      "POST / HTTP/1.1\r\nHost: shop.example\r\nX-Api-Key: key-of-ann\r\nTrailer: X-Client\r\n" +
        "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\na\r\n0\r\nX-Client: root\r\n\r\n",
    );
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    await expect.poll(() => text, { timeout: 5_000 }).toContain('"backend":"b"');
    expect(text).toContain('"x-client":"ann"');
    expect(text).not.toContain("root");
  });
}
