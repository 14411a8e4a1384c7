/** Many requests of all shapes at once over shared pools: each gets its own answer, whole. */

import { createHash } from "node:crypto";
import { once } from "node:events";
import { Agent, type IncomingMessage, type RequestOptions, request, type ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Backends } from "../../support/http-peers.ts";
import { seeded } from "../../support/sockets.ts";
import { type HostileGateway, startGateway } from "./gateway.ts";

const REQUESTS = 1_000;
const AT_ONCE = 40;
const backends = new Backends();
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
let gateway: HostileGateway;

beforeAll(async () => {
  const at = await backends.http((incoming, response) => void echo(incoming, response));
  gateway = await startGateway(
    { public: at, secret: at },
    {
      keepAliveTimeoutMs: 60_000,
      backendResponseTimeoutMs: 60_000,
      backendIdleTimeoutMs: 60_000,
      bodyIdleTimeoutMs: 60_000,
    },
  );
});

afterAll(async () => {
  agent.destroy();
  await gateway.close();
  await backends.release();
});

/**
 * Sends the digest of what it got, then as many bytes as asked for, in the shape that was asked
 * for.
 */
async function echo(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const hash = createHash("sha256");
  for await (const piece of incoming) hash.update(piece as Buffer);
  const [, id = "", size = "0", shape] = incoming.url?.split("/") ?? [];
  const body = Buffer.alloc(Number(size), id);
  response.setHeader("x-digest", hash.digest("hex"));
  response.setHeader("x-id", id);
  if (shape === "close") response.shouldKeepAlive = false;
  if (shape !== "chunks") response.setHeader("content-length", body.length);
  for (let at = 0; at < body.length; at += 10_000) response.write(body.subarray(at, at + 10_000));
  response.end();
}

async function exchange(id: string, random: () => number): Promise<void> {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const size = pick([0, 1, 100, 4_096, 4_097, 16_384, 70_000]);
  const sent = Buffer.alloc(pick([0, 0, 0, 5, 5_000, 100_000]), `${id}!`);
  const shape = pick(["length", "length", "chunks", "close"]);
  const options: RequestOptions = {
    host: "127.0.0.1",
    port: gateway.port,
    method: sent.length > 0 ? pick(["POST", "PUT"]) : pick(["GET", "GET", "HEAD", "DELETE"]),
    path: `/${id}/${size}/${shape}`,
    headers: {
      host: "public.example",
      ...(sent.length > 0 && random() < 0.5 ? { "content-length": sent.length } : {}),
    },
    agent: random() < 0.1 ? false : agent,
  };
  const asked = request(options);
  if (sent.length > 0)
    for (let at = 0; at < sent.length; at += 30_000) asked.write(sent.subarray(at, at + 30_000));
  asked.end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces);
  expect(answer.statusCode).toBe(200);
  expect(answer.headers["x-id"]).toBe(id);
  expect(answer.headers["x-digest"]).toBe(createHash("sha256").update(sent).digest("hex"));
  expect(body.equals(Buffer.alloc(options.method === "HEAD" ? 0 : size, id))).toBe(true);
}

it("every request of a mixed load gets its own answer", { timeout: 60_000 }, async () => {
  const random = seeded(1);
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < REQUESTS) await exchange(`id-${next++}`, random);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  await expect.poll(() => gateway.records.length).toBe(REQUESTS);
  expect(gateway.records.filter(({ status, reason }) => status !== 200 || reason !== undefined)).toEqual([]);
});
