/**
 * A tenant whose bodies wait in memory, because its backends or clients do not take them, against
 * the embedded data plane. The kernel's buffers take some megabytes of each connection first.
 */

import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../src/dataplanes/embedded/embedded-data-plane.ts";
import type { BackendItem } from "../../../src/plan/backend.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { DEFAULT_TENANT_LIMITS } from "../../../src/plan/tenant-limits.ts";
import { type Stage, setStage } from "../contract/stage.ts";
import { type Answer, ask } from "../support/http-peers.ts";
import { backend, forwardTo, gateway, host, listener, port, rule } from "../support/plan-builder.ts";
import type { PlaneUnderTest } from "../support/plane-under-test.ts";

const http = port(80);
const noisy = listener("noisy", http, "noisy.example");
const quiet = listener("quiet", http, "quiet.example");
const LIMIT = 1024 * 1024;
const PIECE = Buffer.alloc(256 * 1024, "x");
/** Each waits with at least 64 KiB: these are more than the limit. */
const MANY = 30;

describe.each([
  ["in the calling thread", 0],
  ["in a worker", 1],
] as const)("a tenant whose bodies wait in memory, %s", (_name, workers) => {
  const stage = setStage((options) => createEmbeddedDataPlane({ ...options, workers }));

  test("is refused more of them when its backend does not read, and nobody else is", async () => {
    const deaf: Socket[] = [];
    const plane = await stage.start(await items(stage, (socket) => void deaf.push(socket.pause())));
    const answers: string[] = [];
    const clients: Socket[] = [];
    for (let count = 0; count < MANY; count++) clients.push(await pour(stage, plane, answers));

    await expect.poll(() => answers.length, { timeout: 20_000 }).toBeGreaterThan(0);
    expect(answers[0]).toMatch(/^HTTP\/1\.1 503 .*\r\nretry-after: 1\r\n.*too many bytes/is);
    const { reason } = await plane.record(({ status }) => status === 503);
    expect(reason).toBe("TenantBufferLimit");
    expect(answers.join()).not.toMatch(/quiet/);
    await isServed(plane, "quiet.example");
    // Some wait, and they stay as they are.
    expect(answers.length).toBeLessThan(MANY);

    for (const client of clients) client.resetAndDestroy();
    await expect.poll(async () => (await get(plane, "/")).status, { timeout: 10_000 }).toBe(200);
  });

  test("is served again when its backend reads", async () => {
    const deaf: Socket[] = [];
    const plane = await stage.start(await items(stage, (socket) => void deaf.push(socket.pause())));
    const answers: string[] = [];
    for (let count = 0; count < MANY; count++) await pour(stage, plane, answers);
    await expect.poll(() => answers.length, { timeout: 20_000 }).toBeGreaterThan(0);
    for (const socket of deaf) socket.resume();
    await expect.poll(async () => (await get(plane, "/")).status, { timeout: 10_000 }).toBe(200);
  });

  test("is refused requests while its clients do not read their answers", async () => {
    const plane = await stage.start(await items(stage, endlessAnswer));
    const clients = await slowClients(stage, plane);
    await expect.poll(async () => (await get(plane, "/")).status, { timeout: 20_000 }).toBe(503);
    await isServed(plane, "quiet.example");
    for (const client of clients) client.resetAndDestroy();
    await expect.poll(async () => (await get(plane, "/")).status, { timeout: 10_000 }).toBe(200);
  });

  test("is refused more bodies of HTTP/2 streams, which wait in their windows", async () => {
    const plane = await stage.start(await items(stage, (socket) => void socket.pause()));
    const sessions = Array.from({ length: 8 }, () => openHttp2(plane));
    const statuses: number[] = [];
    for (const session of sessions) for (let count = 0; count < 8; count++) pourHttp2(session, statuses);
    await expect.poll(() => statuses, { timeout: 20_000 }).toContain(503);
    await isServed(plane, "quiet.example");
    for (const session of sessions) session.destroy();
    await expect.poll(async () => (await get(plane, "/")).status, { timeout: 10_000 }).toBe(200);
  });

  test.each([
    ["its backend does not", "client"],
    ["its clients do not", "backend"],
  ] as const)("is refused more of them while %s read a WebSocket", async (_name, sender) => {
    const backends: Socket[] = [];
    const serve = webSocket(sender === "backend");
    const plane = await stage.start(
      await items(stage, (socket) => {
        backends.push(socket);
        serve(socket);
      }),
    );
    const clients: Socket[] = [];
    for (let count = 0; count < MANY; count++)
      clients.push(await openWebSocket(stage, plane, sender === "client"));
    await expect.poll(async () => (await get(plane, "/")).status, { timeout: 20_000 }).toBe(503);
    await isServed(plane, "quiet.example");
    for (const socket of sender === "client" ? backends : clients) socket.resetAndDestroy();
    await expect.poll(async () => (await get(plane, "/")).status, { timeout: 10_000 }).toBe(200);
  });
});

