// The process under test: `mergeway run` with one of its data planes, and what is asked of its
// memory.

import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { fileURLToPath } from "node:url";
import { envoyBinary } from "../../test/dataplanes/support/envoy-binary.ts";
import { residentBytes } from "../dataplane/machine.ts";
import { type HeapFigures, Inspector } from "./inspector.ts";

export type Plane = "embedded" | "envoy";

export interface MemorySample extends HeapFigures {
  readonly second: number;
  /** Of the Node process. */
  readonly resident: number;
  readonly envoy?: {
    readonly allocated: number;
    readonly heap: number;
    readonly resident: number;
  };
}

export class Subject {
  readonly #child: ChildProcess;
  readonly #inspector: Inspector;
  readonly #began: number = performance.now();

  private constructor(child: ChildProcess, inspector: Inspector) {
    this.#child = child;
    this.#inspector = inspector;
  }

  static async start(plane: Plane, manifests: string, environment: NodeJS.ProcessEnv): Promise<Subject> {
    const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
    const flags = [
      "--data-plane",
      plane,
      "--workers",
      plane === "envoy" ? "1" : "0",
      "--admin-address",
      "off",
    ];
    const envoy = plane === "envoy" ? ["--envoy", envoyBinary()] : [];
    const serve = ["run", manifests, "--address", "127.0.0.1", "--log-format", "json", ...flags, ...envoy];
    const child = spawn(process.execPath, ["--inspect=127.0.0.1:0", main, ...serve], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, ...environment },
    });
    return new Subject(child, await Inspector.of(child));
  }

  /** After a full collection. */
  async memory(): Promise<MemorySample> {
    const figures = await this.#inspector.collect();
    const envoy = this.#envoyPid();
    const second = (performance.now() - this.#began) / 1000;
    const own = { ...figures, second, resident: residentBytes(this.#pid()) };
    if (envoy === undefined) return own;
    const told = JSON.parse(await askAdmin(adminSocketOf(envoy), "/memory")) as Record<string, string>;
    const allocated = Number(told["allocated"]);
    return { ...own, envoy: { allocated, heap: Number(told["heap_size"]), resident: residentBytes(envoy) } };
  }

  snapshot(): Promise<string> {
    return this.#inspector.snapshot();
  }

  async stop(): Promise<void> {
    this.#inspector.close();
    if (this.#child.exitCode !== null) return;
    const ended = new Promise((done) => this.#child.once("exit", done));
    this.#child.kill("SIGTERM");
    const limit = setTimeout(() => this.#child.kill("SIGKILL"), 20_000);
    await ended;
    clearTimeout(limit);
  }

  #pid(): number {
    if (this.#child.pid === undefined) throw new Error("the process under test did not start");
    return this.#child.pid;
  }

  #envoyPid(): number | undefined {
    const pid = this.#pid();
    const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean),
    );
    return children
      .map(Number)
      .find((child) => readFileSync(`/proc/${child}/comm`, "utf8").trim() === "envoy");
  }
}

/** Beside its configuration, whose file its command line names. */
function adminSocketOf(pid: number): string {
  const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  const config = words[words.indexOf("-c") + 1] ?? "";
  return config.replace(/\.json$/, ".admin");
}

function askAdmin(socketPath: string, path: string): Promise<string> {
  return new Promise((done, fail) => {
    const asked = request({ socketPath, path, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => done(Buffer.concat(parts).toString()));
      response.on("error", fail);
    });
    asked.on("error", fail).end();
  });
}
