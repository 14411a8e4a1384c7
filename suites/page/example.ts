/** The example of two teams, served on free ports with an admin server. */

import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { envoyBinary } from "../../test/dataplanes/support/envoy-binary.ts";
import { lastingPort } from "../../test/dataplanes/support/lasting-port.ts";
import { endGroup, launch, until } from "../program.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Example {
  readonly url: string;
  /** Removes the set that holds the hostname which two teams want. */
  change(): void;
  end(): Promise<void>;
}

export async function startExample(dataPlane: "embedded" | "envoy", folder: string): Promise<Example> {
  const manifests = join(folder, "manifests");
  mkdirSync(manifests, { recursive: true });
  cpSync(join(ROOT, "examples/two-teams"), manifests, { recursive: true });
  const [http, https] = [await lastingPort(), await lastingPort()];
  for (const name of globSync("*.yaml", { cwd: manifests })) {
    const file = join(manifests, name);
    const text = readFileSync(file, "utf8")
      .replaceAll("8080", String(http))
      .replaceAll("8443", String(https));
    writeFileSync(file, text);
  }
  const log = join(folder, "mergeway.log");
  const envoy = dataPlane === "envoy" ? ["--envoy", envoyBinary()] : [];
  const flags = [
    "--address",
    "127.0.0.1",
    "--admin-address",
    "127.0.0.1:0",
    "--data-plane",
    dataPlane,
    ...envoy,
  ];
  const args = [join(ROOT, "src/main.ts"), "run", manifests, ...flags, "--grace", "1"];
  const child = launch({ command: process.execPath, args }, log);
  const url = (): string | undefined => /admin server on (http:\S+)/.exec(readFileSync(log, "utf8"))?.[1];
  const end = (): Promise<void> => endGroup(child);
  try {
    await until(async () => url() !== undefined && readFileSync(log, "utf8").includes("listeners served"), {
      what: "mergeway run",
      seconds: 120,
      failed: () => child.exitCode !== null,
      log,
    });
  } catch (error) {
    await end();
    throw error;
  }
  return { url: url() ?? "", change: () => rmSync(join(manifests, "team-coffee.yaml")), end };
}
