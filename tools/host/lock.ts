// Exclusive work across processes. The lock is the kernel's (flock), so a killed holder never
// leaves it behind.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ClusterFailure } from "./failure.ts";
import { cacheDir } from "./places.ts";

export async function withLock<T>(name: string, busy: string, work: () => Promise<T>): Promise<T> {
  const folder = join(cacheDir(), "locks");
  mkdirSync(folder, { recursive: true });
  // The holder ends when its input does: at release, or when this process dies in whatever way.
  const holder = spawn("flock", ["--exclusive", join(folder, name), "sh", "-c", "echo held; exec cat"], {
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
  });
  const gone = once(holder, "close");
  const notice = setTimeout(() => console.error(busy), 1000);
  try {
    const held = await Promise.race([once(holder.stdout, "data").then(() => true), gone.then(() => false)]);
    if (!held) {
      throw new ClusterFailure(`could not lock ${name}: is flock (util-linux) installed?`);
    }
    clearTimeout(notice);
    return await work();
  } finally {
    clearTimeout(notice);
    holder.stdin.end();
    await gone;
  }
}
