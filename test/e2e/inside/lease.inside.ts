import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { collectionPath, objectPath } from "../../../src/kubernetes/api-object.ts";
import type { KubernetesClient } from "../../../src/kubernetes/client.ts";
import { runLeaderElection } from "../../../src/kubernetes/lease.ts";
import { Cluster, component, connect, eventually } from "./cluster.ts";

const LEASES = { apiVersion: "coordination.k8s.io/v1", plural: "leases", namespace: "default" };
const NAME = "e2e-lease";
const RETRY_MS = 300;
/** A second candidate has looked at the lease several times. */
const SEVERAL_TRIES_MS = 8 * RETRY_MS;

interface Candidate {
  readonly isLeader: () => boolean;
  readonly stop: () => Promise<void>;
}

let client: KubernetesClient;
let cluster: Cluster;
const candidates: Candidate[] = [];
/** The most leaders that there have been at a time, in all tests. */
let mostLeaders = 0;

function contend(identity: string): Candidate {
  const abort = new AbortController();
  let leading = false;
  const running = runLeaderElection(
    {
      client,
      namespace: "default",
      name: NAME,
      identity,
      // As in production: a slow etcd must not move the lease.
      leaseMs: 15_000,
      renewMs: 10_000,
      retryMs: RETRY_MS,
      onElected: (signal) => {
        leading = true;
        mostLeaders = Math.max(mostLeaders, leaders());
        return new Promise((resolve) =>
          signal.addEventListener("abort", () => {
            leading = false;
            resolve();
          }),
        );
      },
    },
    abort.signal,
  );
  const candidate = {
    isLeader: () => leading,
    stop: async () => {
      abort.abort();
      await running;
    },
  };
  candidates.push(candidate);
  return candidate;
}

function leaders(): number {
  return candidates.filter((candidate) => candidate.isLeader()).length;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

interface Lease {
  readonly spec: { readonly holderIdentity: string; readonly leaseTransitions?: number };
}

function lease(): Promise<Lease> {
  return client.request<Lease>({ path: objectPath(LEASES, NAME) });
}

beforeAll(async () => {
  client = await connect();
  cluster = new Cluster(client);
});

beforeEach(async () => {
  await cluster.delete({
    apiVersion: LEASES.apiVersion,
    kind: "Lease",
    metadata: { name: NAME, namespace: "default" },
  });
});

afterEach(async () => {
  for (const candidate of candidates) await candidate.stop();
  candidates.splice(0);
});

afterAll(() => {
  expect(mostLeaders, "never two leaders").toBe(1);
});

describe("leader election", () => {
  // A leader that stops has little time to hand over: a slow API server may need more than one try.
  test("one leads; when it stops, it hands over", { retry: 2 }, async () => {
    const a = contend("a");
    await eventually(() => expect(a.isLeader()).toBe(true));
    const b = contend("b");
    await pause(SEVERAL_TRIES_MS);
    expect(b.isLeader()).toBe(false);
    await a.stop();
    expect(a.isLeader()).toBe(false);
    expect((await lease()).spec.holderIdentity === "a").toBe(false);
    await eventually(() => expect(b.isLeader()).toBe(true));
    expect(await lease()).toMatchObject({ spec: { holderIdentity: "b", leaseTransitions: 1 } });
  });

  test("a holder that died is followed after its lease, whatever its clock said", async () => {
    const future = new Date(Date.now() + 3_600_000).toISOString().replace("Z", "000Z");
    await client.request({
      method: "POST",
      path: collectionPath(LEASES),
      body: {
        apiVersion: LEASES.apiVersion,
        kind: "Lease",
        metadata: { name: NAME },
        spec: { holderIdentity: "dead", leaseDurationSeconds: 2, acquireTime: future, renewTime: future },
      },
    });
    const began = performance.now();
    const a = contend("a");
    await eventually(() => expect(a.isLeader()).toBe(true));
    expect(performance.now() - began).toBeGreaterThan(2_000);
  });

  test("a leader without API server gives up before another can begin, and there is one leader afterwards", async () => {
    contend("a");
    await eventually(() => expect(leaders()).toBe(1));
    contend("b");
    await component("stop", "kube-apiserver");
    await eventually(() => expect(leaders()).toBe(0));
    await component("start", "kube-apiserver");
    await eventually(() => expect(leaders()).toBe(1), 120);
    await pause(SEVERAL_TRIES_MS);
    expect(leaders()).toBe(1);
  });
});
