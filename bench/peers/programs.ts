// What a run needs besides the test bed's own programs: Envoy Gateway and the driver, each built
// once and kept in the bed's cache under its version.

import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "../../tools/host/lock.ts";
import { cacheDir } from "../../tools/host/places.ts";
import { requireGo } from "../../tools/host/requirements.ts";
import { downloadModule, go, type Workshop } from "../../tools/programs/go.ts";

export const ENVOY_GATEWAY_VERSION = "v1.9.1";
export const envoyGatewayReference: string = `docker.io/envoyproxy/gateway:${ENVOY_GATEWAY_VERSION}`;

const DRIVER: string = fileURLToPath(new URL("driver", import.meta.url));

export interface EnvoyGatewayFiles {
  readonly program: string;
  readonly chart: string;
}

export async function envoyGateway(): Promise<EnvoyGatewayFiles> {
  const folder = await built(`envoy-gateway-${ENVOY_GATEWAY_VERSION}`, async (shop) => {
    const { dir } = await downloadModule(`github.com/envoyproxy/gateway@${ENVOY_GATEWAY_VERSION}`);
    // In a copy of the module itself, so that the versions of its dependencies are its own.
    cpSync(dir, shop.scratch, { recursive: true });
    makeWritable(shop.scratch);
    const version = `-X github.com/envoyproxy/gateway/internal/cmd/version.envoyGatewayVersion=${ENVOY_GATEWAY_VERSION}`;
    const flags = ["-trimpath", "-ldflags", `-s -w ${version}`];
    const program = join(shop.out, "envoy-gateway");
    await go(shop, ["build", ...flags, "-o", program, "./cmd/envoy-gateway"], { cgo: false });
    const chart = join(shop.out, "chart");
    cpSync(join(shop.scratch, "charts/gateway-helm"), chart, { recursive: true });
    writeValues(chart);
  });
  return { program: join(folder, "envoy-gateway"), chart: join(folder, "chart") };
}

/** A release fills in its own image; the module has the template only. */
function writeValues(chart: string): void {
  const template = readFileSync(join(chart, "values.tmpl.yaml"), "utf8");
  const filled: Readonly<Record<string, string>> = {
    GatewayImage: envoyGatewayReference,
    GatewayImagePullPolicy: "IfNotPresent",
  };
  const values = template.replace(/\$\{(\w+)\}/g, (whole, name: string) => filled[name] ?? whole);
  writeFileSync(join(chart, "values.yaml"), values);
}

/** The module cache is read-only, and copies keep the mode. */
function makeWritable(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) makeWritable(path);
    else chmodSync(path, 0o644);
  }
}

export async function driverProgram(): Promise<string> {
  const sources = readdirSync(DRIVER).sort();
  const hash = createHash("sha256");
  for (const name of sources) hash.update(`${name}\n`).update(readFileSync(join(DRIVER, name)));
  const folder = await built(`peers-driver-${hash.digest("hex").slice(0, 12)}`, async (shop) => {
    cpSync(DRIVER, shop.scratch, { recursive: true });
    await go(shop, ["build", "-trimpath", "-o", join(shop.out, "driver"), "."], { cgo: false });
  });
  return join(folder, "driver");
}

async function built(name: string, make: (shop: Workshop) => Promise<void>): Promise<string> {
  const folder = join(cacheDir(), "bin", name);
  if (existsSync(folder)) return folder;
  requireGo();
  return withLock(`peers-${name}`, `another run is building ${name}; waiting for it`, async () => {
    if (existsSync(folder)) return folder;
    console.error(`building ${name}`);
    mkdirSync(join(cacheDir(), "bin"), { recursive: true });
    // Not `building-`: the bed removes what has that name when it builds.
    const work = mkdtempSync(join(cacheDir(), "peers-"));
    try {
      const shop = { scratch: join(work, "scratch"), out: join(work, "out"), title: name };
      mkdirSync(shop.scratch);
      mkdirSync(shop.out);
      await make(shop);
      renameSync(shop.out, folder);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
    return folder;
  });
}
