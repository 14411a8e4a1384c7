import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { ROOT } from "../chart/manifests.ts";
import { insideEnvironment } from "../cluster/cluster.ts";
import { inside } from "../cluster/namespace.ts";
import type { Bed } from "./bed.ts";

export interface Load {
  readonly sent: number;
  readonly failed: number;
  readonly reasons: readonly string[];
}

/** A steady load on one host of a Gateway, from inside the cluster's network; what became of it is told when it is stopped. */
export function startLoad(bed: Bed, address: string, host: string): { readonly stop: () => Promise<Load> } {
  const seconds = "240";
  const [program, args] = inside(bed.cluster, [
    process.execPath,
    `${ROOT}/test/e2e/load.ts`,
    `http://${address}/`,
    host,
    seconds,
  ]);
  const child = spawn(program, [...args], {
    env: insideEnvironment(bed.cluster),
    stdio: ["pipe", "pipe", "inherit"],
  });
  const output = text(child.stdout);
  return {
    async stop() {
      child.stdin.end();
      return JSON.parse(await output) as Load;
    },
  };
}
