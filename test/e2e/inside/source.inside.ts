import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Key } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { hasStatus } from "../../../src/kubernetes/api-error.ts";
import {
  Cluster,
  component,
  connect,
  eventually,
  GATEWAY_API,
  installCrds,
  type Name,
  unique,
  X_API,
} from "./cluster.ts";
import { startController, type TestController } from "./controller.ts";

const HOME = unique("e2e-source");
const OTHER = unique("e2e-source-other");
const CLASS = unique("e2e-source");
const FOREIGN_CLASS = unique("e2e-source-foreign");

const namespaceNamed = (name: string): Name => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
const X_CRD: Name = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "xlistenersets.gateway.networking.x-k8s.io" },
};

function gatewayWith(name: string, gatewayClassName: string, secret: string): Name & Record<string, unknown> {
  const tls = { certificateRefs: [{ name: secret }] };
  return {
    apiVersion: GATEWAY_API,
    kind: "Gateway",
    metadata: { name, namespace: HOME },
    spec: { gatewayClassName, listeners: [{ name: "https", port: 443, protocol: "HTTPS", tls }] },
  };
}

function secretNamed(name: string, namespace = HOME): Name & Record<string, unknown> {
  const stringData = { "tls.crt": "certificate", "tls.key": "key" };
  return { apiVersion: "v1", kind: "Secret", metadata: { name, namespace }, stringData };
}

function routeNamed(name: string, namespace: string): Name & Record<string, unknown> {
  const metadata = { name, namespace, annotations: { "example.com/huge": "x".repeat(10_000) } };
  return { apiVersion: GATEWAY_API, kind: "HTTPRoute", metadata, spec: { parentRefs: [{ name: "gw" }] } };
}

function xSet(name: string, listeners: unknown): Name & Record<string, unknown> {
  const metadata = { name, namespace: HOME };
  return {
    apiVersion: X_API,
    kind: "XListenerSet",
    metadata,
    spec: { parentRef: { name: "gw" }, listeners },
  };
}

let cluster: Cluster;
let controller: TestController;
const running: TestController[] = [];

/** What the source has said so far, as its consumers see it. */
function world(of: TestController = controller): ReadonlyMap<Key, Resource> {
  const known = new Map<Key, Resource>();
  for (const { key, resource } of of.batches.flat()) {
    if (resource === undefined) known.delete(key);
    else known.set(key, resource);
  }
  return known;
}

/** Creates an object of which an answer that was lost may have told that it was created. */
async function created(object: Name & Record<string, unknown>): Promise<void> {
  try {
    await cluster.create(object);
  } catch (error) {
    if (!hasStatus(error, 409)) throw error;
  }
}

async function start(namespaces?: readonly string[]): Promise<TestController> {
  const started = startController({
    client: await connect(),
    ...(namespaces === undefined ? {} : { namespaces }),
  });
  running.push(started);
  await started.synced;
  return started;
}

async function clean(): Promise<void> {
  for (const name of [CLASS, FOREIGN_CLASS]) {
    await cluster.delete({ apiVersion: GATEWAY_API, kind: "GatewayClass", metadata: { name } });
  }
  for (const name of [HOME, OTHER]) await cluster.delete(namespaceNamed(name));
  await cluster.delete(X_CRD);
  await eventually(() => expect(cluster.get(X_CRD)).rejects.toMatchObject({ status: 404 }), 60);
}

beforeAll(async () => {
  cluster = new Cluster(await connect());
  await installCrds("standard");
  await clean();
  for (const name of [HOME, OTHER]) await cluster.create({ ...namespaceNamed(name) });
  for (const [name, controllerName] of [
    [CLASS, "mergeway.dev/controller"],
    [FOREIGN_CLASS, "other.example/controller"],
  ]) {
    const metadata = { name: name as string };
    await cluster.create({
      apiVersion: GATEWAY_API,
      kind: "GatewayClass",
      metadata,
      spec: { controllerName },
    });
  }
  await cluster.create(routeNamed("before", HOME));
  controller = await start();
});

afterEach(async () => {
  for (const each of running.splice(1)) await each.stop();
});

afterAll(async () => {
  await controller.stop();
  await clean();
});

