import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Bed } from "../../../tools/cluster/bed.ts";
import { insideEnvironment } from "../../../tools/cluster/cluster.ts";
import { inside } from "../../../tools/cluster/namespace.ts";

const LOAD = fileURLToPath(new URL("load.ts", import.meta.url));

export interface Load {
  readonly sent: number;
  readonly failed: number;
  readonly reasons: readonly string[];
}

export interface RunningLoad {
  /**
   * Until so many more requests have been answered: a test that waits for them needs no pauses, on
   * whatever machine it runs.
   */
  readonly answered: (more: number) => Promise<void>;
  /** Ends the load, and tells what became of it. */
  readonly stop: () => Promise<Load>;
}

/** A steady load on one host of a Gateway, from inside the cluster's network. */
export function startLoad(bed: Bed, address: string, host: string): RunningLoad {
  // The end of a load whose test has failed to end it.
  const seconds = "3600";
  const command = [process.execPath, LOAD, `http://${address}/`, host, seconds];
  const [program, args] = inside(bed.cluster, command);
  const env = insideEnvironment(bed.cluster);
  const child = spawn(program, [...args], { env, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const ended = once(lines, "close");
  let answers = 0;
  let outcome: Load | undefined;
  lines.on("line", (line) => {
    if (line.startsWith("{")) outcome = JSON.parse(line) as Load;
    else answers = Number(line);
  });
  return {
    async answered(more) {
      const enough = answers + more;
      while (answers < enough) {
        await Promise.race([once(lines, "line"), ended]);
        if (outcome !== undefined || child.exitCode !== null) throw new Error("the load has ended");
      }
    },
    async stop() {
      child.stdin.end();
      await ended;
      if (outcome === undefined) throw new Error("the load has ended without a word");
      return outcome;
    },
  };
}
