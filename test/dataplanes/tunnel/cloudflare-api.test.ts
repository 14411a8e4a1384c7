/** Our use of the Cloudflare API, against a double that answers as the documented one does. */
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ApiFailure, retryAfterMs } from "../../../src/dataplanes/tunnel/cloudflare/api-failure.ts";
import {
  CloudflareApi,
  type CloudflareOptions,
} from "../../../src/dataplanes/tunnel/cloudflare/cloudflare-api.ts";
import { Credential } from "../../../src/dataplanes/tunnel/cloudflare/credential.ts";
import { ApiDouble } from "./support/api-double.ts";

const ORIGIN = { address: "127.0.0.1", port: 8880, http2: false };
const FAST = { attempts: 4, firstDelayMs: 1, maxDelayMs: 4, maxAskedMs: 50 };

let double: ApiDouble;
let stop: AbortController;
beforeEach(async () => {
  double = await ApiDouble.start();
  stop = new AbortController();
});
afterEach(() => double.close());

function api(more: Partial<CloudflareOptions> = {}): CloudflareApi {
  return new CloudflareApi({
    account: double.account,
    token: new Credential(double.token),
    baseUrl: double.baseUrl,
    retry: FAST,
    signal: stop.signal,
    ...more,
  });
}

async function failure(promise: Promise<unknown>): Promise<ApiFailure> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ApiFailure) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

describe("a tunnel by its name", () => {
  test("is made once, with its configuration at Cloudflare, and found again", async () => {
    const made = await api().findOrCreate("mine");
    expect(await api().findOrCreate("mine")).toEqual(made);
    expect(double.tunnels.get(made.id)).toMatchObject({ name: "mine", configSource: "cloudflare" });
    expect(double.count("POST", /cfd_tunnel$/)).toBe(1);
  });

  test("is not a deleted one of that name", async () => {
    const old = double.add("mine");
    old.deleted = true;
    expect((await api().findOrCreate("mine")).id).not.toBe(old.id);
  });

  test("is made once also when the answer gets lost", async () => {
    double.faultFor = (method) => (method === "POST" ? { status: 504, afterwards: true } : undefined);
    const made = await api().findOrCreate("mine");
    expect([...double.tunnels.keys()]).toEqual([made.id]);
  });

  test("has a token, which the API is asked for", async () => {
    const tunnel = double.add("mine");
    expect((await api().token(tunnel.id)).reveal()).toBe(double.tokenOf(tunnel));
  });
});

describe("configuration", () => {
  test("is written once, and again only when it differs", async () => {
    const { id } = await api().findOrCreate("mine");
    expect(await api().configure(id, ORIGIN)).toEqual({ written: true, version: 1, foreign: [] });
    expect(await api().configure(id, ORIGIN)).toEqual({ written: false, version: 1, foreign: [] });
    expect(await api().configure(id, { ...ORIGIN, port: 9000 })).toMatchObject({ written: true, version: 2 });
    expect(double.tunnels.get(id)?.config).toEqual({ ingress: [{ service: "http://127.0.0.1:9000" }] });
    expect(double.count("PUT", /configurations$/)).toBe(2);
  });

  test("rules of others, originRequest, warp-routing and unknown fields stay as they are", async () => {
    const foreign = { hostname: "ssh.example.com", service: "ssh://10.0.0.1:22" };
    const rest = { originRequest: { connectTimeout: 10 }, "warp-routing": { enabled: true }, future: [1] };
    const { id } = double.add("mine", {
      config: { ingress: [foreign, { service: "http_status:404" }], ...rest },
    });
    expect(await api().configure(id, ORIGIN)).toEqual({ written: true, version: 2, foreign: [foreign] });
    expect(double.tunnels.get(id)?.config).toEqual({
      ingress: [foreign, { service: "http://127.0.0.1:8880" }],
      ...rest,
    });
  });

  test("a last rule that leads to somebody else's service is reported, not replaced", async () => {
    const config = { ingress: [{ service: "http://10.0.0.7:3000" }] };
    const { id } = double.add("mine", { config });
    const { problem } = await failure(api().configure(id, ORIGIN));
    expect(problem.reason).toBe("ForeignConfiguration");
    expect(problem.message).not.toContain("10.0.0.7");
    expect(double.tunnels.get(id)?.config).toEqual(config);
  });

  test("a tunnel that is configured where it runs is left alone", async () => {
    const { id } = double.add("mine", { configSource: "local" });
    expect((await failure(api().configure(id, ORIGIN))).problem.reason).toBe("ForeignConfiguration");
    expect(double.count("PUT", /./)).toBe(0);
  });

  test("writers take turns", async () => {
    const one = api();
    const names = ["a", "b", "c", "d"];
    const tunnels = await Promise.all(names.map((name) => one.findOrCreate(name)));
    await Promise.all(
      tunnels.flatMap(({ id }) => [1, 2].map((port) => one.configure(id, { ...ORIGIN, port }))),
    );
    expect(double.overlap.most).toBe(1);
    for (const { id } of tunnels) {
      expect(double.tunnels.get(id)).toMatchObject({
        version: 2,
        config: { ingress: [{ service: "http://127.0.0.1:2" }] },
      });
    }
  });

  test("a failed turn does not keep the next one waiting", async () => {
    const one = api();
    const { id } = double.add("mine");
    const lost = failure(one.configure("00000000-0000-0000-0000-000000000000", ORIGIN));
    const next = one.configure(id, ORIGIN);
    expect((await lost).problem.reason).toBe("TunnelNotFound");
    expect((await next).written).toBe(true);
  });
});

