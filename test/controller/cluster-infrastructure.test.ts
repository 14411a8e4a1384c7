import { describe, expect, it } from "vitest";
import { ClusterInfrastructure } from "../../src/controller/cluster-infrastructure.ts";
import type { Manifest } from "../../src/infra/objects/manifest.ts";
import type { KubernetesClient } from "../../src/kubernetes/client.ts";

interface Sent {
  readonly method?: string;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: { readonly spec?: unknown };
}

/**
 * What is asked of a server whose one Deployment has three pods, a number that the given manager
 * applied.
 */
async function applied(spec: object, manager: string, operation = "Apply"): Promise<readonly unknown[]> {
  const asked: Sent[] = [];
  const managedFields = [{ manager, operation, fieldsV1: { "f:spec": { "f:replicas": {} } } }];
  const client = {
    request: async (request: Sent): Promise<unknown> => {
      asked.push(request);
      return request.method === undefined
        ? { items: [{ metadata: { managedFields }, spec: { replicas: 3 } }] }
        : {};
    },
  } as unknown as KubernetesClient;
  const metadata = { name: "shared-mergeway", namespace: "infra", labels: {}, ownerReferences: [] };
  const deployment: Manifest = { apiVersion: "apps/v1", kind: "Deployment", metadata, spec };
  await new ClusterInfrastructure(client, []).apply(deployment, "its uid");
  const patches = asked.filter(({ method }) => method === "PATCH");
  return patches.map(({ query, body }) => [query?.["fieldManager"], body?.spec]);
}

describe("the number of replicas of a Deployment", () => {
  it("is ours if the parameters set it", async () => {
    expect(await applied({ replicas: 2 }, "mergeway")).toEqual([["mergeway", { replicas: 2 }]]);
  });

  it("passes to another field manager before we give it up, so that an autoscaler starts from it", async () => {
    expect(await applied({}, "mergeway")).toEqual([
      ["mergeway-scaling", { replicas: 3 }],
      ["mergeway", {}],
    ]);
  });

  it.each([
    ["an autoscaler has set", "kube-controller-manager", "Update"],
    ["was left before", "mergeway-scaling", "Apply"],
  ])("that %s is not changed", async (_title, manager, operation) => {
    expect(await applied({}, manager, operation)).toEqual([["mergeway", {}]]);
  });
});

describe("an object that exists already", () => {
  const at = { apiVersion: "v1", kind: "Service", namespace: "infra", name: "shared-mergeway" };
  const metadata = { name: at.name, namespace: at.namespace, labels: {}, ownerReferences: [] };
  const service: Manifest = { apiVersion: "v1", kind: "Service", metadata };

  async function asked(work: (cluster: ClusterInfrastructure) => Promise<unknown>): Promise<Sent[]> {
    const sent: Sent[] = [];
    const client = {
      request: async (request: Sent): Promise<unknown> => {
        sent.push(request);
        return { items: [] };
      },
    } as unknown as KubernetesClient;
    await work(new ClusterInfrastructure(client, []));
    return sent;
  }

  it("is found by its name", async () => {
    expect(await asked((cluster) => cluster.look(at))).toMatchObject([
      {
        path: "/api/v1/namespaces/infra/services",
        query: { fieldSelector: "metadata.name=shared-mergeway" },
      },
    ]);
  });

  it("is applied by force only if it still has the uid that was found", async () => {
    expect(await asked((cluster) => cluster.apply(service, "its uid"))).toMatchObject([
      { query: { force: true }, body: { metadata: { uid: "its uid" } } },
    ]);
    const [first] = await asked((cluster) => cluster.apply(service, undefined));
    expect(first).toMatchObject({ method: "PATCH", query: { force: false }, body: service });
  });

  it("is removed only if it still has the uid that was found", async () => {
    expect(await asked((cluster) => cluster.remove(at, "its uid"))).toMatchObject([
      {
        method: "DELETE",
        body: { kind: "DeleteOptions", preconditions: { uid: "its uid" }, propagationPolicy: "Background" },
      },
    ]);
  });
});
