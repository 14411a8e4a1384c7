import { GATEWAY, set } from "./case-manifests.ts";
import type { CheckCase } from "./check-case.ts";

const BASE = GATEWAY + set("team-a", { hostname: "a.example.com" });

interface Policy {
  readonly kind?: "TrafficPolicy" | "ClientPolicy";
  readonly name?: string;
  readonly namespace?: string;
  readonly created?: string;
  readonly targets: string;
  readonly rest: string;
}

export function policy({
  kind = "TrafficPolicy",
  name = "own",
  namespace = "team-a",
  created = "2026-01-01T00:00:00Z",
  targets,
  rest,
}: Policy): string {
  return `
apiVersion: mergeway.dev/v1alpha1
kind: ${kind}
metadata: {name: ${name}, namespace: ${namespace}, creationTimestamp: ${created}}
spec:
  targetRefs:
  - ${targets}
  ${rest}
---`;
}

const LIMIT = "defaults: {rateLimits: [{requests: 10}]}";

export const POLICY_CASES: readonly CheckCase[] = [
  {
    rule: "policy-target",
    text: `${BASE}${policy({ targets: "{kind: ListenerSet, name: web, sectionName: https}", rest: LIMIT })}`,
    owner: "TrafficPolicy team-a/own",
    message: /^ListenerSet team-a\/web, https: it has no listener of that name$/,
    at: "kind: ListenerSet",
  },
  {
    rule: "policy-conflict",
    text: `${BASE}${policy({ targets: "{kind: ListenerSet, name: web}", rest: LIMIT })}${policy({
      name: "second",
      created: "2026-02-01T00:00:00Z",
      targets: "{kind: ListenerSet, name: web}",
      rest: LIMIT,
    })}`,
    owner: "TrafficPolicy team-a/second",
    message: /^TrafficPolicy team-a\/own has the same target, ListenerSet team-a\/web, and comes first$/,
    at: "kind: ListenerSet",
  },
  {
    rule: "policy-not-confinable",
    text: `${BASE}${policy({
      kind: "ClientPolicy",
      targets: "{kind: ListenerSet, name: web}",
      rest: "defaults: {clientAddress: {proxyProtocol: Required}}",
    })}`,
    owner: "ClientPolicy team-a/own",
    message: /holds for whole ports, which other listeners share/,
    at: "kind: ListenerSet",
  },
  {
    rule: "policy-invalid",
    text: `${BASE}${policy({
      targets: "{kind: ListenerSet, name: web}",
      rest: "overrides: {clientAddresses: {deny: ['1::2::3']}}",
    })}`,
    owner: "TrafficPolicy team-a/own",
    message: /^spec\.overrides\.clientAddresses\.deny: "1::2::3" is no network$/,
    at: "deny:",
  },
  {
    rule: "policy-without-effect",
    text: `${BASE}${policy({
      targets: "{kind: ListenerSet, name: web}",
      rest: LIMIT,
    })}${policy({ name: "near", targets: "{kind: HTTPRoute, name: web}", rest: LIMIT })}`,
    owner: "TrafficPolicy team-a/own",
    message: /^nothing of it holds anywhere/,
    at: "spec",
  },
  {
    rule: "policy-looser",
    text: `${BASE}${policy({
      name: "base",
      namespace: "infra",
      targets: "{kind: Gateway, name: shared}",
      rest: "overrides: {rateLimits: [{requests: 10, per: ClientAddress}]}",
    })}${policy({
      targets: "{kind: ListenerSet, name: web}",
      rest: "defaults: {rateLimits: [{requests: 5, per: ClientAddress}, {requests: 700, period: 1m, per: ClientAddress}]}",
    })}`,
    owner: "TrafficPolicy team-a/own",
    message: /^the limit never decides: it is looser than an override of the Gateway$/,
    at: "requests: 700",
  },
];
