/** Histories in which policies come, change and go over a Gateway, sets and routes that serve. */
import * as fc from "fast-check";
import { keyOf } from "../../../src/api/key.ts";
import { GATEWAY_GROUP, type Resource } from "../../../src/api/resource.ts";
import { backendPolicySpec, clientPolicySpec, trafficPolicySpec } from "../random-policies.ts";
import { attachedPolicy, type Change, change } from "../random-resources.ts";

const API = `${GATEWAY_GROUP}/v1`;
const ALL = { namespaces: { from: "All" } };
const GATEWAY = { group: GATEWAY_GROUP, kind: "Gateway", name: "gw-main", namespace: "ns-plat" };

function listener(name: string, hostname: string): object {
  return { name, port: 80, protocol: "HTTP", hostname, allowedRoutes: ALL };
}

function team(namespace: string, hostnames: readonly [string, string]): readonly object[] {
  const set = `ls-${namespace.slice(3)}one`;
  const section = `sect-${namespace.slice(3)}one`;
  const parent = { group: GATEWAY_GROUP, kind: "ListenerSet", name: set, namespace };
  const backendRefs = [{ group: "", kind: "Service", name: "svc-good", port: 8080, weight: 1 }];
  const first = {
    name: "rule-first",
    matches: [{ path: { type: "Exact", value: "/a" } }],
    backendRefs,
    timeouts: { request: "10s" },
  };
  const second = {
    matches: [{ path: { type: "Exact", value: "/b" } }],
    backendRefs,
    timeouts: { request: "0s", backendRequest: "2s" },
  };
  const rest = { matches: [{ path: { type: "PathPrefix", value: "/" } }], backendRefs };
  return [
    {
      apiVersion: API,
      kind: "ListenerSet",
      metadata: { name: set, namespace },
      spec: {
        parentRef: GATEWAY,
        listeners: [listener(`${section}x`, hostnames[0]), listener(`${section}y`, hostnames[1])],
      },
    },
    {
      apiVersion: API,
      kind: "HTTPRoute",
      metadata: { name: "rt-onehttproute", namespace },
      spec: { parentRefs: [parent, GATEWAY], rules: [first, second, rest] },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "svc-good", namespace },
      spec: { ports: [{ name: "http", port: 8080 }] },
    },
  ];
}

export const world: readonly Change[] = [
  {
    apiVersion: API,
    kind: "Gateway",
    metadata: { name: "gw-main", namespace: "ns-plat" },
    spec: {
      gatewayClassName: "mergeway",
      allowedListeners: ALL,
      listeners: [listener("sect-mainx", "host-main.test")],
    },
  },
  ...team("ns-ant", ["host-one.test", "*.host-one.test"]),
  ...team("ns-bee", ["host-two.test", "sub.host-one.test"]),
].map((resource) => ({ key: keyOf(resource as Resource), resource: resource as Resource }));

const policyChange: fc.Arbitrary<Change> = fc
  .record({
    policy: fc.oneof(
      { weight: 6, arbitrary: attachedPolicy("TrafficPolicy", trafficPolicySpec) },
      { weight: 1, arbitrary: attachedPolicy("ClientPolicy", clientPolicySpec) },
      { weight: 3, arbitrary: attachedPolicy("BackendPolicy", backendPolicySpec) },
    ),
    deleted: fc.constantFrom(false, false, false, true),
  })
  .map(({ policy, deleted }) => ({ key: keyOf(policy), resource: deleted ? undefined : policy }));

export const policyHistory: fc.Arbitrary<readonly (readonly Change[])[]> = fc
  .array(
    fc.array(fc.oneof({ weight: 8, arbitrary: policyChange }, { weight: 1, arbitrary: change }), {
      minLength: 1,
      maxLength: 3,
    }),
    { minLength: 1, maxLength: 12, size: "max" },
  )
  .map((steps) => [world, ...steps]);
