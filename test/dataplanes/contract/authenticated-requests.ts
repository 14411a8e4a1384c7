import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { expect, test } from "vitest";
import { apr1 } from "../../../src/dataplanes/authentication/apr1.ts";
import {
  type AuthenticationCheck,
  ClientCredentials,
  type ExternalAuthCheck,
} from "../../../src/plan/authentication.ts";
import type { BackendItem } from "../../../src/plan/backend.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { authority, issue, type TestAuthority } from "../support/certificates.ts";
import { type Answer, type Ask, ask } from "../support/http-peers.ts";
import { backend, forwardTo, guard, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
/** Of the password `sha`. */
const SHA = "{SHA}2PRZAyDhNDqRW2OUFwZQqPNdaSY=";

/** What node:http makes of UTF-8 in a field. */
function bytes(text: string): string {
  return Buffer.from(text).toString("latin1");
}

function login(user: string, password: string): { readonly authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` };
}

function external(more: Partial<ExternalAuthCheck> = {}): ExternalAuthCheck {
  return {
    type: "externalAuth",
    backend: "auth",
    path: { type: "prefix", value: "" },
    responseHeaders: ["x-user"],
    refusalHeaders: ["set-cookie"],
    timeoutMs: 2_000,
    ...more,
  };
}

/** Requests that have passed, byte by byte; and connections to those who are asked. */
export function describeAuthenticatedRequests(create: CreateDataPlane): void {
  const stage = setStage(create);
  const start = async (check: AuthenticationCheck, ...more: PlanItem[]): Promise<PlaneUnderTest> =>
    stage.start([
      http,
      shop,
      guard("g", check),
      host(shop, "shop.example", [rule({ action: forwardTo("b"), guards: ["g"] })]),
      backend("b", [await stage.backends.echo("b")]),
      ...more,
    ]);
  const get = (plane: PlaneUnderTest, more: Partial<Ask> = {}): Promise<Answer> =>
    ask(plane.at(80), { host: "shop.example", ...more });
  const statusOf = async (plane: PlaneUnderTest, more?: Partial<Ask>): Promise<number> =>
    (await get(plane, more)).status;

  test("names of users reach the backend as UTF-8, whatever their alphabet", async () => {
    // U+010D and U+010A end in the bytes of a line's end.
    const users = ["jürgen", "Ωmega", "日本", "\u010d\u010ax-admin"];
    const file = users.map((user) => `${user}:${SHA}`).join("\n");
    const plane = await start({
      type: "basicAuth",
      users: new ClientCredentials(file),
      userHeader: "x-user",
    });
    for (const user of users) {
      const { seen } = await get(plane, { headers: login(user, "sha") });
      expect(seen.headers["x-user"]).toBe(bytes(user));
    }
  });

  test("a password that takes long to compare because of its length fits nobody", async () => {
    const [short, long] = ["x".repeat(1_024), "x".repeat(1_025)];
    const file = `short:${apr1(short, "salt")}\nlong:${apr1(long, "salt")}`;
    const plane = await start({ type: "basicAuth", users: new ClientCredentials(file) });
    expect(await statusOf(plane, { headers: login("short", short) })).toBe(200);
    expect(await statusOf(plane, { headers: login("long", long) })).toBe(401);
  });

  test("a query without its key stays as it was written", async () => {
    const plane = await start({
      type: "apiKeys",
      keys: new ClientCredentials("ann:key-of-ann"),
      headers: ["x-api-key"],
      queries: ["key"],
    });
    for (const [path, left] of [
      ["/a?z=1&flag&a=%20b+c&key=key-of-ann&a=2", "/a?z=1&flag&a=%20b+c&a=2"],
      ["/a?k%65y=key-of-ann&x", "/a?x"],
      ["/a?x=1&&%6b%65%79=key%2Dof-ann&", "/a?x=1&&"],
      ["/?key=key-of-ann", "/"],
    ] as const)
      expect((await get(plane, { path })).seen.url, path).toBe(left);
    const inHeader = { path: "/?z=1&flag&a", headers: { "x-api-key": "key-of-ann" } };
    expect((await get(plane, inHeader)).seen.url).toBe("/?z=1&flag&a");
  });

  test("fields in UTF-8 reach the service, and from there the backend and the client", async () => {
    const cookies: (string | undefined)[] = [];
    const at = await stage.backends.http(({ headers }, response) => {
      cookies.push(headers.cookie);
      response.setHeader("x-user", bytes("Jürgen Ω"));
      response.setHeader("set-cookie", [bytes("a=ü"), "b=2"]);
      response.writeHead(headers["x-refuse"] === undefined ? 200 : 403).end();
    });
    const plane = await start(external(), backend("auth", [at]));
    const passed = await get(plane, { headers: { cookie: bytes("a=€Ω"), "x-user": ["root", "toor"] } });
    expect(passed.status).toBe(200);
    expect(passed.seen.headers).toMatchObject({ cookie: bytes("a=€Ω"), "x-user": bytes("Jürgen Ω") });
    expect(cookies).toEqual([bytes("a=€Ω")]);
    const refused = await get(plane, { headers: { "x-refuse": "yes" } });
    expect([refused.status, refused.headers["set-cookie"]]).toEqual([403, [bytes("a=ü"), "b=2"]]);
  });

  test("a connection to the service is used again, and only by those who trust it alike", async () => {
    const [own, other] = [authority("own"), authority("other")];
    let connections = 0;
    const server = createServer(issue(own, ["auth.example"]), (_request, response) => response.end());
    server.on("secureConnection", () => connections++);
    const at = await stage.backends.listen(server);
    const auth = ({ cert }: TestAuthority, name: string): BackendItem =>
      backend("auth", [at], {
        tls: {
          hostname: "auth.example",
          authorities: [cert],
          subjectAltNames: [{ type: "Hostname", value: name }],
        },
      });
    const plane = await start(external(), auth(own, "auth.example"));
    for (let round = 0; round < 5; round++) expect(await statusOf(plane)).toBe(200);
    expect(connections).toBe(1);
    await plane.apply({ upserts: [auth(other, "auth.example")], removes: [] });
    expect(await statusOf(plane)).toBe(503);
    await plane.apply({ upserts: [auth(own, "other.example")], removes: [] });
    expect(await statusOf(plane)).toBe(503);
  });

  test("a service that closes a connection when it is used again is asked on a new one", async () => {
    const seen = new WeakSet<object>();
    const at = await stage.backends.http(({ socket }: IncomingMessage, response: ServerResponse) => {
      if (seen.has(socket)) socket.destroy();
      else response.end();
      seen.add(socket);
    });
    const plane = await start(external(), backend("auth", [at]));
    for (let round = 0; round < 5; round++) expect(await statusOf(plane)).toBe(200);
  });
}