async function items(stage: Stage, serve: (socket: Socket) => void): Promise<readonly PlanItem[]> {
  const slow: BackendItem = backend("slow", [await stage.sockets.serve(serve)]);
  const tenantLimits = { ...DEFAULT_TENANT_LIMITS, bufferedBytes: LIMIT };
  return [
    { type: "gateway", id: "gateway", gateway, tenantLimits },
    http,
    noisy,
    quiet,
    host(noisy, "noisy.example", [
      rule({ path: "/slow", action: forwardTo("slow") }),
      rule({ action: forwardTo("echo") }),
    ]),
    host(quiet, "quiet.example", [rule({ action: forwardTo("echo") })]),
    slow,
    backend("echo", [await stage.backends.echo("echo")]),
  ];
}

/** A body without an end, as fast as it is taken. */
async function pour(stage: Stage, plane: PlaneUnderTest, answers: string[]): Promise<Socket> {
  const socket = await stage.sockets.connect(plane.at(80));
  socket.once("data", (bytes) => answers.push(String(bytes)));
  socket.write("POST /slow HTTP/1.1\r\nHost: noisy.example\r\nContent-Length: 1000000000\r\n\r\n");
  flood(socket);
  return socket;
}

function flood(socket: Socket): void {
  const more = (): void => {
    while (socket.writable && socket.write(PIECE));
  };
  socket.on("drain", more);
  more();
}

/** Whoever does not send does not read either. */
function webSocket(sends: boolean): (socket: Socket) => void {
  return (socket) => {
    socket.once("data", () => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
      if (sends) flood(socket);
      else socket.pause();
    });
  };
}

async function openWebSocket(stage: Stage, plane: PlaneUnderTest, sends: boolean): Promise<Socket> {
  const socket = await stage.sockets.connect(plane.at(80));
  socket.write(
    "GET /slow HTTP/1.1\r\nHost: noisy.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  const answer = await new Promise<string>((resolve) => {
    socket.once("data", (bytes) => resolve(String(bytes)));
  });
  // Those that come after the limit is reached are refused.
  expect(answer).toMatch(/^HTTP\/1\.1 (101|503) /);
  if (sends && answer.includes(" 101 ")) flood(socket);
  else socket.pause();
  return socket;
}

function endlessAnswer(socket: Socket): void {
  socket.once("data", () => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    flood(socket);
  });
}

async function slowClients(stage: Stage, plane: PlaneUnderTest): Promise<readonly Socket[]> {
  const clients: Socket[] = [];
  for (let count = 0; count < MANY; count++) {
    const socket = await stage.sockets.connect(plane.at(80));
    socket.pause();
    socket.write("GET /slow HTTP/1.1\r\nHost: noisy.example\r\n\r\n");
    clients.push(socket);
  }
  return clients;
}

function openHttp2(plane: PlaneUnderTest): ClientHttp2Session {
  return connectHttp2(`http://127.0.0.1:${plane.at(80)}`).on("error", () => {});
}

function pourHttp2(session: ClientHttp2Session, statuses: number[]): void {
  const stream = session.request({ ":method": "POST", ":path": "/slow", ":authority": "noisy.example" });
  stream.on("error", () => {}).on("response", (headers) => statuses.push(Number(headers[":status"])));
  stream.resume();
  const more = (): void => {
    while (stream.writable && stream.write(PIECE));
  };
  stream.on("drain", more);
  more();
}

function get(plane: PlaneUnderTest, path: string): Promise<Answer> {
  return ask(plane.at(80), { host: "noisy.example", path });
}

async function isServed(plane: PlaneUnderTest, name: string): Promise<void> {
  for (let count = 0; count < 20; count++) {
    const { status } = await ask(plane.at(80), { host: name, method: "POST", body: "x".repeat(100_000) });
    expect(status).toBe(200);
  }
}
