import { afterEach, describe, expect, test } from "vitest";
import { KubernetesClient } from "../../src/kubernetes/client.ts";
import { plainCredentials } from "../../src/kubernetes/credentials.ts";
import { runLeaderElection } from "../../src/kubernetes/lease.ts";
import { type Answer, eventually, type Seen, ServerDouble } from "./server-double.ts";

const FAST = { leaseMs: 1_000, renewMs: 500, retryMs: 20 };

interface Lease {
  metadata: { name: string; resourceVersion: string };
  spec: { holderIdentity: string };
}

let double: ServerDouble;
let lease: Lease | undefined;
/** Who gets no answer. */
let cut: Set<string>;
let watches: Answer[] = [];
const running: (() => Promise<void>)[] = [];

function serve(seen: Seen, answer: Answer): void {
  if (cut.has(String(seen.headers["user-agent"]))) return;
  const given = seen.body as Lease | undefined;
  if (seen.query.has("watch")) {
    watches.push(answer);
    return;
  }
  if (seen.method === "GET") {
    if (lease === undefined) answer.refuse(404, "NotFound");
    else answer.json(lease);
    return;
  }
  const expected = lease?.metadata.resourceVersion;
  if (given?.metadata.resourceVersion !== expected) {
    answer.refuse(409, "Conflict");
    return;
  }
  const next = String(Number(expected ?? 0) + 1);
  lease = { metadata: { name: "lease", resourceVersion: next }, spec: (given as Lease).spec };
  answer.json(lease);
  for (const watch of watches) watch.events({ type: "MODIFIED", object: lease });
}

function contend(
  identity: string,
  story: string[],
  retryMs = FAST.retryMs,
): { readonly stop: () => Promise<void> } {
  const abort = new AbortController();
  const client = new KubernetesClient(plainCredentials(double.url), identity);
  const election = runLeaderElection(
    {
      client,
      namespace: "n",
      name: "lease",
      identity,
      ...FAST,
      retryMs,
      onElected: (signal) => {
        story.push(`${identity} leads`);
        return new Promise((resolve) =>
          signal.addEventListener("abort", () => {
            story.push(`${identity} stops`);
            resolve();
          }),
        );
      },
    },
    abort.signal,
  );
  const stop = async (): Promise<void> => {
    abort.abort();
    await election;
  };
  running.push(stop);
  return { stop };
}

afterEach(async () => {
  for (const stop of running.splice(0)) await stop();
  watches = [];
  await double.stop();
});

describe("leader election when answers fail to come", () => {
  test("a leader that is cut off stops before the other begins", async () => {
    lease = undefined;
    cut = new Set();
    double = await ServerDouble.start(serve);
    const story: string[] = [];
    contend("a", story);
    await eventually(() => expect(story).toEqual(["a leads"]));
    contend("b", story);
    cut.add("a");
    await eventually(() => expect(story).toEqual(["a leads", "a stops", "b leads"]));
    cut.clear();
    // The old leader is back, and waits.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(story).toHaveLength(3);
    expect(lease).toMatchObject({ spec: { holderIdentity: "b", leaseTransitions: 1 } });
  });

  test("who waits takes a lease that is handed back at once, long before asking again", async () => {
    lease = undefined;
    cut = new Set();
    double = await ServerDouble.start(serve);
    const story: string[] = [];
    const first = contend("a", story);
    await eventually(() => expect(story).toEqual(["a leads"]));
    contend("b", story, 3_600_000);
    await eventually(() => expect(watches).toHaveLength(1));
    await first.stop();
    await eventually(() => expect(story).toEqual(["a leads", "a stops", "b leads"]));
  });

  test("work that fails gives the lease back", async () => {
    lease = undefined;
    cut = new Set();
    double = await ServerDouble.start(serve);
    const abort = new AbortController();
    let failures = 0;
    const election = runLeaderElection(
      {
        client: double.client(),
        namespace: "n",
        name: "lease",
        identity: "a",
        ...FAST,
        onElected: () => {
          failures++;
          return Promise.reject(new Error("cannot work"));
        },
      },
      abort.signal,
    );
    await eventually(() => expect(failures).toBe(1));
    await eventually(() => expect(lease?.spec.holderIdentity).toBe(""));
    abort.abort();
    await election;
  });
});
