/**
 * Whom a suite meets: the backend itself, or the product with either data plane in front of it,
 * with the same manifests.
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { envoyBinary } from "../test/dataplanes/support/envoy-binary.ts";
import { lastingPort } from "../test/dataplanes/support/lasting-port.ts";
import { manifests, type Ports, READY_HOSTNAME, type Served } from "./manifests.ts";
import { endGroup, launch, until } from "./program.ts";
import { type Backend, type Certificates, SuiteFailure } from "./suite.ts";

export const CONTESTANTS = ["embedded", "envoy", "direct"] as const;
export type Contestant = (typeof CONTESTANTS)[number];

export interface Address {
  /** The backend's own port. */
  readonly backend: number;
  readonly http: number;
  /** Absent where a backend without a gateway speaks no TLS. */
  readonly https?: number;
}

export interface Target {
  readonly contestant: Contestant;
  /** Ports on loopback where the backend of this name is reached. */
  address(backend: string): Address;
  end(): Promise<void>;
}

export interface Place {
  /** For manifests and logs. */
  readonly folder: string;
  readonly certificates: Certificates;
}

export async function startContestant(
  contestant: Contestant,
  backends: readonly Backend[],
  place: Place,
): Promise<Target> {
  const find = (name: string): Backend => {
    const backend = backends.find((each) => each.name === name);
    if (backend === undefined) throw new SuiteFailure(`there is no backend ${name}`);
    return backend;
  };
  if (contestant === "direct")
    return { contestant, address: (name) => ownAddress(find(name)), end: async () => undefined };
  const shared = await freePorts();
  const served: Served[] = [];
  for (const backend of backends) {
    served.push({ backend, ports: backend.ownListener === true ? await freePorts() : shared });
  }
  const end = await startGateway(contestant, served, { ...place, ports: shared });
  const address = (name: string): Address => {
    const { backend, ports = shared } = served.find((each) => each.backend === find(name)) ?? {};
    return { backend: backend?.port ?? 0, ...ports };
  };
  return { contestant, address, end };
}

async function freePorts(): Promise<Ports> {
  return { http: await lastingPort(), https: await lastingPort() };
}

function ownAddress({ port, tlsPort }: Backend): Address {
  return { backend: port, http: port, ...(tlsPort === undefined ? {} : { https: tlsPort }) };
}

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));

async function startGateway(
  contestant: "embedded" | "envoy",
  served: readonly Served[],
  place: Place & { readonly ports: Ports },
): Promise<() => Promise<void>> {
  const folder = join(place.folder, `manifests-${contestant}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "all.yaml"), manifests(served, place.ports, place.certificates));
  const log = join(place.folder, `gateway-${contestant}.log`);
  const envoy = contestant === "envoy" ? ["--envoy", envoyBinary()] : [];
  const flags = ["--address", "127.0.0.1", "--admin-address", "off", "--data-plane", contestant, ...envoy];
  const child = launch(
    { command: process.execPath, args: [MAIN, "run", folder, ...flags, "--grace", "1"] },
    log,
  );
  try {
    await until(async () => (await answers(place.ports.http, false)) && answers(place.ports.https, true), {
      what: `mergeway run --data-plane ${contestant}`,
      seconds: 120,
      failed: () => child.exitCode !== null,
      log,
    });
  } catch (error) {
    await endGroup(child);
    throw error;
  }
  return () => endGroup(child);
}

function answers(port: number, secure: boolean): Promise<boolean> {
  const options = {
    host: "127.0.0.1",
    port,
    headers: { host: READY_HOSTNAME },
    agent: false,
    timeout: 5_000,
  };
  return new Promise((resolve) => {
    const request = secure
      ? requestHttps({ ...options, servername: READY_HOSTNAME, rejectUnauthorized: false })
      : requestHttp(options);
    request
      .on("response", (response) => {
        response.resume();
        resolve(response.statusCode === 302);
      })
      .on("timeout", () => request.destroy(new Error("no answer")))
      .on("error", () => resolve(false))
      .end();
  });
}
