/**
 * One Envoy as a child process: started, supervised, restarted when it ends by itself, and drained
 * before it is stopped.
 */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { bootstrap } from "./bootstrap.ts";
import { EnvoyAdmin } from "./envoy-admin.ts";

export interface EnvoyProcessOptions {
  readonly binary: string;
  /** For its files and sockets; private to this process. */
  readonly directory: string;
  readonly name: string;
  readonly gateway: string;
  readonly serverPath: string;
  readonly concurrency: number | undefined;
  readonly maxConnections: number;
  readonly isTraced?: boolean | undefined;
  readonly drainSeconds: number;
  readonly extraArguments: readonly string[];
  /** Every line of its standard output, which holds access logs alone. */
  readonly onLine: (line: string) => void;
  /** Its own log. */
  readonly onLog: (line: string) => void;
  /** Envoy could not be started, or ended by itself. */
  readonly onExit: (problem: string) => void;
}

const FIRST_DELAY_MS = 200;
const LONGEST_DELAY_MS = 10_000;
/** An Envoy that has run this long has started well: the backoff begins again. */
const STEADY_MS = 30_000;

export class EnvoyProcess {
  readonly #options: EnvoyProcessOptions;
  readonly #admin: EnvoyAdmin;
  readonly #configPath: string;
  #child: ChildProcessByStdio<null, Readable, Readable> | undefined;
  #delay = FIRST_DELAY_MS;
  #timer: NodeJS.Timeout | undefined;
  #closing = false;

  constructor(options: EnvoyProcessOptions) {
    this.#options = options;
    const adminPath = join(options.directory, `${options.name}.admin`);
    this.#admin = new EnvoyAdmin(adminPath);
    this.#configPath = join(options.directory, `${options.name}.json`);
    const config = bootstrap({
      node: { id: options.name, cluster: options.gateway },
      server: { path: options.serverPath },
      admin: { path: adminPath },
      maxConnections: options.maxConnections,
      isTraced: options.isTraced,
    });
    writeFileSync(this.#configPath, JSON.stringify(config), { mode: 0o600 });
    this.#start();
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  #start(): void {
    const { binary, concurrency, drainSeconds, extraArguments, onLine, onLog } = this.#options;
    const started = performance.now();
    const child = spawn(
      binary,
      [
        ...["-c", this.#configPath, "--disable-hot-restart", "--log-level", "warning"],
        // At `warning` this component logs every resource that it refuses, of any tenant.
        ...["--component-log-level", "config:error"],
        ...["--file-flush-interval-msec", "250"],
        ...["--drain-time-s", String(drainSeconds), "--parent-shutdown-time-s", String(drainSeconds + 1)],
        ...(concurrency === undefined ? [] : ["--concurrency", String(concurrency)]),
        ...extraArguments,
      ],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    this.#child = child;
    const orphaned = (): void => void child.kill("SIGKILL");
    process.once("exit", orphaned);
    createInterface({ input: child.stdout }).on("line", onLine);
    createInterface({ input: child.stderr }).on("line", onLog);
    let problem: string | undefined;
    child.on("error", (error) => {
      problem = error.message;
      child.emit("exit", null, null);
    });
    child.once("exit", (code, signal) => {
      process.off("exit", orphaned);
      this.#child = undefined;
      if (this.#closing) return;
      this.#options.onExit(problem ?? `Envoy ended with ${signal ?? `code ${code}`}`);
      if (performance.now() - started > STEADY_MS) this.#delay = FIRST_DELAY_MS;
      this.#timer = setTimeout(() => this.#start(), this.#delay);
      this.#delay = Math.min(this.#delay * 2, LONGEST_DELAY_MS);
    });
  }

  /** Drains: requests may finish within the grace period, then the process is ended. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (child === undefined) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    if (graceMs > 0) await this.#admin.drain({ graceMs, idleMs: 0, isGone: () => this.#child === undefined });
    child.kill(graceMs > 0 ? "SIGTERM" : "SIGKILL");
    const last = setTimeout(() => child.kill("SIGKILL"), 2_000);
    await gone;
    clearTimeout(last);
  }

  admin(method: "GET" | "POST", path: string): Promise<string> {
    return this.#admin.ask(method, path);
  }
}
