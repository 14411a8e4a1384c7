/** Every data plane says in the same words why authentication has refused a request. */
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { registerTraffic } from "../../../src/dataplanes/traffic/exposition.ts";
import { TrafficCounts } from "../../../src/dataplanes/traffic/traffic-counts.ts";
import { ClientCredentials, type ExternalAuthCheck } from "../../../src/plan/authentication.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { type Answer, ask } from "../support/http-peers.ts";
import { backend, forwardTo, guard, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneOptions, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const ISSUER = "https://issuer.example";
const SOON = { timeout: 20_000, interval: 100 };

/** By the path whose guard refuses it. */
const REFUSALS: readonly { path: string; status: number; reason: string; body?: string }[] = [
  { path: "/keys", status: 401, reason: "Unauthenticated" },
  { path: "/claims", status: 403, reason: "ClaimsRefused" },
  { path: "/service", status: 403, reason: "ExternallyRefused" },
  { path: "/busy", status: 429, reason: "ExternallyRefused" },
  { path: "/failing", status: 503, reason: "AuthenticationUnavailable" },
  { path: "/missing", status: 500, reason: "PolicyUnavailable" },
  { path: "/body", status: 413, reason: "BodyTooLarge", body: "x".repeat(11) },
  { path: "/long-body", status: 413, reason: "BodyTooLarge", body: "x".repeat(300_000) },
];

interface Started {
  readonly plane: PlaneUnderTest;
  readonly send: (path: string, body?: string) => Promise<Answer>;
}

export function describeRefusalReasons(create: CreateDataPlane): void {
  const stage = setStage(create);

  const external = (more: Partial<ExternalAuthCheck> = {}): ExternalAuthCheck => ({
    type: "externalAuth",
    backend: "auth",
    path: { type: "prefix", value: "" },
    refusalHeaders: [],
    timeoutMs: 2_000,
    ...more,
  });

  const plan = async (jwks: string): Promise<PlanItem[]> => {
    const statuses: Readonly<Record<string, number>> = { "/service": 403, "/busy": 429, "/failing": 500 };
    const to = forwardTo("b");
    const guards = { "/keys": "keys", "/claims": "claims", "/missing": "missing" };
    const limited = { "/body": "limited", "/long-body": "limited" };
    return [
      http,
      shop,
      guard("keys", {
        type: "apiKeys",
        keys: new ClientCredentials("ann:key-of-ann"),
        headers: ["x-api-key"],
        queries: [],
      }),
      guard("claims", {
        type: "jwt",
        issuers: [{ issuer: ISSUER, keys: { type: "inline", jwks } }],
        requiredClaims: [{ claim: "role", values: ["admin"] }],
        claimHeaders: [],
      }),
      guard("asked", external()),
      guard("limited", external({ maxBodyBytes: 10 })),
      host(shop, "shop.example", [
        rule({ path: "/open", action: to }),
        ...Object.entries({ ...guards, ...limited }).map(([path, id]) =>
          rule({ path, action: to, guards: [id] }),
        ),
        rule({ action: to, guards: ["asked"] }),
      ]),
      backend("auth", [
        await stage.backends.http(({ url = "" }, response) => {
          response.writeHead(statuses[url] ?? 200).end();
        }),
      ]),
      backend("b", [await stage.backends.echo("b")]),
    ];
  };

  /** Its token has not the claim that is wanted. */
  const start = async (options: Partial<PlaneOptions>): Promise<Started> => {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const jwks = JSON.stringify({ keys: [await exportJWK(publicKey)] });
    const token = await new SignJWT({ iss: ISSUER, role: "guest" })
      .setExpirationTime("10m")
      .setProtectedHeader({ alg: "ES256" })
      .sign(privateKey);
    const plane = await stage.start(await plan(jwks), options);
    const headers = { authorization: `Bearer ${token}` };
    const send = (path: string, body = ""): Promise<Answer> =>
      ask(plane.at(80), { host: "shop.example", path, method: "POST", headers, body });
    return { plane, send };
  };

  test("a request that authentication refuses is recorded with the reason", async () => {
    const { plane, send } = await start({});
    for (const { path, status, reason, body } of REFUSALS) {
      const answer = await send(path, body);
      expect([path, answer.status]).toEqual([path, status]);
      // The word is for logs; clients learn nothing of it.
      expect(JSON.stringify([answer.headers, answer.body])).not.toContain(reason);
      const record = await plane.record((each) => each.path === path);
      expect([path, record.status, record.reason]).toEqual([path, status, reason]);
    }
    for (const path of ["/open", "/allowed"]) {
      expect((await send(path)).status).toBe(200);
      expect((await plane.record((each) => each.path === path)).reason).toBeUndefined();
    }
  });

  test("requests that authentication refuses are counted by reason where none is recorded", async () => {
    const traffic = new TrafficCounts();
    const { plane, send } = await start({ traffic, onlySampled: true });
    for (const { path, body } of REFUSALS) await send(path, body);
    for (const path of ["/open", "/allowed"]) await send(path);
    const registry = new Registry();
    registerTraffic(registry, traffic);
    const counted = async (): Promise<Readonly<Record<string, number>>> =>
      Object.fromEntries(
        Array.from(
          (await registry.metrics()).matchAll(/^mergeway_local_replies_total\{.*reason="(\w+)"\} (\d+)$/gm),
          ([, reason, count]) => [reason, Number(count)],
        ),
      );
    await expect.poll(counted, SOON).toEqual({
      Unauthenticated: 1,
      ClaimsRefused: 1,
      ExternallyRefused: 2,
      AuthenticationUnavailable: 1,
      PolicyUnavailable: 1,
      BodyTooLarge: 2,
    });
    expect(plane.records).toEqual([]);
  });
}
