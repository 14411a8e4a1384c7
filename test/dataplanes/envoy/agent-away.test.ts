/** The agent beside an Envoy goes away: what it guards is closed, and everything else is served. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createEnvoyDataPlane, type EnvoyDataPlane } from "../../../src/dataplanes/envoy/envoy-data-plane.ts";
import { EnvoyProcess } from "../../../src/dataplanes/envoy/process/envoy-process.ts";
import { readAccessLog } from "../../../src/dataplanes/envoy/traffic/access-log.ts";
import { ClientCredentials } from "../../../src/plan/authentication.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { envoyBinary } from "../support/envoy-binary.ts";
import { ask, Backends } from "../support/http-peers.ts";
import { lastingPort } from "../support/lasting-port.ts";
import { backend, forwardTo, gateway, guard, host, listener, port, rule } from "../support/plan-builder.ts";

const binary = envoyBinary();
const releases: (() => unknown)[] = [];

afterEach(async () => {
  for (const release of releases.splice(0).reverse()) await release();
});

test("without the agent guarded routes are 503 and all others are served", async () => {
  const directory = mkdtempSync(join(tmpdir(), "mergeway-agent-"));
  releases.push(() => rmSync(directory, { recursive: true, force: true }));
  const backends = new Backends();
  releases.push(() => backends.release());
  const serverPath = join(directory, "ads");
  const at = await lastingPort();
  const http = port(80);
  const shop = listener("shop", http, "shop.example");
  const items: PlanItem[] = [
    http,
    shop,
    guard("g", {
      type: "apiKeys",
      keys: new ClientCredentials("ann:key-of-ann"),
      headers: ["x-api-key"],
      queries: [],
    }),
    host(shop, "shop.example", [
      rule({ path: "/open", action: forwardTo("b") }),
      rule({ action: forwardTo("b"), guards: ["g"] }),
    ]),
    backend("b", [await backends.echo("b")]),
  ];
  const lines: string[] = [];
  const startAgent = async (): Promise<EnvoyDataPlane> => {
    const agent = createEnvoyDataPlane({
      bind: { address: "127.0.0.1", portMap: () => at },
      onRequestEnd: () => {},
      serve: { listen: { path: serverPath }, gatewayOf: () => gateway },
    });
    releases.push(() => agent.close({ graceMs: 0 }));
    agent.apply({ upserts: items, removes: [] });
    await agent.ready;
    return agent;
  };
  const statusOf = async (path: string): Promise<number> =>
    (await ask(at, { host: "shop.example", path, headers: { "x-api-key": "key-of-ann" } })).status;

  const agent = await startAgent();
  const envoy = new EnvoyProcess({
    ...{ binary, directory, serverPath, gateway, name: "envoy" },
    ...{ concurrency: 1, maxConnections: 100, drainSeconds: 1, extraArguments: [] },
    ...{ onLine: (line: string) => lines.push(line), onLog: () => {}, onExit: () => {} },
  });
  releases.push(() => envoy.close(0));
  await agent.served();
  await expect.poll(() => statusOf("/").catch(() => 0), { timeout: 20_000 }).toBe(200);

  await agent.close({ graceMs: 0 });
  expect(await statusOf("/")).toBe(503);
  expect(await statusOf("/open")).toBe(200);
  const reasons = (): unknown[] =>
    lines
      .map((line) => readAccessLog(gateway, line))
      .filter((record) => record !== undefined && record.status === 503)
      .map((record) => record?.reason);
  await expect.poll(reasons).toContain("AuthenticationUnavailable");

  await startAgent();
  await expect.poll(() => statusOf("/"), { timeout: 20_000 }).toBe(200);
}, 60_000);
