import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { EndpointSlice, Service } from "../../src/api/core.ts";
import type { Gateway } from "../../src/api/gateway.ts";
import type { GatewayParameters } from "../../src/api/gateway-parameters.ts";
import { type Key, keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import type { AddressFact } from "../../src/infra/addresses.ts";
import type { Manifest } from "../../src/infra/objects/manifest.ts";
import {
  type FoundObject,
  type InfrastructureCluster,
  InfrastructureReconciler,
  type ObjectName,
} from "../../src/infra/reconciler.ts";

const GATEWAY: Gateway = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { name: "shared", namespace: "infra", uid: "1" },
  spec: { gatewayClassName: "mergeway", listeners: [] },
};
const KEY: Key = keyOf(GATEWAY);

/** A cluster that takes everything and can be made to refuse. */
class FakeCluster implements InfrastructureCluster {
  readonly objects: Map<string, Manifest> = new Map();
  /** What others have made, by `kind/name`. */
  readonly others: Set<string> = new Set();
  readonly orphans: (ObjectName & { readonly uid: string; readonly gateway: string })[] = [];
  applied = 0;
  refusals = 0;

  async look({ kind, name }: ObjectName): Promise<FoundObject | undefined> {
    if (this.others.has(`${kind}/${name}`)) return { uid: "theirs", labels: { app: name } };
    const own = this.objects.get(`${kind}/${name}`);
    return own === undefined ? undefined : { ...(own.metadata as object), uid: `uid of ${kind}/${name}` };
  }

  async apply(manifest: Manifest, uid: string | undefined): Promise<void> {
    const place = `${manifest.kind}/${manifest.metadata.name}`;
    expect(uid).toBe(this.objects.has(place) ? `uid of ${place}` : undefined);
    expect(this.others).not.toContain(place);
    if (this.refusals > 0) {
      this.refusals--;
      throw new Error("the API server is away");
    }
    this.applied++;
    this.objects.set(place, manifest);
  }

  async remove({ kind, name }: ObjectName, uid: string): Promise<void> {
    expect(uid).toBe(`uid of ${kind}/${name}`);
    this.objects.delete(`${kind}/${name}`);
  }

  async listOwned(): Promise<FakeCluster["orphans"]> {
    return this.orphans;
  }
}

