/** What is made for Gateways, where others have a hand in it as well: an autoscaler, and a Gateway that would be called alike. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ok } from "./bed.ts";
import {
  ACCEPTED,
  CONTROLLER,
  eventually,
  GATEWAY_API,
  gateway,
  http,
  httpRoute,
  type Named,
  type Place,
  ServedCluster,
  said,
} from "./served-cluster.ts";

let cluster: ServedCluster;

beforeAll(async () => {
  cluster = await ServedCluster.up("e2e-infra");
  await cluster.namespaceWithBackend("infra");
});

afterAll(async () => {
  await cluster?.down();
});

function made(kind: string, name: string): Named {
  const apiVersion = { Deployment: "apps/v1", HorizontalPodAutoscaler: "autoscaling/v2" }[kind] ?? "v1";
  return { apiVersion, kind, metadata: { name, namespace: "infra" } };
}

describe("an autoscaler", () => {
  const place: Place = { namespace: "infra", name: "scaled" };
  const reference = { group: "mergeway.dev", kind: "GatewayParameters", name: "scaled" };
  const scaled = gateway(place, {
    infrastructure: { parametersRef: reference },
    listeners: [http("web", "scaled.example.com")],
  });
  const deployment = made("Deployment", "scaled-mergeway");

  const parameters = (spec: object): Named =>
    ({ apiVersion: "mergeway.dev/v1alpha1", kind: "GatewayParameters", metadata: place, spec }) as Named;

  /** Makes the controller apply the Deployment again, and waits until it has. */
  async function applyAgain(annotation: string): Promise<void> {
    await cluster.patch(scaled, {
      spec: { infrastructure: { annotations: { "example.com/touch": annotation } } },
    });
    await eventually(async () => {
      const { metadata } = await cluster.get(deployment);
      const { annotations = {} } = metadata as { annotations?: Record<string, string> };
      expect(annotations["example.com/touch"]).toBe(annotation);
    });
  }

  async function replicas(): Promise<number> {
    return Number((await cluster.get(deployment)).spec["replicas"]);
  }

  test("takes over from a fixed number without pods being lost on the way", async () => {
    await cluster.apply(parameters({ replicas: 3 }), scaled);
    await eventually(async () => expect(await replicas()).toBe(3));
    const generation = (await cluster.get(deployment)).metadata.generation;
    // Nobody measures anything in this cluster: an autoscaler only keeps within its bounds.
    await ok(
      cluster.bed.kubectl(
        ["replace", "-f", "-"],
        JSON.stringify(parameters({ autoscaling: { minReplicas: 1, maxReplicas: 4 } })),
      ),
    );
    await eventually(() => cluster.get(made("HorizontalPodAutoscaler", "scaled-mergeway")));
    await applyAgain("handed over");
    expect(await replicas()).toBe(3);
    // One change for the annotation of its pods, and none that took pods away and gave them back.
    expect((await cluster.get(deployment)).metadata.generation).toBe(generation + 1);
  });

  test("is accepted by the API server, and works on the Gateway's Deployment", async () => {
    const stored = await eventually(async () => {
      const autoscaler = await cluster.get(made("HorizontalPodAutoscaler", "scaled-mergeway"));
      expect(said(autoscaler.status)["AbleToScale"]).toMatch(/^True\//);
      return autoscaler;
    });
    expect(stored.spec).toMatchObject({
      minReplicas: 1,
      maxReplicas: 4,
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "scaled-mergeway" },
    });
  });

  test("has the last word on the number of pods", async () => {
    await ok(cluster.bed.kubectl(["-n", "infra", "scale", "deploy/scaled-mergeway", "--replicas=2"]));
    await applyAgain("scaled");
    expect(await replicas()).toBe(2);
    await ok(cluster.bed.kubectl(["-n", "infra", "scale", "deploy/scaled-mergeway", "--replicas=5"]));
    // Above its bounds: this one is the autoscaler itself.
    await eventually(async () => expect(await replicas()).toBe(4), 90);
    await applyAgain("bounded");
    expect(await replicas()).toBe(4);
  });

  test("goes when a number is given", async () => {
    await ok(cluster.bed.kubectl(["replace", "-f", "-"], JSON.stringify(parameters({ replicas: 1 }))));
    await eventually(async () => {
      expect(await replicas()).toBe(1);
      expect(await cluster.find(made("HorizontalPodAutoscaler", "scaled-mergeway"))).toBeUndefined();
    });
    await cluster.remove(scaled);
  });
});

describe("Gateways that would be called alike", () => {
  const gatewayClass = (name: string): Named =>
    ({
      apiVersion: GATEWAY_API,
      kind: "GatewayClass",
      metadata: { name },
      spec: { controllerName: CONTROLLER },
    }) as Named;
  const first = gateway(
    { namespace: "infra", name: "a-b" },
    { gatewayClassName: "c", listeners: [http("web", "first.example.com")] },
  );
  const second = gateway(
    { namespace: "infra", name: "a" },
    { gatewayClassName: "b-c", listeners: [http("web", "second.example.com")] },
  );

  test("are served each by pods and at an address of its own, and one's end is not the other's", async () => {
    await cluster.apply(
      gatewayClass("c"),
      gatewayClass("b-c"),
      first,
      httpRoute({ namespace: "infra", name: "first" }, { parentRefs: [{ name: "a-b" }] }),
      httpRoute({ namespace: "infra", name: "second" }, { parentRefs: [{ name: "a" }] }),
    );
    const one = await cluster.addressOf(first);
    await cluster.apply(second);
    const other = await cluster.addressOf(second);
    expect(other).not.toBe(one);
    await cluster.answers({ url: "http://first.example.com/", address: one });
    await cluster.answers({ url: "http://second.example.com/", address: other });
    await cluster.answers({ url: "http://first.example.com/", address: other }, 404);
    const deployments = (await cluster.infrastructureIn("infra")).filter((name) => name.startsWith("deploy"));
    expect(deployments).toEqual([
      "deployment.apps/a-b-c",
      expect.stringMatching(/^deployment\.apps\/a-b-c-[0-9a-f]{8}$/),
    ]);
    await cluster.remove(first);
    await eventually(async () => expect(await cluster.find(made("Deployment", "a-b-c"))).toBeUndefined());
    await cluster.settled(second, ({ status }) => {
      expect(said(status)).toEqual(ACCEPTED);
      expect(status?.addresses).toEqual([{ type: "IPAddress", value: other }]);
    });
    await cluster.answers({ url: "http://second.example.com/", address: other });
  });
});
