import { type ChildProcess, fork } from "node:child_process";
import { on, once } from "node:events";
import { text } from "node:stream/consumers";
import type { Backends } from "./backends.ts";
import type { Contestant } from "./contestants.ts";
import type { Pauses, ToEmbedded } from "./embedded-process.ts";
import { cpuSeconds, OTHERS_CORE, pause, residentBytes, startPinned } from "./machine.ts";
import { commandsFor, complaintIn, type Scenario } from "./scenarios.ts";

const WARM_UP_SECONDS = 1.5;
const WINDOW_SECONDS = 2;
const OVERTIME_MS = 3_000;
const ANSWER_MS = 10_000;
const IDLE_CONNECTIONS = 2_000;

export interface Sample {
  readonly requestsPerCpuSecond: number;
  readonly requestsPerSecond: number;
  /** Of the contestant's core. */
  readonly utilisation: number;
  readonly complaint?: string;
}

/**
 * Load for a while; what counts is between two looks at the backends' counters and at the
 * contestant's CPU time.
 */
export async function measure(
  scenario: Scenario,
  contestant: Contestant,
  place: { readonly backends: Backends; readonly folder: string; readonly during?: () => Promise<void> },
): Promise<Sample> {
  const { backends, folder, during } = place;
  const answered = scenario.protocol === "gRPC" ? backends.grpcAnswered : backends.httpAnswered;
  const seconds = Math.ceil(WARM_UP_SECONDS + WINDOW_SECONDS + 0.5);
  const load = commandsFor(scenario, contestant, { folder, seconds }).map(startLoad);
  await pause(WARM_UP_SECONDS * 1_000);
  const before = { requests: await answered(), cpu: cpuSeconds(contestant.pid), at: performance.now() };
  await during?.();
  await pause(WINDOW_SECONDS * 1_000);
  const after = { requests: await answered(), cpu: cpuSeconds(contestant.pid), at: performance.now() };
  const outputs = await Promise.all(load.map((each) => each.end()));
  const complaint = outputs.map(complaintIn).find((each) => each !== undefined);
  const requests = after.requests - before.requests;
  const wall = (after.at - before.at) / 1_000;
  const cpu = after.cpu - before.cpu;
  return {
    requestsPerCpuSecond: requests / cpu,
    requestsPerSecond: requests / wall,
    utilisation: cpu / wall,
    ...(complaint === undefined ? {} : { complaint }),
  };
}

/** h2load at times misses the end of its time and would go on for ever. */
function startLoad(command: readonly string[]): { end(): Promise<string> } {
  const child = startPinned(OTHERS_CORE, command, { stdio: ["ignore", "pipe", "ignore"] });
  if (child.stdout === null) throw new Error("no output to read");
  const output = text(child.stdout);
  return {
    end: async () => {
      const limit = setTimeout(() => child.kill("SIGKILL"), OVERTIME_MS);
      const all = await output;
      clearTimeout(limit);
      return all;
    },
  };
}

/** Bytes per connection that has asked once and is idle since. */
export async function idleConnectionBytes(contestant: Contestant, scheme: "http" | "https"): Promise<number> {
  const before = residentBytes(contestant.pid);
  const port = scheme === "http" ? contestant.http : contestant.tls;
  const clients: ChildProcess = fork(new URL("./idle-clients.ts", import.meta.url), [
    String(port),
    String(IDLE_CONNECTIONS),
    scheme,
  ]);
  await once(clients, "message");
  await pause(1_000);
  const after = residentBytes(contestant.pid);
  clients.disconnect();
  await once(clients, "exit");
  await pause(500);
  return (after - before) / IDLE_CONNECTIONS;
}

export async function pausesOf({ child }: Contestant): Promise<Pauses> {
  tell(child, { type: "pauses" });
  for await (const [message] of on(child, "message", { signal: AbortSignal.timeout(ANSWER_MS) })) {
    if ("median" in message) return message;
  }
  throw new Error("the data plane said nothing of its pauses");
}

export function tell(child: ChildProcess, message: ToEmbedded): void {
  child.send(message);
}
