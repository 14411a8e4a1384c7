import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { beforeAll, expect, test } from "vitest";
import type { JwtCheck } from "../../../src/plan/authentication.ts";
import type { ListenerItem, PlanItem, PortItem } from "../../../src/plan/plan.ts";
import { type Answer, type Ask, ask } from "../support/http-peers.ts";
import { backend, forwardTo, guard, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http: PortItem = port(80);
const shop: ListenerItem = listener("shop", http, "shop.example");
const wild: ListenerItem = listener("wild", http, "*.wild.example");
const ISSUER = "https://issuer.example";
const OTHER = "https://other.example";

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;

/** Tokens that a request must have. */
export function describeTokens(create: CreateDataPlane): void {
  const stage = setStage(create);
  let pairs: { readonly own: Pair; readonly other: Pair; readonly forged: Pair };
  let sets: { readonly own: string; readonly other: string };

  beforeAll(async () => {
    const [own, other, forged] = await Promise.all([
      generateKeyPair("ES256"),
      generateKeyPair("RS256"),
      generateKeyPair("ES256"),
    ]);
    pairs = { own, other, forged };
    const set = async ({ publicKey }: Pair, kid: string): Promise<string> =>
      JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid }] });
    sets = { own: await set(own, "own"), other: await set(other, "other") };
  });

  const check = (more: Partial<JwtCheck> = {}): JwtCheck => ({
    type: "jwt",
    issuers: [
      { issuer: ISSUER, audiences: ["shop", "store"], keys: { type: "inline", jwks: sets.own } },
      { issuer: OTHER, keys: { type: "inline", jwks: sets.other } },
    ],
    requiredClaims: [],
    claimHeaders: [],
    ...more,
  });
  const sign = (
    payload: JWTPayload,
    { key = pairs.own, alg = "ES256", kid = "own" as string | undefined } = {},
  ): Promise<string> =>
    new SignJWT({ iss: ISSUER, aud: "shop", exp: inSeconds(600), ...payload })
      .setProtectedHeader({ alg, ...(kid === undefined ? {} : { kid }) })
      .sign(key.privateKey);
  const items = async (jwt: JwtCheck): Promise<PlanItem[]> => [
    http,
    shop,
    wild,
    guard("g", jwt),
    ...[shop, wild].map((each) =>
      host(each, each.hostname, [rule({ action: forwardTo("b"), guards: ["g"] })]),
    ),
    backend("b", [await stage.backends.echo("b")]),
  ];
  const start = async (jwt: JwtCheck): Promise<PlaneUnderTest> => stage.start(await items(jwt));
  const get = (plane: PlaneUnderTest, token?: string, more: Partial<Ask> = {}): Promise<Answer> =>
    ask(plane.at(80), {
      host: "shop.example",
      ...more,
      headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...more.headers },
    });
  const statusOf = async (plane: PlaneUnderTest, token?: string, more?: Partial<Ask>): Promise<number> =>
    (await get(plane, token, more)).status;

  test("tokens of each issuer pass, and backends get them", async () => {
    const plane = await start(check());
    const own = await sign({});
    const { status, seen } = await get(plane, own);
    expect([status, seen.headers["authorization"]]).toEqual([200, `Bearer ${own}`]);
    expect(await statusOf(plane, await sign({ aud: ["x", "store"] }, { kid: undefined }))).toBe(200);
    const other = { key: pairs.other, alg: "RS256", kid: "other" };
    expect(await statusOf(plane, await sign({ iss: OTHER, aud: "anything" }, other))).toBe(200);
    const refused = await get(plane);
    expect([refused.status, refused.headers["www-authenticate"]]).toEqual([401, "Bearer"]);
  });

  test("tokens that are forged, foreign, expired or unsigned do not pass", async () => {
    const plane = await start(check());
    const good = await sign({});
    const [head = "", body = "", signature = ""] = good.split(".");
    const secret = Buffer.from(sets.own);
    const tokens: Readonly<Record<string, string>> = {
      "another key": await sign({}, { key: pairs.forged }),
      "another issuer's key": await sign({ iss: OTHER }),
      "an unknown issuer": await sign({ iss: "https://eve.example" }),
      "an unknown key": await sign({}, { kid: "unknown" }),
      "another audience": await sign({ aud: "elsewhere" }),
      "no audience": await sign({ aud: [] }),
      expired: await sign({ exp: inSeconds(-120) }),
      "not yet": await sign({ nbf: inSeconds(600) }),
      "without an end": await new SignJWT({ iss: ISSUER, aud: "shop" })
        .setProtectedHeader({ alg: "ES256", kid: "own" })
        .sign(pairs.own.privateKey),
      unsigned: new UnsecuredJWT({ iss: ISSUER, aud: "shop", exp: inSeconds(600) }).encode(),
      "signed with the public key as secret": await new SignJWT({
        iss: ISSUER,
        aud: "shop",
        exp: inSeconds(600),
      })
        .setProtectedHeader({ alg: "HS256", kid: "own" })
        .sign(secret),
      changed: `${head}.${Buffer.from(JSON.stringify({ iss: ISSUER, sub: "root" })).toString("base64url")}.${signature}`,
      "without a signature": `${head}.${body}.`,
      "two parts": `${head}.${body}`,
      "no token": "x.y.z",
    };
    for (const [what, token] of Object.entries(tokens)) expect(await statusOf(plane, token), what).toBe(401);
    const doubled = { headers: { authorization: [`Bearer ${good}`, `Bearer ${good}`] } };
    expect(await statusOf(plane, undefined, doubled)).toBe(401);
    expect(await statusOf(plane, undefined, { headers: { authorization: good } })).toBe(401);
    expect(await statusOf(plane, good)).toBe(200);
  });

  test("a token without a claim that is required is 403", async () => {
    const requiredClaims = [
      { claim: "realm.roles", values: ["admin", "owner"] },
      { claim: "scope", values: ["write"] },
    ];
    const plane = await start(check({ requiredClaims }));
    const status = async (payload: JWTPayload): Promise<number> => statusOf(plane, await sign(payload));
    expect(await status({ realm: { roles: ["user", "owner"] }, scope: "read write" })).toBe(200);
    expect(await status({ "realm.roles": "admin", scope: ["write"] })).toBe(200);
    expect(await status({ realm: { roles: ["user"] }, scope: "write" })).toBe(403);
    expect(await status({ realm: { roles: "admins" }, scope: "write" })).toBe(403);
    expect(await status({ realm: { roles: ["admin"] } })).toBe(403);
    expect(await status({ realm: { roles: ["admin"] }, scope: "rewrite" })).toBe(403);
    expect(await statusOf(plane)).toBe(401);
  });

  test("claims reach the backend in header fields that nobody else can set", async () => {
    const claimHeaders = [
      { claim: "sub", header: "x-user" },
      { claim: "groups", header: "x-groups" },
      { claim: "absent", header: "x-absent" },
      { claim: "object", header: "x-object" },
      { claim: "line", header: "x-line" },
    ];
    const plane = await start(check({ claimHeaders }));
    const forged = Object.fromEntries(
      ["x-user", "x_user", "x-groups", "x-absent", "x-object", "x-line"].map((name) => [name, "root"]),
    );
    const claims = { sub: "ann", groups: ["a", "b", 3], object: { a: 1 }, line: "a\r\nx-user: root" };
    const { status, seen } = await get(plane, await sign(claims), { headers: forged });
    expect(status).toBe(200);
    expect(seen.headers).toMatchObject({ "x-user": "ann", "x-groups": "a,b,3" });
    for (const name of ["x_user", "x-absent", "x-object", "x-line"])
      expect(seen.headers[name], name).toBeUndefined();
  });

  test("however a host is written and whatever the protocol is, nobody passes without a token", async () => {
    let reached = 0;
    const at = await stage.backends.http((_request, response) => {
      reached++;
      response.end();
    });
    const plane = await stage.start([...(await items(check())), backend("b", [at])]);
    for (const name of [
      "shop.example",
      "SHOP.example.",
      "Shop.Example.:80",
      "a.wild.example",
      "A.WILD.example.",
    ])
      expect(await statusOf(plane, undefined, { host: name }), name).toBe(401);
    expect((await stage.askHttp2(plane.at(80), {}))[":status"]).toBe(401);
    const upgrade = { ":method": "CONNECT", ":protocol": "websocket", ":scheme": "http" };
    const version = { "sec-websocket-version": "13" };
    expect((await stage.askHttp2(plane.at(80), { ...upgrade, ...version }))[":status"]).toBe(401);
    const webSocket = { connection: "Upgrade", upgrade: "websocket", ...version };
    expect(await statusOf(plane, undefined, { headers: webSocket })).toBe(401);
    const grpc = await get(plane, undefined, { headers: { "content-type": "application/grpc" } });
    expect([grpc.status, grpc.headers["grpc-status"]]).toEqual([200, "16"]);
    expect(reached).toBe(0);
    expect(await statusOf(plane, await sign({}), { host: "A.WILD.example." })).toBe(200);
    expect(reached).toBe(1);
  });

  test("keys that are changed hold at once", async () => {
    const plane = await start(check());
    const token = await sign({});
    expect(await statusOf(plane, token)).toBe(200);
    const issuers: JwtCheck["issuers"] = [
      { issuer: ISSUER, audiences: ["shop"], keys: { type: "inline", jwks: sets.other } },
    ];
    await plane.apply({ upserts: [guard("g", check({ issuers }))], removes: [] });
    expect(await statusOf(plane, token)).toBe(401);
  });
}

function inSeconds(seconds: number): number {
  return Math.floor(Date.now() / 1_000) + seconds;
}
