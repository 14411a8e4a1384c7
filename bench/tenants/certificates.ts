/**
 * What it costs to have Envoy ask for certificates when a handshake needs them, and to have it ask
 * for all ahead; writes the table into bench/README.md: `npm run bench:certificates`. One Envoy at
 * a time.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AdsServer } from "../../src/dataplanes/envoy/ads/ads-server.ts";
import { defaultStreamLimits } from "../../src/dataplanes/envoy/ads/ads-stream.ts";
import { resource } from "../../src/dataplanes/envoy/ads/resource.ts";
import { portHttpManager } from "../../src/dataplanes/envoy/compile/http-listener.ts";
import { WITHOUT_NAME } from "../../src/dataplanes/envoy/compile/names.ts";
import { GatewayConfig } from "../../src/dataplanes/envoy/gateway-config.ts";
import { downstreamTls, filterChain, tcpListener } from "../../src/dataplanes/envoy/messages/listener.ts";
import type { PlanDelta, PortItem } from "../../src/plan/plan.ts";
import { lastingPort } from "../../test/dataplanes/support/lasting-port.ts";
import { makeEngine } from "../engine/engine.ts";
import { median } from "../median.ts";
import { askHost, firstRight, Regulars } from "./clients.ts";
import { DRAIN_SECONDS, GATEWAY, startEnvoy } from "./own-envoy.ts";
import { cpuMilliseconds, residentBytes } from "./process-cost.ts";
import { machine, megabytes, milliseconds, writeReport } from "./report.ts";
import { gatewayChange, hostOf, newCertificate, pathOf, tenantChanges } from "./world.ts";

const SIZE = Number(process.env["SIZE"] ?? 2_500);
const FIRST_HANDSHAKES = 200;
const ADDED = 10;
const REGULARS = 20;
const WIDTH = 8;
const SETTLE_MS = 200;

const WAYS = ["on demand", "ahead, the list of the start", "ahead, the list kept up"] as const;
type Way = (typeof WAYS)[number];

type Row = readonly (readonly [what: string, value: string])[];

const backend = createServer((_request, response) => response.end("here")).listen(0, "127.0.0.1");
await new Promise((resolve) => backend.once("listening", resolve));
const backendPort = (backend.address() as AddressInfo).port;
const tenants = Array.from({ length: SIZE }, (_, index) => `tenant-${index}`);
const certificates = tenants.map(newCertificate);

const rows: Row[] = [];
for (const way of WAYS) rows.push(await measure(way));
backend.close();
backend.closeAllConnections();
const names = rows[0]?.map(([what]) => what) ?? [];
const text = [
  `| | ${WAYS.join(" | ")} |`,
  `|---|${WAYS.map(() => "---:|").join("")}`,
  ...names.map((what, at) => `| ${what} | ${rows.map((row) => row[at]?.[1] ?? "").join(" | ")} |`),
  "",
  `${SIZE} tenants, ${ADDED} of them added one after the other, ${FIRST_HANDSHAKES} first handshakes, medians, on ${machine()}`,
].join("\n");
writeReport("certificates", text);
process.stdout.write(`${text}\n`);

async function measure(way: Way): Promise<Row> {
  const engine = makeEngine();
  const changes = [gatewayChange()];
  for (const [index, tenant] of tenants.entries()) {
    const certificate = certificates[index];
    if (certificate !== undefined) changes.push(...tenantChanges(tenant, certificate, backendPort));
  }
  const { plan } = engine.apply(changes);
  const began = performance.now();
  const side = await start(way, plan);
  const last = tenants.at(-1) ?? "";
  const served = await firstRight(began, () => askHost(side.port, hostOf(last), pathOf(0)), isServed);
  if (way !== "on demand") await side.holds(SIZE);
  const loaded = {
    bytes: residentBytes(side.pid),
    cpu: cpuMilliseconds(side.pid),
    time: performance.now() - began,
  };

  const first: number[] = [];
  for (const tenant of tenants.slice(0, FIRST_HANDSHAKES)) {
    const asked = performance.now();
    if (!isServed(await askHost(side.port, hostOf(tenant), pathOf(0))))
      throw new Error(`${tenant} is not served`);
    first.push(performance.now() - asked);
  }
  let next = 0;
  await Promise.all(
    Array.from({ length: WIDTH }, async () => {
      while (next < SIZE) await askHost(side.port, hostOf(tenants[next++] ?? ""), pathOf(0));
    }),
  );
  const used = residentBytes(side.pid);

  const regulars = new Regulars(side.port, tenants.slice(0, REGULARS).map(hostOf));
  await regulars.ask();
  const times: number[] = [];
  const costs: number[] = [];
  for (let index = 0; index < ADDED; index++) {
    const added = `new-${index}`;
    const made = tenantChanges(added, newCertificate(added), backendPort);
    const cpu = cpuMilliseconds(side.pid);
    const since = performance.now();
    side.add(engine.apply(made).plan, hostOf(added));
    times.push(await firstRight(since, () => askHost(side.port, hostOf(added), pathOf(3)), isServed));
    await sleep(SETTLE_MS);
    costs.push(cpuMilliseconds(side.pid) - cpu);
  }
  await sleep((DRAIN_SECONDS + 1) * 1000);
  await regulars.ask();
  const end = residentBytes(side.pid);
  const lost = regulars.lost + regulars.failed;
  regulars.leave();
  await side.close();
  process.stderr.write(`${way}: done\n`);
  return [
    ["served after a start", milliseconds(served)],
    ["all that it asks for is there after", milliseconds(loaded.time)],
    ["Envoy's CPU until then", milliseconds(loaded.cpu)],
    ["Envoy's memory then", megabytes(loaded.bytes)],
    ["first handshake and request for a name", milliseconds(median(first))],
    ["Envoy's memory when all names have been used", megabytes(used)],
    ["one tenant added", milliseconds(median(times))],
    ["Envoy's CPU for that", milliseconds(median(costs))],
    [`Envoy's memory after ${ADDED} of them`, megabytes(end)],
    [`of ${REGULARS} open connections of others, lost`, String(lost)],
  ];
}

interface Side {
  readonly port: number;
  readonly pid: number;
  /** Returns when Envoy has so many certificates. */
  holds(count: number): Promise<void>;
  add(plan: PlanDelta, host: string): void;
  close(): Promise<void>;
}

