/**
 * Runs stock cloudflared and keeps it running. The token goes by environment, never by an argument
 * that every user of the machine could read. Whether it is connected is asked of the connector
 * itself (`/ready` at its metrics address), which costs no API calls.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { TunnelProblem } from "./api-failure.ts";
import { readyConnections } from "./connector-readiness.ts";
import type { Credential } from "./credential.ts";
import { backoffMs } from "./retry.ts";

export interface ConnectorOptions {
  /** The program and arguments before ours; by default `cloudflared` on the PATH. */
  readonly command?: readonly string[];
  readonly token: Credential;
  /** The environment of this process; what concerns the Cloudflare API is not handed on. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** QUIC loses trailers and with them gRPC, so HTTP/2 is the default. */
  readonly protocol?: "http2" | "quic" | "auto";
  /** Connections to the edge; cloudflared's own default is four. */
  readonly connections?: number;
  readonly pollMs?: number;
  readonly restart?: { readonly firstDelayMs: number; readonly maxDelayMs: number };
  readonly onState: (state: ConnectorState) => void;
  readonly onLine?: (line: string) => void;
}

export interface ConnectorState {
  readonly connections: number;
  readonly problem?: TunnelProblem;
}

const DEFAULT_COMMAND: readonly string[] = ["cloudflared"];
const DEFAULT_RESTART = { firstDelayMs: 1_000, maxDelayMs: 60_000 };
/** A connector that ran this long starts anew without a wait. */
const STEADY_MS = 60_000;

export class ConnectorProcess {
  readonly #options: ConnectorOptions;
  readonly #stopping: AbortController = new AbortController();
  readonly #done: Promise<void>;
  #child: ChildProcess | undefined;
  #state: ConnectorState | undefined;

  constructor(options: ConnectorOptions) {
    this.#options = options;
    this.#done = this.#run();
  }

  /** Lets requests in flight finish within the limit. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    const child = this.#child;
    child?.kill("SIGTERM");
    const limit = setTimeout(() => child?.kill("SIGKILL"), graceMs);
    await this.#done;
    clearTimeout(limit);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (let attempt = 1; !signal.aborted; attempt++) {
      const started = Date.now();
      const end = await this.#runOnce().catch((error: NodeJS.ErrnoException) => ({
        error: error.code ?? "unknown",
      }));
      if (signal.aborted) return;
      if (Date.now() - started > STEADY_MS) attempt = 1;
      this.#tell({ connections: 0, problem: problemOf(end) });
      const delay = backoffMs(attempt, this.#options.restart ?? DEFAULT_RESTART);
      await sleep(delay, undefined, { signal }).catch(() => {});
    }
  }

  async #runOnce(): Promise<End> {
    const metricsPort = await freePort();
    if (this.#stopping.signal.aborted) return { code: 0 };
    const [program = "cloudflared", ...first] = this.#options.command ?? DEFAULT_COMMAND;
    const child = spawn(program, [...first, ...this.#arguments(metricsPort)], {
      env: this.#environment(),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    const ended = new Promise<End>((resolve) => {
      child.once("error", (error: NodeJS.ErrnoException) => resolve({ error: error.code ?? "unknown" }));
      child.once("exit", (code, killedBy) => resolve({ code: code ?? killedBy ?? 0 }));
    });
    for (const stream of [child.stdout, child.stderr]) this.#follow(stream);
    const watching = new AbortController();
    void this.#watch(metricsPort, watching.signal);
    const end = await ended;
    watching.abort();
    return end;
  }

  #arguments(metricsPort: number): readonly string[] {
    const { protocol = "http2", connections } = this.#options;
    return [
      "tunnel",
      "--no-autoupdate",
      "--protocol",
      protocol,
      "--metrics",
      `127.0.0.1:${metricsPort}`,
      ...(connections === undefined ? [] : ["--ha-connections", String(connections)]),
      "run",
    ];
  }

  #environment(): NodeJS.ProcessEnv {
    const { env, token } = this.#options;
    const own = Object.entries(env).filter(([name]) => !/^(CLOUDFLARE_|CF_API)/.test(name));
    return { ...Object.fromEntries(own), TUNNEL_TOKEN: token.reveal() };
  }

  /** A connector may print what it was given. */
  #follow(stream: Readable): void {
    const { onLine, token } = this.#options;
    createInterface({ input: stream }).on("line", (line) => onLine?.(token.removeFrom(line)));
  }

  async #watch(metricsPort: number, signal: AbortSignal): Promise<void> {
    const { pollMs = 1_000 } = this.#options;
    while (!signal.aborted) {
      const connections = await readyConnections(metricsPort, signal);
      if (signal.aborted) return;
      if (connections !== undefined) this.#tell({ connections });
      await sleep(pollMs, undefined, { signal }).catch(() => {});
    }
  }

  #tell(state: ConnectorState): void {
    const before = this.#state;
    if (before?.connections === state.connections && before.problem?.message === state.problem?.message)
      return;
    this.#state = state;
    this.#options.onState(state);
  }
}

type End = { readonly code: number | string } | { readonly error: string };

function problemOf(end: End): TunnelProblem {
  if ("code" in end) {
    return {
      reason: "ConnectorStopped",
      message: `cloudflared has ended (${end.code}) and is started again`,
    };
  }
  return end.error === "ENOENT"
    ? { reason: "ConnectorMissing", message: "cloudflared is not installed, or not where it was said to be" }
    : { reason: "ConnectorMissing", message: `cloudflared cannot be started (${end.error})` };
}

/**
 * Another program may take it before the connector does: then the connector ends, and is started
 * anew with another one.
 */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
