/** The admin server of a pod whose probes are answered by a thread of their own. */
import { once } from "node:events";
import { rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import { openPodAdmin, type PodAdmin, PROBES } from "./admin.ts";
import type { ProbeSetup } from "./probe-thread.ts";

/** How often the thread is told what to answer. */
const TELL_MS = 200;

export interface ProbeServer {
  readonly port: number;
  close(): void;
}

/** `socketPath` is where the thread reaches the main thread, in a folder of the pod's own. */
export async function openProbes(address: string, admin: PodAdmin, socketPath: string): Promise<ProbeServer> {
  // One of before a restart of the container would be in the way.
  rmSync(socketPath, { force: true });
  const behind = await openPodAdmin(socketPath, admin);
  const answers = new Int32Array(new SharedArrayBuffer(PROBES.length * Int32Array.BYTES_PER_ELEMENT));
  const tell = (): void => {
    for (const [index, { isGood }] of PROBES.entries()) Atomics.store(answers, index, isGood(admin) ? 1 : 0);
  };
  tell();
  const telling = setInterval(tell, TELL_MS).unref();
  const setup: ProbeSetup = { address, answers, socketPath };
  const thread = new Worker(new URL(THREAD_FILE, import.meta.url), { workerData: setup });
  const [opened] = (await once(thread, "message")) as [AddressInfo];
  // Without probes the kubelet would take the pod for dead. It starts the container again.
  thread.on("error", (error) => {
    throw error;
  });
  thread.unref();
  return {
    port: opened.port,
    close() {
      clearInterval(telling);
      behind.close();
      void thread.terminate();
    },
  };
}

const THREAD_FILE = import.meta.url.endsWith(".ts") ? "./probe-thread.ts" : "./probe-thread.js";
