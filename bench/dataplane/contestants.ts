import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { envoyBinary } from "../../test/dataplanes/support/envoy-binary.ts";
import { lastingPort } from "../../test/dataplanes/support/lasting-port.ts";
import { envoyConfig } from "./envoy-config.ts";
import { CONTESTANT_CORE, startPinned, stop, until } from "./machine.ts";
import { nginxConfig } from "./nginx-config.ts";
import { hostOf, prefixOf, type World } from "./world.ts";

export interface Contestant {
  readonly name: ContestantName;
  readonly pid: number;
  readonly http: number;
  readonly tls: number;
  readonly child: ChildProcess;
  /** How long the embedded data plane took to take the whole table. */
  readonly loadingMs?: number;
  close(): Promise<void>;
}

export type ContestantName = "Mergeway" | "Envoy" | "nginx";

/** Returns when the first and the last tenant are served. */
export async function startContestant(
  name: ContestantName,
  world: World,
  folder: string,
): Promise<Contestant> {
  const http = await lastingPort();
  const tls = await lastingPort();
  const { child, loadingMs } = await starters[name](world, { folder, http, tls });
  const served = (tenant: number) => () => isServed(http, tenant);
  await until(`${name} (first tenant)`, served(0), 180_000);
  await until(`${name} (last tenant)`, served(world.tenants - 1), 60_000);
  return {
    name,
    pid: child.pid ?? 0,
    http,
    tls,
    child,
    ...(loadingMs === undefined ? {} : { loadingMs }),
    close: () => stop(child),
  };
}

interface Place {
  readonly folder: string;
  readonly http: number;
  readonly tls: number;
}

interface Started {
  readonly child: ChildProcess;
  readonly loadingMs?: number;
}

const starters: Readonly<Record<ContestantName, (world: World, place: Place) => Promise<Started>>> = {
  Mergeway: async (world, { http, tls }) => {
    const script = new URL("./embedded-process.ts", import.meta.url).pathname;
    const profile = process.env["BENCH_PROFILE"];
    const flags = profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`];
    const command = [process.execPath, ...flags, script, JSON.stringify({ world, http, tls })];
    const child = startPinned(CONTESTANT_CORE, command, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    const [{ loadingMs }] = (await once(child, "message")) as [{ readonly loadingMs: number }];
    return { child, loadingMs };
  },
  Envoy: async (world, { folder, http, tls }) => {
    const file = join(folder, `envoy-${world.tenants}.json`);
    writeFileSync(file, envoyConfig(world, { http, tls }));
    const flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"];
    return { child: startPinned(CONTESTANT_CORE, [envoyBinary(), "--config-path", file, ...flags]) };
  },
  nginx: async (world, place) => {
    const file = join(place.folder, `nginx-${world.tenants}.conf`);
    writeFileSync(file, nginxConfig(world, place));
    return { child: startPinned(CONTESTANT_CORE, ["nginx", "-c", file, "-p", place.folder]) };
  },
};

function isServed(port: number, tenant: number): Promise<boolean> {
  return new Promise((resolve) => {
    const headers = { host: hostOf(tenant) };
    request({ host: "127.0.0.1", port, path: `${prefixOf(0)}/small`, headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    })
      .on("error", () => resolve(false))
      .end();
  });
}