describe("a cluster as a source", () => {
  test("the first batch has what exists, later ones what changes, and nothing has what nobody reads", async () => {
    const first = new Map(controller.batches[0]?.map(({ key, resource }) => [key, resource]));
    expect(first.has(`HTTPRoute/${HOME}/before`)).toBe(true);
    expect(first.get(`Namespace//${HOME}`)?.metadata.labels).toMatchObject({
      "kubernetes.io/metadata.name": HOME,
    });
    await cluster.create(routeNamed("after", HOME));
    await eventually(() => expect(world().has(`HTTPRoute/${HOME}/after`)).toBe(true));
    const route = world().get(`HTTPRoute/${HOME}/after`);
    expect(route?.metadata.annotations).toBeUndefined();
    expect(JSON.stringify(route)).not.toContain("managedFields");
    await cluster.delete(routeNamed("after", HOME));
    await eventually(() => expect(world().has(`HTTPRoute/${HOME}/after`)).toBe(false));
  });

  test("of all Secrets only those of our own Gateways are read", async () => {
    for (const name of ["ours", "foreign", "idle"]) await cluster.create(secretNamed(name));
    await cluster.create(gatewayWith("foreign", FOREIGN_CLASS, "foreign"));
    await cluster.create(gatewayWith("ours", CLASS, "ours"));
    await eventually(() => expect(world().has(`Secret/${HOME}/ours`)).toBe(true));
    const gateway = controller.batches.findIndex((batch) =>
      batch.some(({ key }) => key === `Gateway/${HOME}/ours`),
    );
    const secret = controller.batches.findIndex((batch) =>
      batch.some(({ key }) => key === `Secret/${HOME}/ours`),
    );
    expect(secret, "the Gateway waits for its Secret").toBe(gateway);
    await cluster.patch(secretNamed("ours"), { stringData: { "tls.crt": "renewed" } });
    await eventually(() =>
      expect(world().get(`Secret/${HOME}/ours`)).toMatchObject({
        data: { "tls.crt": Buffer.from("renewed").toString("base64") },
      }),
    );
    await cluster.delete(gatewayWith("ours", CLASS, "ours"));
    await eventually(() => expect(world().has(`Secret/${HOME}/ours`)).toBe(false));
    const ever = new Set(controller.batches.flat().map(({ key }) => key));
    expect(ever.has(`Secret/${HOME}/foreign`)).toBe(false);
    expect(ever.has(`Secret/${HOME}/idle`)).toBe(false);
  });

  test("a kind whose CRD comes later is read from then on, goes with it, and comes back", async () => {
    const listeners = [{ name: "web", port: 80, protocol: "HTTP" }];
    for (let round = 0; round < 2; round++) {
      await installCrds("xlistenerset");
      await eventually(() => cluster.create(xSet("late", listeners)));
      await eventually(() => expect(world().has(`XListenerSet/${HOME}/late`)).toBe(true));
      await cluster.delete(X_CRD);
      await eventually(() => expect(world().has(`XListenerSet/${HOME}/late`)).toBe(false));
      await eventually(() => expect(cluster.get(X_CRD)).rejects.toMatchObject({ status: 404 }));
    }
    expect(world().has(`HTTPRoute/${HOME}/before`)).toBe(true);
  });

  test("an object that a lax CRD has let through is left out and named; its neighbours are not", async () => {
    const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
    const versions = [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: open },
        subresources: { status: {} },
      },
    ];
    const names = { kind: "XListenerSet", plural: "xlistenersets" };
    const spec = { group: "gateway.networking.x-k8s.io", scope: "Namespaced", names, versions };
    const annotations = { "api-approved.kubernetes.io": "unapproved, experimental-only" };
    await cluster.create({
      ...X_CRD,
      metadata: { ...X_CRD.metadata, annotations } as Name["metadata"],
      spec,
    });
    await eventually(() => cluster.create(xSet("broken", "none at all")));
    await cluster.create(xSet("fine", [{ name: "web", port: 80, protocol: "HTTP", newer: { field: 1 } }]));
    await eventually(() => expect(world().has(`XListenerSet/${HOME}/fine`)).toBe(true));
    expect(JSON.stringify(world().get(`XListenerSet/${HOME}/fine`))).not.toContain("newer");
    expect(world().has(`XListenerSet/${HOME}/broken`)).toBe(false);
    expect(controller.log.filter((line) => line.includes(`XListenerSet/${HOME}/broken`))).toHaveLength(1);
    await cluster.delete(X_CRD);
    await eventually(() => expect(world().has(`XListenerSet/${HOME}/fine`)).toBe(false));
  });

  test("limited to one namespace it reads nothing of others", async () => {
    await cluster.create(routeNamed("elsewhere", OTHER));
    await eventually(() => expect(world().has(`HTTPRoute/${OTHER}/elsewhere`)).toBe(true));
    const limited = await start([HOME]);
    const namespaces = new Set([...world(limited).values()].map(({ metadata }) => metadata.namespace));
    expect(namespaces).toEqual(new Set([HOME, undefined]));
    expect([...world(limited).keys()].filter((key) => key.startsWith("Namespace/"))).toEqual([
      `Namespace//${HOME}`,
    ]);
    expect(world(limited).has(`GatewayClass//${CLASS}`)).toBe(true);
    await cluster.create(routeNamed("here", HOME));
    await eventually(() => expect(world(limited).has(`HTTPRoute/${HOME}/here`)).toBe(true));
  });

  const removed = (): readonly Key[] =>
    controller.batches.flatMap((batch) => batch.flatMap(({ key, resource }) => (resource ? [] : [key])));

  test("an API server that hangs and goes on: nothing is lost, and what follows is seen", async () => {
    const before = removed().length;
    const known = new Set(world().keys());
    await component("pause", "kube-apiserver");
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await component("resume", "kube-apiserver");
    await eventually(() => created(routeNamed("resumed", HOME)), 60);
    await eventually(() => expect(world().has(`HTTPRoute/${HOME}/resumed`)).toBe(true));
    expect(removed().slice(before)).toEqual([]);
    for (const key of known) expect(world().has(key), key).toBe(true);
  });

  test("an API server that is away for a while takes nothing with it, and what follows is seen", async () => {
    const before = removed().length;
    const known = new Set(world().keys());
    await component("stop", "kube-apiserver");
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    await component("start", "kube-apiserver");
    await eventually(() => created(routeNamed("afterwards", HOME)), 120);
    await eventually(() => expect(world().has(`HTTPRoute/${HOME}/afterwards`)).toBe(true));
    await cluster.delete(routeNamed("afterwards", HOME));
    await eventually(() => expect(world().has(`HTTPRoute/${HOME}/afterwards`)).toBe(false));
    expect(removed().slice(before)).toEqual([`HTTPRoute/${HOME}/afterwards`]);
    for (const key of known) expect(world().has(key), key).toBe(true);
  });
});