describe("the infrastructure of Gateways", () => {
  let cluster: FakeCluster;
  let reconciler: InfrastructureReconciler;
  let resources: Map<Key, Resource>;
  let facts: (AddressFact | undefined)[];
  let problems: string[];

  beforeEach(() => {
    cluster = new FakeCluster();
    resources = new Map([[KEY, GATEWAY]]);
    facts = [];
    problems = [];
    reconciler = new InfrastructureReconciler({
      cluster,
      context: () => ({
        dataPlane: "embedded",
        image: "mergeway:1",
        envoyImage: "envoy:1",
        cloudflaredImage: "cloudflared:1",
        controller: "mergeway.system.svc:18000",
        authority: "PEM",
        tokenAudience: "a",
        metrics: false,
        drainToken: (uid) => `drain ${uid}`,
      }),
      find: (key) => resources.get(key),
      onFact: (_gateway, fact) => facts.push(fact),
      onProblem: (_gateway, problem) => problems.push(problem),
    });
  });

  afterEach(() => vi.useRealTimers());

  function notice(resource: Resource): void {
    resources.set(keyOf(resource), resource);
    reconciler.notice(keyOf(resource), resource);
  }

  const OURS = {
    labels: { "app.kubernetes.io/managed-by": "mergeway" },
    annotations: { "mergeway.dev/gateway-name": "shared" },
  };

  function service(name: string, ip?: string, marks: object = OURS): Service {
    return {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace: "infra", ...marks },
      spec: { type: "LoadBalancer" },
      ...(ip === undefined ? {} : { status: { loadBalancer: { ingress: [{ ip }] } } }),
    };
  }

  function slice(serviceName: string, ready: boolean): EndpointSlice {
    return {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: `${serviceName}-x`,
        namespace: "infra",
        labels: { "kubernetes.io/service-name": serviceName, "app.kubernetes.io/managed-by": "mergeway" },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready } }],
    };
  }

  it("tells what is missing as soon as a Gateway asks for another address, whether or not a Service changes", () => {
    reconciler.serve(KEY, [{ transport: "tcp", port: 80 }]);
    notice(service("shared-mergeway", "203.0.113.1"));
    notice(slice("shared-mergeway", true));
    expect(facts.at(-1)).toEqual({ addresses: [{ type: "IPAddress", value: "203.0.113.1" }] });
    notice({
      ...GATEWAY,
      spec: { ...GATEWAY.spec, addresses: [{ type: "IPAddress", value: "203.0.113.9" }] },
    });
    expect(facts.at(-1)?.problem?.reason).toBe("AddressNotUsable");
    notice(GATEWAY);
    expect(facts.at(-1)?.problem).toBeUndefined();
  });

  it("is named and labelled by GEP-1762 and owned by its Gateway", async () => {
    reconciler.serve(KEY, [{ transport: "tcp", port: 80 }]);
    await reconciler.lead(true);
    await expect
      .poll(() => [...cluster.objects.keys()].sort())
      .toEqual(["Deployment/shared-mergeway", "Service/shared-mergeway", "ServiceAccount/shared-mergeway"]);
    for (const { metadata } of cluster.objects.values()) {
      expect(metadata.labels).toMatchObject({
        "gateway.networking.k8s.io/gateway-name": "shared",
        "gateway.networking.k8s.io/gateway-class-name": "mergeway",
      });
      expect(metadata.ownerReferences).toMatchObject([{ kind: "Gateway", name: "shared", uid: "1" }]);
    }
  });

  it("writes only on the leader, and only what changed", async () => {
    reconciler.serve(KEY, [{ transport: "tcp", port: 80 }]);
    expect(cluster.applied).toBe(0);
    await reconciler.lead(true);
    await expect.poll(() => cluster.applied).toBe(3);
    reconciler.serve(KEY, [
      { transport: "tcp", port: 80 },
      { transport: "udp", port: 53 },
    ]);
    await expect.poll(() => cluster.applied).toBe(4);
    expect(cluster.objects.get("Service/shared-mergeway")?.["spec"]).toMatchObject({
      ports: [{ port: 53 }, { port: 80 }],
    });
  });

  it("is tried again when the cluster refuses", async () => {
    cluster.refusals = 1;
    reconciler.serve(KEY, [{ transport: "tcp", port: 80 }]);
    await reconciler.lead(true);
    await expect.poll(() => cluster.objects.size, { timeout: 20_000 }).toBe(3);
  });

  it("goes when its Gateway is not served any more, and orphaned objects go when a leader begins", async () => {
    cluster.orphans.push({
      apiVersion: "v1",
      kind: "Service",
      namespace: "infra",
      name: "old",
      uid: "uid of Service/old",
      gateway: "gone",
    });
    cluster.objects.set("Service/old", {} as Manifest);
    reconciler.serve(KEY, [{ transport: "tcp", port: 80 }]);
    await reconciler.lead(true);
    await expect.poll(() => [...cluster.objects.keys()].includes("Service/old")).toBe(false);
    await expect.poll(() => cluster.objects.size).toBe(3);
    reconciler.serve(KEY, undefined);
    await expect.poll(() => cluster.objects.size).toBe(0);
    expect(facts.at(-1)).toBeUndefined();
  });

  it("tells an address when there is one and a pod is ready behind it", () => {
    reconciler.serve(KEY, [{ transport: "tcp", port: 80 }]);
    expect(facts.at(-1)?.problem?.reason).toBe("AddressNotAssigned");
    notice(service("shared-mergeway", "172.30.0.1"));
    expect(facts.at(-1)?.problem?.reason).toBe("NoResources");
    notice(slice("shared-mergeway", true));
    expect(facts.at(-1)).toEqual({ addresses: [{ type: "IPAddress", value: "172.30.0.1" }] });
    notice(slice("shared-mergeway", false));
    expect(facts.at(-1)?.problem?.reason).toBe("NoResources");
  });

  it.each(["Service", "Deployment", "ServiceAccount"])(
    "leaves a %s alone that somebody else gave its name, says so, and goes on when the name is free",
    async (kind) => {
      vi.useFakeTimers();
      cluster.others.add(`${kind}/shared-mergeway`);
      if (kind === "Service") notice(service("shared-mergeway", "172.30.0.66", {}));
      reconciler.serve(KEY, [{ transport: "tcp", port: 80 }]);
      await reconciler.lead(true);
      await vi.advanceTimersByTimeAsync(20_000);
      expect(cluster.objects.size).toBe(0);
      expect(facts.at(-1)).toEqual({
        addresses: [],
        problem: {
          reason: "NameTaken",
          message: expect.stringMatching(new RegExp(`left alone: ${kind} shared-mergeway\\. Delete`)),
        },
      });
      expect(problems).toEqual([facts.at(-1)?.problem?.message]);
      cluster.others.clear();
      await vi.advanceTimersByTimeAsync(10_000);
      expect(cluster.objects.size).toBe(3);
      expect(facts.at(-1)?.problem?.reason).toBe("AddressNotAssigned");
    },
  );

  it("removes nothing that somebody else has put in the place of its own", async () => {
    reconciler.serve(KEY, [{ transport: "tcp", port: 80 }]);
    await reconciler.lead(true);
    await expect.poll(() => cluster.objects.size).toBe(3);
    cluster.others.add("Service/shared-mergeway");
    reconciler.serve(KEY, undefined);
    await expect.poll(() => [...cluster.objects.keys()]).toEqual(["Service/shared-mergeway"]);
  });

  it("asks for each wanted address with a Service of its own, and says which cannot be had", async () => {
    const addresses = [
      { type: "IPAddress", value: "172.30.0.9" },
      { type: "IPAddress", value: "172.30.0.10" },
    ];
    resources.set(KEY, { ...GATEWAY, spec: { ...GATEWAY.spec, addresses } });
    reconciler.serve(KEY, [{ transport: "tcp", port: 80 }]);
    await reconciler.lead(true);
    await expect
      .poll(() => [...cluster.objects.keys()].filter((key) => key.startsWith("Service/")).sort())
      .toEqual(["Service/shared-mergeway", "Service/shared-mergeway-2"]);
    expect(cluster.objects.get("Service/shared-mergeway-2")?.["spec"]).toMatchObject({
      loadBalancerIP: "172.30.0.10",
    });
    notice(service("shared-mergeway", "172.30.0.9"));
    expect(facts.at(-1)?.problem).toEqual({
      reason: "AddressNotUsable",
      message: "cannot be assigned: 172.30.0.10",
    });
  });

  it("follows the parameters of the class, overruled by the Gateway's own", async () => {
    const parameters = (
      name: string,
      namespace: string,
      spec: GatewayParameters["spec"],
    ): GatewayParameters => ({
      apiVersion: "mergeway.dev/v1alpha1",
      kind: "GatewayParameters",
      metadata: { name, namespace },
      ...(spec === undefined ? {} : { spec }),
    });
    const ref = { group: "mergeway.dev", kind: "GatewayParameters" };
    resources.set("GatewayClass//mergeway", {
      apiVersion: GATEWAY.apiVersion,
      kind: "GatewayClass",
      metadata: { name: "mergeway" },
      spec: {
        controllerName: "mergeway.dev/controller",
        parametersRef: { ...ref, name: "defaults", namespace: "system" },
      },
    });
    resources.set(KEY, {
      ...GATEWAY,
      spec: { ...GATEWAY.spec, infrastructure: { parametersRef: { ...ref, name: "own" } } },
    });
    notice(
      parameters("defaults", "system", { autoscaling: { maxReplicas: 9 }, service: { type: "ClusterIP" } }),
    );
    notice(parameters("own", "infra", { replicas: 3 }));
    reconciler.serve(KEY, [{ transport: "tcp", port: 80 }]);
    await reconciler.lead(true);
    await expect.poll(() => cluster.objects.size).toBe(4);
    expect(cluster.objects.get("Deployment/shared-mergeway")?.["spec"]).toMatchObject({ replicas: 3 });
    expect(cluster.objects.get("Service/shared-mergeway")?.["spec"]).toMatchObject({ type: "ClusterIP" });
    expect(cluster.objects.has("PodDisruptionBudget/shared-mergeway")).toBe(true);
    expect(cluster.objects.has("HorizontalPodAutoscaler/shared-mergeway")).toBe(false);
  });
});
