/**
 * Programs of others as child processes: each in a process group of its own, so that none outlives
 * the run.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { SuiteFailure } from "./suite.ts";

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Finished {
  /** Undefined where it was ended because its time was up. */
  readonly code: number | undefined;
  readonly output: string;
}

/**
 * Runs a program to its end, or to the end of its time. Both outputs are kept in the log, in their
 * order.
 */
export async function finish(program: Program, log: string, seconds: number): Promise<Finished> {
  const child = launch(program, log);
  const ended = once(child, "close");
  const limit = new AbortController();
  const late = delay(seconds * 1000, "late", { signal: limit.signal }).catch(() => "cancelled");
  const first = await Promise.race([ended, late]);
  limit.abort();
  // What the program left behind in its group ends too.
  signalGroup(child, "SIGKILL");
  await ended;
  const output = readFileSync(log, "utf8");
  return { code: first === "late" ? undefined : (child.exitCode ?? 128), output };
}

export interface Served {
  readonly pid: number;
  end(): Promise<void>;
}

/** Starts a server and returns when the port accepts connections. */
export async function serve(program: Program, log: string, port: number): Promise<Served> {
  const child = launch(program, log);
  const served = { pid: child.pid ?? 0, end: () => endGroup(child) };
  try {
    await until(() => isOpen(port), {
      what: `${program.command} on port ${port}`,
      seconds: 120,
      failed: () => child.exitCode !== null,
      log,
    });
    return served;
  } catch (error) {
    await served.end();
    throw error;
  }
}

export interface Waiting {
  readonly what: string;
  readonly seconds: number;
  readonly failed: () => boolean;
  readonly log: string;
}

export async function until(test: () => Promise<boolean>, waiting: Waiting): Promise<void> {
  const end = Date.now() + waiting.seconds * 1000;
  while (!(await test())) {
    if (waiting.failed() || Date.now() > end) {
      const why = waiting.failed() ? "ended instead of serving" : `did not serve in ${waiting.seconds} s`;
      throw new SuiteFailure(`${waiting.what} ${why}:\n${lastLines(readFileSync(waiting.log, "utf8"))}`);
    }
    await delay(100);
  }
}

export function lastLines(text: string, count = 15): string {
  return text.trimEnd().split("\n").slice(-count).join("\n");
}

export function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

const launched = new Set<ChildProcess>();
// Also where the run ends early: nothing that it started stays.
process.on("exit", () => {
  for (const child of launched) signalGroup(child, "SIGKILL");
});

export function launch(program: Program, log: string): ChildProcess {
  const descriptor = openSync(log, "w");
  try {
    const child = spawn(program.command, [...program.args], {
      cwd: program.cwd,
      env: { ...process.env, ...program.env },
      stdio: ["ignore", descriptor, descriptor],
      detached: true,
    });
    launched.add(child);
    child.once("close", () => launched.delete(child));
    return child;
  } finally {
    closeSync(descriptor);
  }
}

export async function endGroup(child: ChildProcess): Promise<void> {
  const ended = child.exitCode === null && child.signalCode === null ? once(child, "close") : undefined;
  signalGroup(child, "SIGTERM");
  const killed = new AbortController();
  if (ended !== undefined) {
    await Promise.race([ended, delay(5_000, undefined, { signal: killed.signal }).catch(() => undefined)]);
    killed.abort();
  }
  signalGroup(child, "SIGKILL");
  await ended;
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
