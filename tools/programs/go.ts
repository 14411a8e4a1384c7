// Building programs from Go modules, in a scratch module of their own, with a pinned compiler.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ClusterFailure } from "../host/failure.ts";
import { output } from "../host/processes.ts";
import { versions } from "./versions.ts";

export interface Workshop {
  /** Scratch folder of this build. */
  readonly scratch: string;
  /** Where the finished files go. */
  readonly out: string;
  /** Said in progress lines. */
  readonly title: string;
}

export interface GoOptions {
  readonly toolchain?: string;
  readonly cgo?: boolean;
}

function goEnvironment(options: GoOptions): NodeJS.ProcessEnv {
  return {
    ...process.env,
    GOFLAGS: "-mod=mod",
    GOWORK: "off",
    GOTOOLCHAIN: options.toolchain ?? versions.go,
    ...(options.cgo === false ? { CGO_ENABLED: "0" } : {}),
  };
}

/**
 * Runs a long command quietly, with a sign of life every half minute and its last lines when it
 * fails.
 */
export async function quietly(
  shop: Workshop,
  command: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  const log = join(shop.scratch, "build.log");
  const descriptor = openSync(log, "a");
  const began = Date.now();
  const alive = setInterval(() => {
    console.log(`  still building ${shop.title}, ${Math.round((Date.now() - began) / 1000)} s in this step`);
  }, 30_000);
  try {
    // Builds are long and clusters are not: leave the processors to whoever else needs them.
    const child = spawn("nice", ["-n", "5", ...command], {
      cwd: shop.scratch,
      env,
      stdio: ["ignore", descriptor, descriptor],
    });
    const [code] = await once(child, "close");
    if (code !== 0) {
      const tail = readFileSync(log, "utf8").trimEnd().split("\n").slice(-25).join("\n");
      throw new ClusterFailure(
        `building ${shop.title} failed in "${command.join(" ").slice(0, 120)}":\n${tail}`,
      );
    }
  } finally {
    clearInterval(alive);
    closeSync(descriptor);
  }
}

export function go(shop: Workshop, args: readonly string[], options: GoOptions = {}): Promise<void> {
  return quietly(shop, ["go", ...args], goEnvironment(options));
}

interface ScratchModule {
  /**
   * Only where it matters: a module sees the internal packages of another one when it is named as
   * if it lay below it.
   */
  readonly name?: string;
  readonly files: Readonly<Record<string, string>>;
  readonly directives?: readonly string[];
  readonly goVersion?: string;
}

export function writeModule(shop: Workshop, module: ScratchModule): void {
  const lines = [
    `module ${module.name ?? "mergeway.test/scratch"}`,
    `go ${module.goVersion ?? "1.26.0"}`,
    ...(module.directives ?? []),
  ];
  writeFileSync(join(shop.scratch, "go.mod"), `${lines.join("\n")}\n`);
  for (const [name, text] of Object.entries(module.files)) {
    writeFileSync(join(shop.scratch, name), text);
  }
}

/**
 * A file that makes packages dependencies of the scratch module without compiling them into
 * anything.
 */
export function toolsFile(packages: readonly string[]): string {
  return `//go:build tools\npackage scratch\n${packages.map((name) => `import _ "${name}"\n`).join("")}`;
}

export interface ModuleFiles {
  readonly dir: string;
  readonly goMod: string;
}

export async function downloadModule(module: string, toolchain: string = versions.go): Promise<ModuleFiles> {
  const env = ["GOFLAGS=-mod=mod", "GOWORK=off", `GOTOOLCHAIN=${toolchain}`];
  const text = await output("env", [...env, "go", "mod", "download", "-json", module]);
  const found = JSON.parse(text) as { readonly Dir: string; readonly GoMod: string };
  return { dir: found.Dir, goMod: found.GoMod };
}
