/** One Envoy as a child of this process: started, watched, started again when it dies, drained when it has to go. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { bootstrap } from "./bootstrap.ts";

export interface EnvoyProcessOptions {
  readonly binary: string;
  /** For its files and sockets; private to this process. */
  readonly directory: string;
  readonly name: string;
  readonly gateway: string;
  readonly serverPath: string;
  readonly concurrency: number | undefined;
  readonly maxConnections: number;
  readonly drainSeconds: number;
  readonly extraArguments: readonly string[];
  /** Every line of its standard output, which holds access logs alone. */
  readonly onLine: (line: string) => void;
  /** Its own log. */
  readonly onLog: (line: string) => void;
  /** It could not be started, or ended by itself. */
  readonly onExit: (problem: string) => void;
}

const FIRST_DELAY_MS = 200;
const LONGEST_DELAY_MS = 10_000;
/** Whoever has run this long has started well: the next delay is the first again. */
const STEADY_MS = 30_000;
const DRAIN_POLL_MS = 50;
const QUIET_POLLS = 3;

export class EnvoyProcess {
  readonly #options: EnvoyProcessOptions;
  readonly #adminPath: string;
  readonly #configPath: string;
  #child: ChildProcessByStdio<null, Readable, Readable> | undefined;
  #delay = FIRST_DELAY_MS;
  #timer: NodeJS.Timeout | undefined;
  #closing = false;

  constructor(options: EnvoyProcessOptions) {
    this.#options = options;
    this.#adminPath = join(options.directory, `${options.name}.admin`);
    this.#configPath = join(options.directory, `${options.name}.json`);
    const config = bootstrap({
      node: { id: options.name, cluster: options.gateway },
      server: { path: options.serverPath },
      admin: { path: this.#adminPath },
      maxConnections: options.maxConnections,
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

  /** Lets requests finish for as long as the grace lasts, then ends it. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (child === undefined) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    if (graceMs > 0) await this.#drain(graceMs, gone);
    child.kill(graceMs > 0 ? "SIGTERM" : "SIGKILL");
    const last = setTimeout(() => child.kill("SIGKILL"), 2_000);
    await gone;
    clearTimeout(last);
  }

  /** Idle connections are not waited for: their clients are told to leave with the next answer, and there may be none. */
  async #drain(graceMs: number, gone: Promise<void>): Promise<void> {
    const until = performance.now() + graceMs;
    await this.admin("POST", "/drain_listeners?graceful&skip_exit").catch(() => undefined);
    let quiet = 0;
    while (this.#child !== undefined && performance.now() < until && quiet < QUIET_POLLS) {
      const busy = await this.#busy().catch(() => 0);
      quiet = busy === 0 ? quiet + 1 : 0;
      await Promise.race([gone, new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS))]);
    }
  }

  /** Requests and streams under way. */
  async #busy(): Promise<number> {
    const stats = await this.admin("GET", "/stats?filter=downstream_(rq|cx)_active$&usedonly");
    const counts = stats.matchAll(/^(?:http\.https?\.downstream_rq|tcp\.downstream_cx)_active: (\d+)$/gm);
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  }

  admin(method: "GET" | "POST", path: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const asked = request({ socketPath: this.#adminPath, method, path, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => resolve(Buffer.concat(chunks).toString()));
        response.on("error", reject);
      });
      asked.on("error", reject).end();
    });
  }
}
