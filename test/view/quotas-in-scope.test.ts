/** The use of quotas, as much of it as somebody may read. */
import { describe, expect, test } from "vitest";
import { type Key, keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { Engine } from "../../src/engine/engine.ts";
import { renderStatus } from "../../src/status/render.ts";
import type { PolicyView } from "../../src/view/merged-state.ts";
import { readingScope } from "../../src/view/written/reading-scope.ts";
import { stateInScope } from "../../src/view/written/state-in-scope.ts";
import { TEST_SETTINGS } from "../engine/settings.ts";

const GATEWAY = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw", namespace: "infra" };

function object(kind: string, namespace: string, name: string, spec: object): Resource {
  return {
    apiVersion: "v1",
    kind,
    metadata: { namespace, name, generation: 1 },
    spec,
  } as unknown as Resource;
}

function team(namespace: string, ...parents: readonly object[]): readonly Resource[] {
  const listeners = [{ name: "web", port: 80, protocol: "HTTP", hostname: `${namespace}.test` }];
  const own = { group: GATEWAY.group, kind: "ListenerSet", name: "set" };
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } } as unknown as Resource,
    object("ListenerSet", namespace, "set", { parentRef: GATEWAY, listeners }),
    object("HTTPRoute", namespace, "app", { parentRefs: [own, ...parents], rules: [{ backendRefs: [] }] }),
  ];
}

const gatewayClass = {
  ...{ apiVersion: "v1", kind: "GatewayClass", metadata: { name: "mergeway" } },
  spec: { controllerName: TEST_SETTINGS.controllerName },
} as unknown as Resource;

const platform: readonly Resource[] = [
  gatewayClass,
  object("Gateway", "infra", "gw", {
    gatewayClassName: "mergeway",
    allowedListeners: { namespaces: { from: "All" } },
    listeners: [{ name: "web", port: 80, protocol: "HTTP", hostname: "platform.test" }],
  }),
  object("TenantPolicy", "infra", "tenants", {
    ...{ targetRefs: [GATEWAY], enforcement: "Enforce", unmatchedNamespaces: "Deny" },
    rules: [
      {
        ...{ namespaceSelector: {}, hostnames: { allow: ["*"] } },
        quota: { listeners: 4, ports: 2, certificates: 3, routes: 5 },
      },
    ],
  }),
];

function keyed(resources: readonly Resource[]): ReadonlyMap<Key, Resource> {
  return new Map(resources.map((resource) => [keyOf(resource), resource]));
}

function engineOf(resources: ReadonlyMap<Key, Resource>): Engine {
  const engine = new Engine(TEST_SETTINGS);
  engine.apply(Array.from(resources, ([key, resource]) => ({ key, resource })));
  return engine;
}

/** As a controller that knows everything has written them. */
function withStatuses(resources: readonly Resource[]): readonly Resource[] {
  const engine = engineOf(keyed(resources));
  const { controllerName } = TEST_SETTINGS;
  return resources.map((resource) => {
    const verdict = engine.verdict(keyOf(resource));
    if (verdict === undefined) return resource;
    const status = renderStatus(resource, verdict, { controllerName, now: "2026-01-01T00:00:00Z" });
    return { ...resource, status } as Resource;
  });
}

const everything = withStatuses([...platform, ...team("one"), ...team("two")]);

/** `namespace: resource used/limit …` as somebody sees it who reads these namespaces, or all. */
function shown(all: readonly Resource[], namespaces: readonly string[], unread: readonly string[]): unknown {
  const isRead = ({ kind, metadata: { namespace } }: Resource): boolean =>
    (namespaces.length === 0 || namespace === undefined || namespaces.includes(namespace)) &&
    !unread.some((resource) => resource.startsWith(`${kind.toLowerCase()}s`));
  const resources = keyed(all.filter(isRead));
  const { controllerName } = TEST_SETTINGS;
  const sources = { engine: engineOf(resources), resources, isLive: true, controllerName };
  const { gateways } = stateInScope(sources, readingScope(namespaces, unread));
  const policies = gateways.flatMap(({ owners }) =>
    owners.flatMap((owner): readonly PolicyView[] => owner.policies),
  );
  return policies.flatMap(({ quotas = [] }) =>
    quotas.map(({ namespace, resources: uses }) =>
      [`${namespace}:`, ...uses.map(({ resource, used, limit }) => `${resource} ${used}/${limit}`)].join(" "),
    ),
  );
}

describe("the use of quotas", () => {
  const whole = "listeners 1/4 ports 1/2 certificates 0/3 routes 1/5";

  test("is shown to who may read everything, of every namespace", () => {
    expect(shown(everything, [], [])).toEqual([`one: ${whole}`, `two: ${whole}`]);
  });

  test("has no certificates for who may not read Secrets", () => {
    const rest = "listeners 1/4 ports 1/2 routes 1/5";
    expect(shown(everything, [], ["secrets"])).toEqual([`one: ${rest}`, `two: ${rest}`]);
  });

  test("is that of a team's own namespace for a team that may read the policy, and of no other", () => {
    expect(shown(everything, ["infra", "one"], [])).toEqual(["one: listeners 1/4 routes 1/5"]);
  });

  test("leaves out routes of which it cannot be known whether they are attached", () => {
    const foreign = { group: GATEWAY.group, kind: "ListenerSet", name: "set", namespace: "two" };
    const all = withStatuses([...platform, ...team("one", foreign), ...team("two")]);
    expect(shown(all, ["infra", "one"], [])).toEqual(["one: listeners 1/4"]);
  });

  test.each([
    [["one"], []],
    [["infra", "one"], ["namespaces"]],
    [[], ["tenantpolicies.mergeway.dev"]],
  ])("is not guessed by who reads the namespaces %j without %j", (namespaces, unread) => {
    const all = everything.filter(({ kind }) => kind !== "Namespace" || !unread.includes("namespaces"));
    const read = all.filter(
      ({ kind }) => kind !== "TenantPolicy" || unread[0]?.startsWith("tenant") !== true,
    );
    expect(shown(read, namespaces, unread)).toEqual([]);
  });
});
