/**
 * What is made for Gateways, where others have a hand in it as well: an autoscaler, a Gateway that
 * would be called alike, and pods that do not do what they are told.
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ok } from "../../tools/cluster/bed.ts";
import { containerPid } from "../../tools/cluster/cluster.ts";
import {
  ACCEPTED,
  CONTROLLER,
  conditionOf,
  eventually,
  GATEWAY_API,
  gateway,
  http,
  httpRoute,
  type Named,
  type Place,
  ServedCluster,
  SYSTEM,
  said,
} from "./support/served-cluster.ts";

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

test("what somebody else has given the name is left alone, the Gateway says so, and follows when the name is free", async () => {
  const own = gateway({ namespace: "infra", name: "late" }, { listeners: [http("web", "late.example.com")] });
  const theirs = [
    { ...made("Service", "late-mergeway"), spec: { ports: [{ port: 80 }], selector: { app: "echo" } } },
    { ...made("ServiceAccount", "late-mergeway"), metadata: { name: "late-mergeway", namespace: "infra" } },
  ];
  await cluster.apply(...theirs);
  const before = await Promise.all(theirs.map((object) => cluster.get(object)));
  await cluster.apply(own);
  const { status } = await cluster.settled(own, (stored) =>
    expect(said(stored.status)["Programmed"]).toBe("False/NameTaken"),
  );
  const message = conditionOf(status, "Programmed").message;
  expect(message).toContain("left alone: ServiceAccount late-mergeway, Service late-mergeway.");
  expect(status?.addresses ?? []).toEqual([]);
  await eventually(async () => {
    const events = ["get", "events", "-n", "infra", "-o", "jsonpath={.items[*].reason}"];
    expect(await ok(cluster.bed.kubectl(events))).toContain("NameTaken");
  });
  expect(await Promise.all(theirs.map((object) => cluster.get(object)))).toEqual(before);
  expect(await cluster.find(made("Deployment", "late-mergeway"))).toBeUndefined();
  await cluster.remove(...theirs);
  await cluster.addressOf(own);
  await cluster.remove(own);
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

describe("a replica that does not take the newest configuration", () => {
  const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
  const CALM = "the data plane serves all that is valid";

  beforeAll(async () => {
    // Pods take their plan from one of them, which need not be the leader.
    await ok(cluster.bed.kubectl(["-n", SYSTEM, "scale", "deploy/mergeway", "--replicas=2"]));
    await ok(cluster.bed.kubectl(["-n", SYSTEM, "rollout", "status", "deploy/mergeway", "--timeout=240s"]));
  });

  interface Pod {
    readonly metadata: { readonly name: string };
    readonly status: {
      readonly containerStatuses: readonly { readonly name: string; readonly containerID: string }[];
    };
  }

  async function podOf({ name, namespace }: Place): Promise<Pod> {
    const selector = `gateway.networking.k8s.io/gateway-name=${name}`;
    const out = await ok(cluster.bed.kubectl(["-n", namespace, "get", "pods", "-l", selector, "-o", "json"]));
    const { items } = JSON.parse(out) as { readonly items: readonly Pod[] };
    const [pod] = items;
    if (pod === undefined || items.length !== 2) throw new Error(`${name} has not two pods`);
    return pod;
  }

  async function signal(name: "STOP" | "CONT", { status }: Pod): Promise<void> {
    const id = status.containerStatuses[0]?.containerID.replace(/^.*:\/\//, "") ?? "";
    await ok(cluster.bed.run(["kill", `-${name}`, String(await containerPid(cluster.bed.cluster, id))]));
  }

  /** What the Gateway's status and `mergeway status` say, once it is this. */
  async function says(object: Named, message: string): Promise<void> {
    await cluster.settled(
      object,
      ({ status }) => {
        expect(said(status)).toEqual(ACCEPTED);
        expect(conditionOf(status, "Programmed").message).toBe(message);
      },
      90,
    );
    const command = [process.execPath, MAIN, "status", "-n", "infra"];
    const out = await ok(cluster.bed.run(command));
    if (message === CALM) expect(out).not.toContain("replicas");
    else expect(out).toContain(message);
  }

  /** Ends the leader, and waits for the next one. */
  async function changeLeader(): Promise<void> {
    const holder = ["-n", SYSTEM, "get", "lease", "-o", "jsonpath={.items[0].spec.holderIdentity}"];
    const before = await ok(cluster.bed.kubectl(holder));
    await ok(cluster.bed.kubectl(["-n", SYSTEM, "delete", "pod", before, "--wait=false"]));
    await eventually(async () => {
      const now = await ok(cluster.bed.kubectl(holder));
      expect(now).not.toBe("");
      expect(now).not.toBe(before);
    });
  }

  test.each(["envoy", "embedded"])("is told of while it is frozen, and no longer: %s", async (dataPlane) => {
    const place: Place = { namespace: "infra", name: `lagging-${dataPlane}` };
    const parametersRef = { group: "mergeway.dev", kind: "GatewayParameters", name: place.name };
    const hostname = `${dataPlane}.example.com`;
    const object = gateway(place, {
      infrastructure: { parametersRef },
      listeners: [http("web", hostname)],
    });
    const spec = { replicas: 2, dataPlane };
    await cluster.apply(
      { apiVersion: "mergeway.dev/v1alpha1", kind: "GatewayParameters", metadata: place, spec },
      object,
    );
    const address = await cluster.addressOf(object);
    const deployment = ["-n", "infra", "rollout", "status", `deploy/${place.name}-mergeway`];
    await ok(cluster.bed.kubectl([...deployment, "--timeout=240s"]));
    const pod = await podOf(place);
    await signal("STOP", pod);
    try {
      await cluster.apply(httpRoute(place, { parentRefs: [{ name: place.name }] }));
      const name = pod.metadata.name;
      await says(object, `${CALM}; 1 of 2 replicas has not confirmed the newest configuration: ${name}`);
      if (dataPlane === "envoy") await changeLeader();
    } finally {
      await signal("CONT", pod);
    }
    await says(object, CALM);
    await cluster.answers({ url: `http://${hostname}/`, address });
    await cluster.remove(object);
  });
});
