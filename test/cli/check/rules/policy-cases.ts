import { GATEWAY, set } from "./case-manifests.ts";
import type { CheckCase } from "./check-case.ts";

const BASE = GATEWAY + set("team-a", { hostname: "a.example.com" });

interface Policy {
  readonly kind?: "TrafficPolicy" | "ClientPolicy" | "BackendPolicy";
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
    rule: "policy-reference",
    text: `${BASE}${policy({
      targets: "{kind: ListenerSet, name: web}",
      rest: "overrides: {basicAuth: {secretRef: {name: gone}}}",
    })}`,
    owner: "TrafficPolicy team-a/own",
    message: /^basicAuth: Secret gone does not exist$/,
    at: "spec",
  },
  {
    rule: "policy-reference",
    text: `${BASE}${policy({
      kind: "ClientPolicy",
      targets: "{kind: ListenerSet, name: web}",
      rest: "overrides: {tls: {clientCertificates: {caCertificateRefs: [{name: gone}]}}}",
    })}`,
    owner: "ClientPolicy team-a/own",
    message: /^clientCertificates: ConfigMap gone does not exist$/,
    at: "spec",
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
  {
    rule: "policy-looser",
    text: `${BASE}${policy({
      name: "base",
      namespace: "infra",
      targets: "{kind: Gateway, name: shared}",
      rest: "overrides: {requestBody: {maxSize: 1Mi}}",
    })}${policy({
      targets: "{kind: ListenerSet, name: web}",
      rest: "defaults: {requestBody: {maxSize: 1048577}}",
    })}`,
    owner: "TrafficPolicy team-a/own",
    message: /^the limit never decides: it is looser than an override of the Gateway$/,
    at: "maxSize: 1048577",
  },
  {
    rule: "policy-looser",
    text: `${BASE}${policy({
      name: "base",
      namespace: "infra",
      targets: "{kind: Gateway, name: shared}",
      rest: "overrides: {timeouts: {request: 30s, idle: 10s}}",
    })}${policy({
      targets: "{kind: ListenerSet, name: web}",
      rest: "defaults: {timeouts: {request: 1m, backendRequest: 5s, idle: 5s}}",
    })}`,
    owner: "TrafficPolicy team-a/own",
    message: /^request never decides: it is longer than an override of the Gateway$/,
    at: "timeouts: {request: 1m",
  },
  {
    rule: "policy-looser",
    text: `${BASE}${policy({
      name: "base",
      namespace: "infra",
      targets: "{kind: Gateway, name: shared}",
      rest: "overrides: {httpsRedirect: {}}",
    })}${policy({
      targets: "{kind: ListenerSet, name: web}",
      rest: "defaults: {httpsRedirect: {enabled: false}}",
    })}`,
    owner: "TrafficPolicy team-a/own",
    message: /^redirects stay: they are demanded by an override of the Gateway$/,
    at: "enabled: false",
  },
  {
    rule: "policy-looser",
    text: `${BASE}${policy({
      name: "base",
      namespace: "infra",
      targets: "{kind: Gateway, name: shared}",
      rest: "overrides: {retries: {attempts: 2}}",
    })}${policy({
      targets: "{kind: ListenerSet, name: web}",
      rest: "defaults: {retries: {attempts: 3}}",
    })}`,
    owner: "TrafficPolicy team-a/own",
    message: /^attempts never decides: it is more than an override of the Gateway$/,
    at: "attempts: 3",
  },
  {
    rule: "policy-looser",
    text: `${BASE}${policy({
      name: "base",
      namespace: "infra",
      targets: "{kind: Gateway, name: shared}",
      rest: "overrides: {cors: {}}",
    })}${policy({
      targets: "{kind: ListenerSet, name: web}",
      rest: "overrides: {cors: {allowOrigins: ['*']}}",
    })}`,
    owner: "TrafficPolicy team-a/own",
    message: /^the setting never decides: it gives way to an override of the Gateway$/,
    at: "cors: {allowOrigins",
  },
  {
    rule: "policy-looser",
    text: `${BASE}${policy({
      name: "base",
      namespace: "infra",
      targets: "{kind: Gateway, name: shared}",
      rest: "overrides: {compression: {enabled: false}}",
    })}${policy({
      targets: "{kind: ListenerSet, name: web}",
      rest: "overrides: {compression: {minBytes: 100}}",
    })}`,
    owner: "TrafficPolicy team-a/own",
    message: /^the setting never decides: it gives way to an override of the Gateway$/,
    at: "compression: {minBytes",
  },
  {
    rule: "policy-target",
    text: `${BASE}${policy({
      kind: "BackendPolicy",
      targets: "{group: '', kind: Service, name: gone}",
      rest: "defaults: {loadBalancing: {type: Random}}",
    })}`,
    owner: "BackendPolicy team-a/own",
    message: /^Service team-a\/gone: it does not exist$/,
    at: "group: '', kind: Service",
  },
  {
    rule: "policy-without-effect",
    text: `${BASE}${policy({
      kind: "BackendPolicy",
      targets: "{group: '', kind: Service, name: idle}",
      rest: "defaults: {loadBalancing: {type: Random}}",
    })}
apiVersion: v1
kind: Service
metadata: {name: idle, namespace: team-a}
spec: {ports: [{port: 80}]}
---`,
    owner: "BackendPolicy team-a/own",
    message: /^it reaches no backend that is served$/,
    at: "spec:",
  },
];
