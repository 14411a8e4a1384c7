import { Agent } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { ApiError } from "../../src/kubernetes/api-error.ts";
import { Backoff } from "../../src/kubernetes/backoff.ts";
import { eventually, type Handler, ServerDouble } from "./server-double.ts";

let double: ServerDouble;

async function serve(handler: Handler): Promise<ServerDouble> {
  double = await ServerDouble.start(handler);
  return double;
}

afterEach(async () => {
  await double.stop();
});

describe("requests to an API server", () => {
  test("a refusal carries status, reason and the time to wait", async () => {
    await serve((_seen, answer) => answer.refuse(429, "TooManyRequests", { "retry-after": "7" }));
    const failure = await double
      .client()
      .request({ path: "/x" })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApiError);
    expect(failure).toMatchObject({ status: 429, code: "TooManyRequests", retryAfterMs: 7000 });
    expect(new Backoff({ firstMs: 1, mostMs: 10 }).next((failure as ApiError).retryAfterMs)).toBe(7000);
  });

  test("a server that does not answer in time is an error, not a wait", async () => {
    await serve(() => {});
    await expect(double.client().request({ path: "/x", timeoutMs: 50 })).rejects.toMatchObject({
      status: 0,
      message: "GET /x: no answer in time",
    });
  });

  test("an answer that breaks off is an error", async () => {
    await serve((_seen, answer) => {
      answer.raw('{"half":');
      setTimeout(() => answer.breakOff(), 10);
    });
    await expect(double.client().request({ path: "/x" })).rejects.toMatchObject({ status: 0 });
  });

  test("a kept connection that died is replaced without the caller noticing", async () => {
    await serve((_seen, answer) => answer.json({ fine: true }));
    const client = double.client();
    await client.request({ path: "/first" });
    double.answerWith((seen, answer) => {
      // The first use of the kept connection fails, as it does after a restart of the server.
      if (double.requests.filter(({ path }) => path === "/second").length === 1) answer.breakOff();
      else answer.json({ path: seen.path });
    });
    await expect(client.request({ path: "/second" })).resolves.toEqual({ path: "/second" });
  });

  test("an identity that is refused is read afresh once", async () => {
    await serve((seen, answer) => {
      if (seen.headers.authorization === "Bearer new") answer.json({ fine: true });
      else answer.refuse(401, "Unauthorized");
    });
    let token = "old";
    const agent = new Agent({ keepAlive: true });
    const client = double.client({
      server: double.url,
      connection: () => Promise.resolve({ headers: { authorization: `Bearer ${token}` }, agent }),
      forget: () => {
        token = "new";
      },
    });
    await expect(client.request({ path: "/x" })).resolves.toEqual({ fine: true });
    expect(double.requests).toHaveLength(2);
    agent.destroy();
  });

  test("an abort ends a watch and leaves no connection behind", async () => {
    let closed = 0;
    await serve((_seen, answer) => answer.events({ type: "ADDED", object: {} }));
    const abort = new AbortController();
    const events = double.client().watch({ path: "/x", signal: abort.signal, idleMs: 60_000 });
    await expect(events.next()).resolves.toMatchObject({ value: [{ type: "ADDED" }] });
    const next = events.next().catch((error: Error) => {
      closed++;
      return error.name;
    });
    abort.abort();
    await expect(next).resolves.toBe("AbortError");
    await eventually(() => expect(closed).toBe(1));
  });
});
