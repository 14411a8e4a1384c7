// Processes by pid and start time: the kernel may have given the pid to another process since.

import { execFile, type SpawnOptions, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { ClusterFailure, failureOf } from "./failure.ts";

export interface ProcessId {
  readonly pid: number;
  /** Clock ticks since boot, field 22 of /proc/PID/stat. */
  readonly started: string;
}

/** The comm field may hold spaces and brackets, so fields are counted from its closing bracket. */
export function processIdFromStat(stat: string): ProcessId {
  const pid = Number.parseInt(stat, 10);
  const started = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  if (!Number.isInteger(pid) || started === undefined) {
    throw new Error(`not a /proc stat line: ${stat}`);
  }
  return { pid, started };
}

export function identify(pid: number, proc = "/proc"): ProcessId | undefined {
  try {
    const stat = readFileSync(`${proc}/${pid}/stat`, "utf8");
    const state = stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
    return state === "Z" || state === "X" ? undefined : processIdFromStat(stat);
  } catch {
    return undefined;
  }
}

export function isAlive(id: ProcessId, proc = "/proc"): boolean {
  return identify(id.pid, proc)?.started === id.started;
}

export function signal(id: ProcessId, name: NodeJS.Signals): void {
  if (isAlive(id)) {
    try {
      process.kill(id.pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") {
        throw error;
      }
    }
  }
}

export interface Waiting {
  readonly what: string;
  readonly seconds: number;
  readonly everyMs?: number;
  /** Asked when time is up, to say more than "timed out". */
  readonly explain?: () => string;
}

export async function until(test: () => boolean | Promise<boolean>, waiting: Waiting): Promise<void> {
  const deadline = Date.now() + waiting.seconds * 1000;
  while (!(await test())) {
    if (Date.now() > deadline) {
      const more = waiting.explain?.() ?? "";
      throw new ClusterFailure(`waited ${waiting.seconds} s for ${waiting.what}, in vain. ${more}`.trimEnd());
    }
    await delay(waiting.everyMs ?? 100);
  }
}

const run = promisify(execFile);

/** Runs a short command and gives its output; its error output becomes the failure's message. */
export async function output(command: string, args: readonly string[], cwd?: string): Promise<string> {
  try {
    const { stdout } = await run(command, [...args], {
      maxBuffer: 1 << 28,
      ...(cwd === undefined ? {} : { cwd }),
    });
    return stdout;
  } catch (error) {
    const detail = (error as { stderr?: string }).stderr?.trim() || failureOf(error);
    throw new ClusterFailure(`${command} ${args.slice(0, 3).join(" ")} failed: ${detail}`, { cause: error });
  }
}

/**
 * Runs a command in the foreground and gives its exit code (128 + n for signal n, as shells do).
 */
export function foreground(
  command: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<number> {
  return new Promise((done, fail) => {
    const child = spawn(command, [...args], { stdio: "inherit", ...options });
    // The terminal sends Ctrl-C to the child as well; this process must live on to pass on how it
    // ended.
    const ignore = (): void => {};
    process.on("SIGINT", ignore);
    child.on("error", fail);
    child.on("close", (code, killedBy) => {
      process.off("SIGINT", ignore);
      done(code ?? 128 + (killedBy === "SIGKILL" ? 9 : killedBy === "SIGINT" ? 2 : 15));
    });
  });
}
