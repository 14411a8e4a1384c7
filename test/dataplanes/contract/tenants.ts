import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { DEFAULT_TENANT_LIMITS, type TenantLimits } from "../../../src/plan/tenant-limits.ts";
import { type Answer, ask } from "../support/http-peers.ts";
import { backend, forwardTo, gateway, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { type Stage, setStage } from "./stage.ts";
import type { Traits } from "./traits.ts";

const http = port(80);
const noisy = listener("noisy", http, "noisy.example");
const quiet = listener("quiet", http, "quiet.example");
const LIMIT = 4;
const BEYOND = 3;

/** A tenant at its limits, beside one that is not. */
export function describeTenants(create: CreateDataPlane, { ownHttp }: Traits): void {
  const stage = setStage(create);

  test("a tenant with too many requests in flight is refused, and nobody else is", async () => {
    const held: ServerResponse[] = [];
    const plane = await start(stage, held, { requests: LIMIT });
    const answers = manyAnswers(plane, LIMIT);
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(LIMIT);

    for (const refused of await Promise.all(manyAnswers(plane, BEYOND))) {
      expect(refused.status).toBe(503);
      expect(refused.headers["retry-after"]).toBe("1");
      expect(refused.body).toMatch(/too many requests/);
      expect(refused.body).not.toMatch(/quiet/);
    }
    const grpc = await ask(plane.at(80), {
      host: "noisy.example",
      headers: { "content-type": "application/grpc" },
    });
    expect([grpc.status, grpc.headers["grpc-status"]]).toEqual([200, "14"]);
    for (let round = 0; round < BEYOND; round++) {
      // Its own limit is the same.
      const others = await Promise.all(manyAnswers(plane, LIMIT, "quiet.example"));
      expect(others.map(({ status }) => status)).toEqual(others.map(() => 200));
    }
    const { reason } = await plane.record(({ status }) => status === 503);
    expect(reason).toBe(ownHttp ? "TenantRequestLimit" : "BackendLimit");

    for (const response of held.splice(0)) response.end("late");
    for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
    await isServedAgain(plane, held);
  });

  test("requests whose clients have left do not count any more", async () => {
    const held: ServerResponse[] = [];
    const plane = await start(stage, held, { requests: LIMIT });
    const gone = Array.from({ length: LIMIT }, () => stage.sockets.connect(plane.at(80)));
    for (const socket of await Promise.all(gone))
      socket.write("GET / HTTP/1.1\r\nHost: noisy.example\r\n\r\n");
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(LIMIT);
    // A client that only ends its side may still wait for its answer.
    for (const socket of await Promise.all(gone)) socket.resetAndDestroy();
    held.length = 0;
    await isServedAgain(plane, held);
  });

  test("a limit that is raised holds at once, and one of nothing is none", async () => {
    const held: ServerResponse[] = [];
    const plane = await start(stage, held, { requests: 1 });
    const first = manyAnswers(plane, 1);
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1);
    expect((await ask(plane.at(80), { host: "noisy.example" })).status).toBe(503);

    await plane.apply({ upserts: [limited({ requests: 0 })], removes: [] });
    const more = manyAnswers(plane, LIMIT);
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1 + LIMIT);
    for (const response of held.splice(0)) response.end();
    for (const { status } of await Promise.all([...first, ...more])) expect(status).toBe(200);
  });

  test("a backend gets no more connections than its limit, and serves all requests over them", async () => {
    let open = 0;
    let most = 0;
    const at = await stage.sockets.serve((socket) => {
      most = Math.max(most, ++open);
      socket.once("close", () => open--);
      socket.on("data", () => {
        setTimeout(() => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), 5);
      });
    });
    const plane = await stage.start([
      limited({ backendConnections: 2 }),
      http,
      noisy,
      host(noisy, "noisy.example", [rule({ action: forwardTo("b") })]),
      backend("b", [at]),
    ]);
    const answers = await Promise.all(manyAnswers(plane, 20));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(most).toBe(2);
  });
}

function limited(limits: Partial<TenantLimits>) {
  return {
    type: "gateway" as const,
    id: "gateway",
    gateway,
    tenantLimits: { ...DEFAULT_TENANT_LIMITS, ...limits },
  };
}

async function start(
  stage: Stage,
  held: ServerResponse[],
  limits: Partial<TenantLimits>,
): Promise<PlaneUnderTest> {
  const holding = await stage.backends.http((_request, response) => {
    held.push(response);
  });
  return stage.start([
    limited(limits),
    http,
    noisy,
    quiet,
    host(noisy, "noisy.example", [rule({ action: forwardTo("holding") })]),
    host(quiet, "quiet.example", [rule({ action: forwardTo("echo") })]),
    backend("holding", [holding]),
    backend("echo", [await stage.backends.echo("echo")]),
  ]);
}

function manyAnswers(plane: PlaneUnderTest, count: number, name = "noisy.example"): Promise<Answer>[] {
  return Array.from({ length: count }, () => ask(plane.at(80), { host: name }));
}

/** As many as the limit is, at the same time. */
async function isServedAgain(plane: PlaneUnderTest, held: ServerResponse[]): Promise<void> {
  const statuses = async (): Promise<readonly number[]> => {
    const answers = manyAnswers(plane, LIMIT);
    const release = setInterval(() => {
      if (held.length === LIMIT) for (const response of held.splice(0)) response.end();
    }, 5);
    const refusedToo = setTimeout(() => {
      for (const response of held.splice(0)) response.end();
    }, 2_000);
    const all = await Promise.all(answers);
    clearInterval(release);
    clearTimeout(refusedToo);
    return all.map(({ status }) => status);
  };
  await expect.poll(statuses, { timeout: 20_000, interval: 50 }).toEqual(Array(LIMIT).fill(200));
}