describe("failures that pass", () => {
  test.each([429, 500, 502, 503, 504, 408])("%i is tried again", async (status) => {
    double.faults.push({ status }, { status });
    const { id } = await api().findOrCreate("mine");
    expect(double.tunnels.has(id)).toBe(true);
    expect(double.requests.slice(0, 3).map((request) => request.status)).toEqual([status, status, 200]);
  });

  test("a broken connection is tried again", async () => {
    double.faults.push({ status: 0, reset: true });
    expect((await api().findOrCreate("mine")).name).toBe("mine");
    expect(double.requests[0]?.status).toBe(0);
  });

  test("a rate limit with Retry-After is waited for", async () => {
    const { id } = double.add("mine");
    double.allowance = 0;
    double.retryAfter = "0.02";
    expect((await api().health(id)).status).toBe("inactive");
    expect(double.requests.map(({ status }) => status)).toEqual([429, 200]);
  });

  test("tries are bounded", async () => {
    double.faults.push(...Array.from({ length: 50 }, () => ({ status: 503 })));
    const { problem, passing } = await failure(api().find("mine"));
    expect([problem.reason, passing]).toEqual(["ApiUnavailable", true]);
    expect(double.requests).toHaveLength(FAST.attempts);
  });

  test("a wait beyond the bound is not waited for", async () => {
    double.faults.push({ status: 429, headers: { "retry-after": "3600" } });
    expect((await failure(api().find("mine"))).passing).toBe(true);
    expect(double.requests).toHaveLength(1);
  });

  test("an API that says nothing is given up on", async () => {
    const silent = api({ timeoutMs: 30, baseUrl: await silentServer() });
    const { problem, passing } = await failure(silent.find("mine"));
    expect([problem.reason, passing]).toEqual(["ApiUnavailable", true]);
  });

  test("stopping ends the waits", async () => {
    double.faults.push({ status: 503 });
    const slow = api({ retry: { attempts: 4, firstDelayMs: 600_000, maxDelayMs: 600_000 } });
    const asked = failure(slow.find("mine"));
    while (double.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    stop.abort();
    expect((await asked).passing).toBe(true);
  });

  test("Retry-After is seconds or a date", () => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    expect(retryAfterMs("3", now)).toBe(3_000);
    expect(retryAfterMs("Thu, 01 Jan 2026 00:00:05 GMT", now)).toBe(5_000);
    expect(retryAfterMs("Wed, 31 Dec 2025 00:00:00 GMT", now)).toBe(0);
    expect(retryAfterMs("soon", now)).toBeUndefined();
    expect(retryAfterMs(undefined, now)).toBeUndefined();
  });
});

describe("failures that do not pass", () => {
  const SECRET = "s3cr3ts3cr3ts3cr3ts3cr3t";

  test.each([
    ["a token that is not valid", SECRET],
    ["a token that is malformed", `${SECRET} with spaces`],
    ["a token without the permission", undefined],
  ])("%s: one try, a clear finding, and no word of the token", async (_name, text) => {
    const token = new Credential(text ?? double.powerlessToken);
    const error = await failure(api({ token }).findOrCreate("mine"));
    expect(error.problem.reason).toBe("InvalidCredentials");
    expect(error.problem.message).toContain("Cloudflare Tunnel · Edit");
    expect(double.requests).toHaveLength(1);
    const shown = [
      error.problem.message,
      error.stack,
      inspect(error, { depth: 9 }),
      JSON.stringify(error),
    ].join("\n");
    expect(shown).not.toContain(token.reveal());
  });

  test("an account that does not exist is a failure that does not pass", async () => {
    const error = await failure(api({ account: "0".repeat(32) }).findOrCreate("mine"));
    expect([error.problem.reason, error.passing]).toEqual(["TunnelNotFound", false]);
  });

  test("a document that Cloudflare refuses is reported with the code of its refusal", async () => {
    const config = {
      ingress: [{ hostname: "a.example.com:80", service: "http://x:1" }, { service: "http_status:404" }],
    };
    const { id } = double.add("mine", { config });
    const error = await failure(api().configure(id, ORIGIN));
    expect(error.problem).toMatchObject({ reason: "ApiRefused", message: expect.stringContaining("1056") });
  });
});

describe("health and end", () => {
  test("connections make a tunnel healthy", async () => {
    const tunnel = double.add("mine");
    expect(await api().health(tunnel.id)).toEqual({ status: "inactive", connections: 0 });
    for (const id of ["1", "2"]) tunnel.connections.set(id, { connector: "c", location: "tst" });
    expect(await api().health(tunnel.id)).toEqual({ status: "healthy", connections: 2 });
  });

  test("deleting ends connections first, and what is gone is no failure", async () => {
    const tunnel = double.add("mine");
    tunnel.connections.set("1", { connector: "c", location: "tst" });
    await api().delete(tunnel.id);
    expect(tunnel.deleted).toBe(true);
    await api().delete(tunnel.id);
  });
});

test("a credential shows itself to nobody", () => {
  const credential = new Credential("hush");
  for (const shown of [
    String(credential),
    JSON.stringify({ credential }),
    inspect(credential, { showHidden: true }),
    `${[credential]}`,
  ]) {
    expect(shown).not.toContain("hush");
  }
  expect(credential.removeFrom("they said hush twice: hush")).toBe("they said [token] twice: [token]");
  expect(new Credential("").removeFrom("text")).toBe("text");
});

async function silentServer(): Promise<string> {
  const { createServer } = await import("node:http");
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}
