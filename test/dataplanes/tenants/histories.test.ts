/**
 * Random histories of requests that end in every way there is, against the embedded data plane.
 * Afterwards a tenant may have exactly as many requests and connections as its limits say: fewer,
 * and something was not given back; more, and something was twice.
 */

import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../src/dataplanes/embedded/embedded-data-plane.ts";
import type { ListenerItem, PlanItem } from "../../../src/plan/plan.ts";
import type { ForwardAction } from "../../../src/plan/rule.ts";
import { DEFAULT_TENANT_LIMITS } from "../../../src/plan/tenant-limits.ts";
import { type Stage, setStage } from "../contract/stage.ts";
import { lastingPort } from "../support/lasting-port.ts";
import { backend, forwardTo, gateway, host, listener, port, rule } from "../support/plan-builder.ts";
import type { PlaneUnderTest } from "../support/plane-under-test.ts";
import { seeded } from "../support/sockets.ts";

const REQUESTS = 6;
const CONNECTIONS = 9;
const ACTIONS = 80;
const AT_ONCE = 8;
const NAME = "noisy.example";
const http = port(80);
const noisy = listener("noisy", http, NAME);

describe("after a random history", () => {
  const stage = setStage((options) => createEmbeddedDataPlane({ ...options, workers: 0 }));

  test.each([1, 2, 3])("a tenant may have as much as before (seed %i)", async (seed) => {
    const plane = await startPlane(stage);
    const random = seeded(seed);
    const actions = actionsOn(plane, stage, random);
    let left = ACTIONS;
    const run = async (): Promise<void> => {
      while (left-- > 0) await actions[Math.floor(random() * actions.length)]?.();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, run));

    // Mirrors and clients that have only ended their side are under way until the backend's time is
    // over.
    await expect.poll(() => heldAtOnce(plane, stage), { timeout: 30_000, interval: 50 }).toBe(REQUESTS);
    await expect.poll(() => openAtOnce(plane, stage), { timeout: 30_000, interval: 50 }).toBe(CONNECTIONS);
  });
});

async function startPlane(stage: Stage): Promise<PlaneUnderTest> {
  const held = await stage.sockets.serve((socket) => socket.resume());
  const broken = await stage.sockets.serve((socket) => socket.once("data", () => socket.resetAndDestroy()));
  const upgrading = await stage.sockets.serve((socket) => {
    socket.on("end", () => socket.end());
    socket.once("data", () => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      socket.on("data", (bytes) => (String(bytes) === "bye" ? socket.destroy() : socket.write(bytes)));
    });
  });
  const busy = await stage.backends.http((_request, response) => response.writeHead(503).end());
  const mirrors = [
    { backend: "held", numerator: 1, denominator: 1 },
    { backend: "echo", numerator: 1, denominator: 1 },
  ];
  const retry = { attempts: 2, backoffMs: 10, codes: [503] };
  const rules: Readonly<Record<string, ForwardAction>> = {
    held: forwardTo("held"),
    slow: forwardTo("held", { timeouts: { backendRequestMs: 20 } }),
    late: forwardTo("held", { timeouts: { requestMs: 30 } }),
    broken: forwardTo("broken", { retry }),
    busy: forwardTo("busy", { retry }),
    dead: forwardTo("dead", { retry }),
    upgrade: forwardTo("upgrading"),
    mirrored: forwardTo("echo", { filters: { mirrors } }),
    echo: forwardTo("echo"),
  };
  return stage.start(
    [
      {
        type: "gateway",
        id: "gateway",
        gateway,
        tenantLimits: { ...DEFAULT_TENANT_LIMITS, requests: REQUESTS, connections: CONNECTIONS },
      },
      http,
      noisy,
      host(
        noisy,
        NAME,
        Object.entries(rules).map(([path, action]) => rule({ path: `/${path}`, action })),
      ),
      backend("held", [held]),
      backend("broken", [broken]),
      backend("busy", [busy]),
      backend("dead", [await lastingPort()]),
      backend("upgrading", [upgrading]),
      backend("echo", [await stage.backends.echo("echo")]),
    ],
    { limits: { backendResponseTimeoutMs: 400, keepAliveTimeoutMs: 400, bodyIdleTimeoutMs: 400 } },
  );
}