async function start(way: Way, plan: PlanDelta): Promise<Side> {
  const directory = mkdtempSync(join(tmpdir(), "mergeway-bench-"));
  const ports = new Map([
    [80, await lastingPort()],
    [443, await lastingPort()],
  ]);
  const bind = ({ port }: PortItem) => ({ address: "127.0.0.1", port: ports.get(port) ?? port });
  const config = new GatewayConfig({
    gateway: GATEWAY,
    bind,
    trustedHops: 0,
    lingerMs: 5_000,
  });
  config.apply(plan);
  const hosts = tenants.map(hostOf);
  const https = plan.upserts.find((item) => item.type === "port" && item.port === 443) as PortItem;
  const tellAhead = (): void => {
    if (way !== "on demand") config.store.set(listenerAhead(https, bind(https), hosts));
  };
  tellAhead();
  const server = new AdsServer({
    gatewayOf: () => GATEWAY,
    storeOf: () => config.store,
    limits: defaultStreamLimits,
    onAnswer: (_replica, { name, problem }) => {
      if (problem !== undefined) throw new Error(`Envoy refuses ${name}: ${problem}`);
    },
    onLeft: () => {},
  });
  const serverPath = join(directory, "ads");
  await server.listen({ path: serverPath });
  const { envoy, pid } = startEnvoy({ name: "certificates", directory, serverPath });
  return {
    port: ports.get(443) ?? 0,
    pid,
    holds: async (count) => {
      for (let active = 0; active < count; await sleep(20)) {
        const stats = await envoy.admin("GET", "/stats?filter=on_demand_secret.cert_updated");
        active = Number(/: (\d+)/.exec(stats)?.[1] ?? 0);
      }
    },
    add: (delta, host) => {
      config.apply(delta);
      hosts.push(host);
      if (way === "ahead, the list kept up") tellAhead();
    },
    close: async () => {
      await envoy.close(0);
      await server.close();
      config.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The port as Mergeway makes it, but for the list. */
function listenerAhead(
  port: PortItem,
  at: { readonly address: string; readonly port: number },
  ahead: readonly string[],
): ReturnType<typeof resource> {
  const chain = filterChain({
    name: "https",
    serverNames: [],
    tls: true,
    transportSocket: downstreamTls({
      certificates: { bySni: { withoutName: WITHOUT_NAME, ahead } },
      alpn: ["h2", "http/1.1"],
    }),
    filter: portHttpManager(port, { type: "nobody" }, {}),
  });
  const content = tcpListener({ name: port.id, ...at, chains: [chain], inspectsTls: true });
  return resource("listener", port.id, content, { needs: [{ kind: "scope", name: "*" }] });
}

function isServed({ status }: { readonly status: number }): boolean {
  return status === 200;
}
