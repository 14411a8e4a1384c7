import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { collectionPath, objectPath } from "../../../src/kubernetes/api-object.ts";
import type { KubernetesClient } from "../../../src/kubernetes/client.ts";
import { runLeaderElection } from "../../../src/kubernetes/lease.ts";
import { Cluster, component, connect, eventually } from "./cluster.ts";

const LEASES = { apiVersion: "coordination.k8s.io/v1", plural: "leases", namespace: "default" };
const NAME = "e2e-lease";

interface Candidate {
  readonly isLeader: () => boolean;
  readonly terms: () => number;
  readonly stop: () => Promise<void>;
}

let client: KubernetesClient;
let cluster: Cluster;
const candidates: Candidate[] = [];

function contend(identity: string): Candidate {
  const abort = new AbortController();
  let leading = false;
  let terms = 0;
  const running = runLeaderElection(
    {
      client,
      namespace: "default",
      name: NAME,
      identity,
      leaseMs: 3_000,
      renewMs: 2_000,
      retryMs: 300,
      onElected: (signal) => {
        leading = true;
        terms++;
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
    terms: () => terms,
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
  for (const candidate of candidates.splice(0)) await candidate.stop();
});

describe("leader election", () => {
  test("one leads; when it stops, it hands over", async () => {
    const a = contend("a");
    await eventually(() => expect(a.isLeader()).toBe(true));
    const b = contend("b");
    await new Promise((resolve) => setTimeout(resolve, 1_500));
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
    await eventually(() => expect(leaders()).toBe(1), 60);
    for (let sample = 0; sample < 20; sample++) {
      expect(leaders()).toBeLessThanOrEqual(1);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  });
});