type Action = () => Promise<void>;

function actionsOn(plane: PlaneUnderTest, stage: Stage, random: () => number): readonly Action[] {
  const paths = ["held", "slow", "late", "broken", "busy", "dead", "mirrored", "echo", "nothing"];
  const anyPath = (): string => `/${paths[Math.floor(random() * paths.length)]}`;
  /** Sends, and goes away in one of three ways after a moment, or waits for the answer. */
  const send = (text: () => string): Action => {
    return async () => {
      const socket = await stage.sockets.connect(plane.at(80));
      socket.write(text());
      const way = random();
      if (way < 0.5) await Promise.race([firstOf(socket), wait(150)]);
      else await wait(way * 20);
      if (way < 0.7) socket.resetAndDestroy();
      else if (way < 0.85) socket.destroy();
      else await Promise.race([once(socket.end(), "close"), wait(500)]);
      socket.destroy();
    };
  };
  const whole = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`;
  const change = async (items: readonly PlanItem[], removes: readonly string[]): Promise<void> => {
    plane.plane.apply({ upserts: items, removes });
    await wait(5);
  };
  const elsewhere: ListenerItem = {
    ...noisy,
    owner: { kind: "ListenerSet", namespace: "other", name: "own" },
  };
  return [
    send(() => whole(anyPath())),
    send(() => whole(anyPath()) + whole(anyPath()) + whole("/echo")),
    send(
      () =>
        `POST ${anyPath()} HTTP/1.1\r\nHost: ${NAME}\r\nContent-Length: 200000\r\n\r\n${"x".repeat(9_000)}`,
    ),
    send(() => `POST ${anyPath()} HTTP/1.1\r\nHost: ${NAME}\r\nContent-Length: 4\r\n\r\nbody`),
    send(
      () =>
        `GET /upgrade HTTP/1.1\r\nHost: ${NAME}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello`,
    ),
    send(
      () => `GET /upgrade HTTP/1.1\r\nHost: ${NAME}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbye`,
    ),
    () => manyStreams(plane, anyPath, random),
    async () => {
      await change([], [noisy.id]);
      await change([noisy], []);
    },
    async () => {
      await change([elsewhere], []);
      await change([noisy], []);
    },
  ];
}

async function manyStreams(
  plane: PlaneUnderTest,
  anyPath: () => string,
  random: () => number,
): Promise<void> {
  const session = connectHttp2(`http://127.0.0.1:${plane.at(80)}`);
  session.on("error", () => {});
  const streams = Array.from({ length: 4 }, () => {
    const stream = session.request({ ":authority": NAME, ":path": anyPath() });
    stream.on("error", () => {}).resume();
    return stream;
  });
  await wait(random() * 30);
  for (const stream of streams) if (random() < 0.5) stream.close(constants.NGHTTP2_CANCEL);
  await wait(random() * 30);
  session.destroy();
}

/** How many requests get as far as the backend that never answers. */
async function heldAtOnce(plane: PlaneUnderTest, stage: Stage): Promise<number> {
  const sockets = await Promise.all(
    Array.from({ length: REQUESTS + 2 }, () => stage.sockets.connect(plane.at(80))),
  );
  const answers = sockets.map(async (socket) => {
    socket.write(`GET /held HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`);
    return String((await firstOf(socket)) ?? "").slice(9, 12);
  });
  // Those that are held are answered, too, when their time is over.
  const statuses = await Promise.all(answers);
  for (const socket of sockets) socket.resetAndDestroy();
  return statuses.filter((status) => status === "504").length;
}

/** How many connections of one request each may stay open. */
async function openAtOnce(plane: PlaneUnderTest, stage: Stage): Promise<number> {
  const sockets = await Promise.all(
    Array.from({ length: CONNECTIONS + 2 }, () => stage.sockets.connect(plane.at(80))),
  );
  let served = 0;
  for (const socket of sockets) {
    socket.write(`GET /echo HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`);
    if (String((await firstOf(socket)) ?? "").slice(9, 12) === "200") served++;
  }
  for (const socket of sockets) socket.resetAndDestroy();
  await wait(20);
  return served;
}

function firstOf(socket: Socket): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const end = (): void => resolve(undefined);
    socket.once("data", resolve).once("end", end).once("close", end).once("error", end);
  });
}
