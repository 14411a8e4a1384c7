/** Key sets that are fetched over TLS, from issuers that are slow, wrong or change their keys. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { Authenticator } from "../../../src/dataplanes/authentication/authenticator.ts";
import type { GuardItem } from "../../../src/plan/guard.ts";
import { authority, issue } from "../support/certificates.ts";
import { guard } from "../support/plan-builder.ts";

const ISSUER = "https://issuer.example";
type Handler = (request: IncomingMessage, response: ServerResponse) => void;
type Pair = Awaited<ReturnType<typeof generateKeyPair>>;

const trusted = getCACertificates("default");
const releases: (() => unknown)[] = [];
let first: Pair;
let second: Pair;

beforeAll(async () => {
  const ca = authority("tests");
  setDefaultCACertificates([...trusted, ca.cert]);
  [first, second] = await Promise.all([generateKeyPair("ES256"), generateKeyPair("ES256")]);
  serverCertificate = issue(ca, ["localhost"]);
});

afterAll(() => setDefaultCACertificates(trusted));

afterEach(async () => {
  for (const release of releases.splice(0)) await release();
});

let serverCertificate: { readonly cert: string; readonly key: string };

async function serveKeys(handler: Handler): Promise<string> {
  const { cert, key } = serverCertificate;
  const server = createServer({ cert, key }, handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  releases.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://localhost:${(server.address() as AddressInfo).port}/keys`;
}

async function setOf(pairs: Readonly<Record<string, Pair>>): Promise<string> {
  const keys = Object.entries(pairs).map(async ([kid, { publicKey }]) => ({
    ...(await exportJWK(publicKey)),
    kid,
  }));
  return JSON.stringify({ keys: await Promise.all(keys) });
}

function sign({ privateKey }: Pair, kid: string): Promise<string> {
  const exp = Math.floor(Date.now() / 1_000) + 600;
  return new SignJWT({ iss: ISSUER, exp }).setProtectedHeader({ alg: "ES256", kid }).sign(privateKey);
}

/** What the guard says of tokens; 200: they pass. */
function asking(url: string): (token: string) => Promise<number> {
  const item: GuardItem = guard("g", {
    type: "jwt",
    issuers: [{ issuer: ISSUER, keys: { type: "remote", url } }],
    requiredClaims: [],
    claimHeaders: [],
  });
  const authenticator = new Authenticator({
    guard: () => item,
    backend: () => undefined,
    clientCertificate: () => undefined,
  });
  releases.push(() => authenticator.close());
  return async (token) => {
    const headers = new Map([["authorization", `Bearer ${token}`]]);
    const request = { method: "GET", authority: "a.example", path: "/", query: "", headers };
    const outcome = await authenticator.check(["g"], request, AbortSignal.timeout(30_000));
    return outcome.allowed ? 200 : outcome.status;
  };
}

test("keys are fetched once for many tokens", async () => {
  let fetched = 0;
  const set = await setOf({ first });
  const ask = asking(
    await serveKeys((_request, response) => {
      fetched++;
      response.setHeader("content-type", "application/json").end(set);
    }),
  );
  const token = await sign(first, "first");
  expect(await Promise.all(Array.from({ length: 20 }, () => ask(token)))).toEqual(Array(20).fill(200));
  expect(fetched).toBe(1);
  // An unknown key makes no fetch so soon after another.
  expect(await ask(await sign(second, "second"))).toBe(401);
  expect(await ask(await sign(second, "first"))).toBe(401);
  expect(fetched).toBe(1);
});

test("a new key of the issuer counts after half a minute, and a withdrawn one no longer", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  releases.push(() => vi.useRealTimers());
  let set = await setOf({ first });
  const ask = asking(await serveKeys((_request, response) => response.end(set)));
  expect(await ask(await sign(first, "first"))).toBe(200);
  set = await setOf({ second });
  expect(await ask(await sign(second, "second"))).toBe(401);
  vi.setSystemTime(Date.now() + 31_000);
  expect(await ask(await sign(second, "second"))).toBe(200);
  expect(await ask(await sign(first, "first"))).toBe(401);
});

test("an issuer that fails, redirects, says nonsense or too much is 503, and later keys count", async () => {
  const set = await setOf({ first });
  const handlers: readonly Handler[] = [
    (request) => request.socket.destroy(),
    (_request, response) => response.writeHead(500).end(set),
    (_request, response) => response.writeHead(302, { location: "/elsewhere" }).end(),
    (_request, response) => response.end("no JSON"),
    (_request, response) => response.end("[]"),
    (_request, response) => response.end(JSON.stringify({ keys: "none" })),
    (_request, response) => response.end(`${" ".repeat(2_000_000)}${set}`),
    (_request, response) => response.end(JSON.stringify({ keys: Array(101).fill(JSON.parse(set).keys[0]) })),
  ];
  vi.useFakeTimers({ toFake: ["Date"] });
  releases.push(() => vi.useRealTimers());
  let turn = 0;
  const ask = asking(
    await serveKeys((request, response) => {
      const handler = handlers[turn++] ?? ((_request, last) => last.end(set));
      handler(request, response);
    }),
  );
  const token = await sign(first, "first");
  for (const [index] of handlers.entries()) {
    // However many tokens come, the issuer has a moment to recover.
    for (let round = 0; round < 3; round++) expect(await ask(token)).toBe(503);
    expect(turn).toBe(index + 1);
    vi.setSystemTime(Date.now() + 6_000);
  }
  expect(await ask(token)).toBe(200);
});

test("while an issuer cannot be reached, its keys count for an hour", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  releases.push(() => vi.useRealTimers());
  const set = await setOf({ first });
  let isAway = false;
  const ask = asking(
    await serveKeys((request, response) => {
      if (isAway) request.socket.destroy();
      else response.end(set);
    }),
  );
  const after = async (minutes: number): Promise<number> => {
    vi.setSystemTime(Date.now() + minutes * 60_000);
    return ask(await sign(first, "first"));
  };
  expect(await after(0)).toBe(200);
  isAway = true;
  expect(await after(11)).toBe(200);
  expect(await after(40)).toBe(200);
  // The issuer was asked a moment ago.
  expect(await ask(await sign(second, "second"))).toBe(401);
  expect(await after(10)).toBe(503);
  isAway = false;
  expect(await after(1)).toBe(200);
});

test("an issuer that never answers is 503 after five seconds", async () => {
  const ask = asking(await serveKeys(() => {}));
  const began = performance.now();
  expect(await ask(await sign(first, "first"))).toBe(503);
  expect(performance.now() - began).toBeLessThan(10_000);
}, 20_000);

test("an issuer whose certificate nobody vouches for is 503", async () => {
  const url = await serveKeys((_request, response) => response.end("{}"));
  const ask = asking(url.replace("localhost", "127.0.0.1"));
  expect(await ask(await sign(first, "first"))).toBe(503);
});
