/** Runs the program as a user does: in a process of its own. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { lastingPort } from "../dataplanes/support/lasting-port.ts";

export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));
const MAIN = join(ROOT, "src/main.ts");
/** 2026-06-01, for statuses and certificate checks. */
export const FIXED_TIME = "1780272000";

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export async function mergeway(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const child = launch(args, options);
  return { code: await child.exited, stdout: child.stdout(), stderr: child.stderr() };
}

export class Running {
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly exited: Promise<number | null>;
  #stdout = "";
  #stderr = "";

  constructor(child: ChildProcessByStdio<null, Readable, Readable>) {
    this.#child = child;
    child.stdout.on("data", (chunk: Buffer) => {
      this.#stdout += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    this.exited = once(child, "close").then(([code]) => code as number | null);
  }

  stdout(): string {
    return this.#stdout;
  }

  stderr(): string {
    return this.#stderr;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Waits for output that matches; if the process ends first, fails with all of its output. */
  async prints(pattern: RegExp): Promise<RegExpExecArray> {
    return await until(() => {
      const all = `${this.#stdout}\n${this.#stderr}`;
      const found = pattern.exec(all);
      if (found === null && this.#child.exitCode !== null)
        throw new Error(`it ended without ${pattern}:\n${all}`);
      return found ?? undefined;
    }, `something that matches ${pattern}`);
  }
}

/** Registers a cleanup: after the test, or after several tests that share the fixture. */
type Cleanup = (clean: () => void | Promise<void>) => void;

/** Starts a long-running command, and kills it when the test ends. */
export function start(
  args: readonly string[],
  options: RunOptions = {},
  after: Cleanup = onTestFinished,
): Running {
  const child = launch(args, options);
  after(async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  return child;
}

function launch(args: readonly string[], { input, env = {}, cwd = ROOT }: RunOptions): Running {
  const { NO_COLOR: _no, FORCE_COLOR: _force, ...inherited } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd,
    env: { ...inherited, SOURCE_DATE_EPOCH: FIXED_TIME, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(input ?? "");
  return new Running(child as unknown as ChildProcessByStdio<null, Readable, Readable>);
}

/** Makes a folder with these files, and removes it when the test ends. */
export function folder(files: Readonly<Record<string, string>>, after: Cleanup = onTestFinished): string {
  const path = mkdtempSync(join(tmpdir(), "mergeway-test-"));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const TIME_LIMIT_MS = 50_000;

/** Polls until there is an answer. The time limit only ends a test that has already failed. */
export async function until<T>(ask: () => T | undefined | Promise<T | undefined>, what: string): Promise<T> {
  const end = Date.now() + TIME_LIMIT_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let each = 0; each < count; each++) ports.push(await lastingPort());
  return ports;
}
