// The unmodified conformance suite of the Gateway API against a running cluster.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { ClusterFailure } from "../host/failure.ts";
import type { Cluster } from "../host/places.ts";
import { build, builtFile, builtFolder } from "../programs/build.ts";
import { hasImage, insideEnvironment, loadImage, runInside } from "./cluster.ts";
import { inside } from "./namespace.ts";
import { unusableAddress, usableAddress } from "./network.ts";

const crdSets: readonly string[] = ["standard", "experimental", "xlistenerset"];

export async function applyCrds(cluster: Cluster, set: string): Promise<number> {
  if (!crdSets.includes(set)) {
    throw new ClusterFailure(`there are no CRDs "${set}"; there are ${crdSets.join(", ")}`);
  }
  await build(["crds"]);
  const folder = join(builtFolder("crds"), set);
  // A policy among them guards the CRDs against downgrades, so it comes last.
  const files = readdirSync(folder).sort((a, b) => Number(a.includes("_vap_")) - Number(b.includes("_vap_")));
  const kubectl = builtFile("kubernetes", "kubectl");
  const apply = [
    "apply",
    "--server-side",
    "--force-conflicts",
    ...files.flatMap((name) => ["-f", join(folder, name)]),
  ];
  const code = await runInside(cluster, [kubectl, ...apply]);
  if (code !== 0) {
    return code;
  }
  return runInside(cluster, [
    kubectl,
    "wait",
    "--for=condition=Established",
    "crd",
    "--all",
    "--timeout=60s",
  ]);
}

/** The echo server under each name that the suite's manifests use. */
export async function loadSuiteImages(cluster: Cluster): Promise<void> {
  await build(["echo-basic", "conformance"]);
  const references = JSON.parse(
    readFileSync(builtFile("conformance", "images.json"), "utf8"),
  ) as readonly string[];
  for (const reference of references) {
    if (!(await hasImage(cluster, reference))) {
      const source = builtFile("echo-basic", "echo-basic");
      await loadImage(cluster, {
        reference,
        layers: [[{ kind: "file", path: "/echo-basic", mode: 0o755, source }]],
        config: { entrypoint: ["/echo-basic"], user: "65532:65532" },
      });
      console.log(`loaded ${reference}`);
    }
  }
}

export interface Implementation {
  readonly version: string;
}

/** What the suite is given when the caller says nothing else about it. */
export function suiteFlags(given: readonly string[], implementation: Implementation): readonly string[] {
  const defaults: Readonly<Record<string, string>> = {
    "gateway-class": "mergeway",
    organization: "mergeway",
    project: "mergeway",
    url: "https://mergeway.dev",
    contact: "https://mergeway.dev",
    version: implementation.version,
    "usable-address": usableAddress,
    "unusable-address": unusableAddress,
    "test.run": "^TestConformance$",
    "test.timeout": "90m",
  };
  const named = new Set(given.map(flagName));
  const added = Object.entries(defaults).filter(([name]) => !named.has(name));
  return ["-test.v", ...added.map(([name, value]) => `--${name}=${value}`), ...given.map(absoluteReport)];
}

function flagName(flag: string): string {
  return flag.replace(/^--?/, "").split("=")[0] ?? "";
}

function absoluteReport(flag: string): string {
  return flagName(flag) === "report-output"
    ? `--report-output=${resolve(flag.slice(flag.indexOf("=") + 1))}`
    : flag;
}

/**
 * The suite's flags take `--flag value` as well as `--flag=value`; here only the second has a
 * place.
 */
export function joinFlags(args: readonly string[]): readonly string[] {
  const joined: string[] = [];
  for (const arg of args) {
    const last = joined.at(-1);
    if (!arg.startsWith("-") && last !== undefined && !last.includes("=")) {
      joined[joined.length - 1] = `${last}=${arg}`;
    } else if (arg.startsWith("-")) {
      joined.push(arg);
    } else {
      throw new ClusterFailure(`"${arg}" is no flag of the suite: --help lists some, its README all`);
    }
  }
  return joined;
}

export interface ConformanceRun {
  readonly flags: readonly string[];
  readonly implementation: Implementation;
  /** Everything the suite says goes there; the terminal gets one line per test. */
  readonly log: string;
  readonly verbose: boolean;
}

export async function runConformance(cluster: Cluster, run: ConformanceRun): Promise<number> {
  await build(["conformance"]);
  await loadSuiteImages(cluster);
  const flags = suiteFlags(run.flags, run.implementation);
  const report = flags.find((flag) => flagName(flag) === "report-output")?.split("=")[1];
  if (report !== undefined) {
    mkdirSync(dirname(report), { recursive: true });
    // A run that dies early must not leave the report of an earlier one behind as its own.
    rmSync(report, { force: true });
  }
  mkdirSync(dirname(resolve(run.log)), { recursive: true });

  const [program, args] = inside(cluster, [builtFile("conformance", "conformance.test"), ...flags]);
  const child = spawn(program, [...args], {
    env: insideEnvironment(cluster),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log = createWriteStream(run.log);
  const outcome = new Outcome();
  const read = async (stream: NodeJS.ReadableStream): Promise<void> => {
    for await (const line of createInterface({ input: stream })) {
      log.write(`${line}\n`);
      outcome.note(line);
      if (run.verbose || isNews(line)) {
        console.log(line);
      }
    }
  };
  const [[code]] = await Promise.all([once(child, "close"), read(child.stdout), read(child.stderr)]);
  log.end();
  if (code !== 0 && outcome.failed === 0) {
    console.log("no test failed, but the suite itself did");
  }
  console.log(outcome.summary());
  console.log(`everything the suite said: ${resolve(run.log)}`);
  if (report !== undefined && existsSync(report)) {
    console.log(`report: ${report}`);
  }
  return typeof code === "number" ? code : 1;
}

/** Results of whole tests, and the reason whenever something failed. */
function isNews(line: string): boolean {
  return /^\s{0,4}--- (PASS|FAIL|SKIP)|^(PASS|FAIL|ok|panic)\b|^\s+(Error|Messages):\s/.test(line);
}

class Outcome {
  readonly #counts = new Map([
    ["PASS", 0],
    ["FAIL", 0],
    ["SKIP", 0],
  ]);
  readonly #failed: string[] = [];

  get failed(): number {
    return this.#failed.length;
  }

  /** The suite's tests are one level below TestConformance. */
  note(line: string): void {
    const found = /^ {4}--- (PASS|FAIL|SKIP): TestConformance\/(\S+)/.exec(line);
    const [, result = "", name = ""] = found ?? [];
    if (found !== null) {
      this.#counts.set(result, (this.#counts.get(result) ?? 0) + 1);
      if (result === "FAIL") {
        this.#failed.push(name);
      }
    }
  }

  summary(): string {
    const counts = `${this.#counts.get("PASS")} passed, ${this.#counts.get("FAIL")} failed, ${this.#counts.get("SKIP")} skipped`;
    return this.#failed.length === 0 ? counts : `${counts}: ${this.#failed.join(", ")}`;
  }
}
