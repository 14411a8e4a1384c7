/** What is measured of a process, and where processes run. */

import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** Contestants have a core of their own; whoever asks and whoever answers share the other. */
export const CONTESTANT_CORE = 1;
export const OTHERS_CORE = 0;

export function startPinned(
  core: number,
  command: readonly string[],
  options: SpawnOptions = {},
): ChildProcess {
  const pinned = availableParallelism() > 1 ? ["taskset", "-c", String(core), ...command] : command;
  const [program = "", ...args] = pinned;
  return spawn(program, args, { stdio: ["ignore", "ignore", "inherit"], ...options });
}

/** CPU seconds of all threads so far. */
export function cpuSeconds(pid: number): number {
  let nanoseconds = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    try {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]);
    } catch {
      // A thread that has just ended.
    }
  }
  return nanoseconds / 1e9;
}

export function residentBytes(pid: number): number {
  const [, kibibytes = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kibibytes) * 1024;
}

export function loadAverage(): number {
  return Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]);
}

export function isInstalled(program: string): boolean {
  try {
    execFileSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const limit = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await ended;
  clearTimeout(limit);
}

export async function until(what: string, satisfied: () => Promise<boolean>, limitMs: number): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await satisfied())) {
    if (Date.now() > end) throw new Error(`${what} did not come about in ${limitMs / 1000} s`);
    await pause(100);
  }
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
