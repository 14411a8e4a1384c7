import { describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../src/dataplanes/embedded/embedded-data-plane.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { DEFAULT_TENANT_LIMITS } from "../../../src/plan/tenant-limits.ts";
import { type Stage, setStage } from "../contract/stage.ts";
import { createEnvoy } from "../support/envoy-plane.ts";
import { ask } from "../support/http-peers.ts";
import { lastingPort } from "../support/lasting-port.ts";
import { backend, forwardTo, gateway, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { Flood } from "./flood.ts";

const http = port(80);
const noisy = listener("noisy", http, "noisy.example");
const quiet = listener("quiet", http, "quiet.example");
const LIMIT = 30;
const QUIET_REQUESTS = 200;

const planes: readonly (readonly [string, CreateDataPlane])[] = [
  ["embedded", (options) => createEmbeddedDataPlane({ ...options, workers: 0 })],
  ["embedded, in workers", (options) => createEmbeddedDataPlane({ ...options, workers: 2 })],
  ["Envoy", (options) => createEnvoy(options)],
];

describe.each(planes)("a flood of one tenant, %s", (_name, create) => {
  const stage = setStage(create);

  test("costs another tenant not a single request", async () => {
    const plane = await stage.start(await items(stage));
    const flood = new Flood({
      port: plane.at(80),
      host: "noisy.example",
      slow: LIMIT * 2,
      bodies: 8,
      dead: 8,
    });
    stage.onRelease(() => flood.stop());
    // Its limits must be reached before anything is shown.
    await expect.poll(() => flood.answers.get("503") ?? 0, { timeout: 20_000 }).toBeGreaterThan(LIMIT);
    const statuses: number[] = [];
    for (let count = 0; count < QUIET_REQUESTS; count++) {
      const method = count % 2 === 0 ? { method: "POST", body: "x".repeat(10_000) } : {};
      statuses.push((await ask(plane.at(80), { host: "quiet.example", ...method })).status);
    }
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
    await flood.stop();
    expect(flood.bytesSent).toBeGreaterThan(1_000_000);
  });
});

async function items(stage: Stage): Promise<readonly PlanItem[]> {
  const held = await stage.sockets.serve((socket) => socket.resume());
  // Takes bytes for as long as they come, slowly, and never answers.
  const sink = await stage.sockets.serve((socket) => {
    socket.on("data", () => {
      socket.pause();
      setTimeout(() => socket.resume(), 5);
    });
  });
  const limits = { ...DEFAULT_TENANT_LIMITS, connections: 200, requests: LIMIT, backendConnections: LIMIT };
  const retry = { attempts: 5, backoffMs: 10, codes: [503] };
  return [
    { type: "gateway", id: "gateway", gateway, tenantLimits: limits },
    http,
    noisy,
    quiet,
    host(noisy, "noisy.example", [
      rule({ path: "/held", action: forwardTo("held") }),
      rule({ path: "/sink", action: forwardTo("sink") }),
      rule({ path: "/dead", action: forwardTo("dead", { retry }) }),
    ]),
    host(quiet, "quiet.example", [rule({ action: forwardTo("echo") })]),
    backend("held", [held]),
    backend("sink", [sink]),
    backend("dead", [await lastingPort()]),
    backend("echo", [await stage.backends.echo("echo")]),
  ];
}
