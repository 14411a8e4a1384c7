import { selfSigned } from "../../../dataplanes/support/certificates.ts";
import { GATEWAY, LONG, route, secret, set } from "./case-manifests.ts";
import type { CheckCase } from "./check-case.ts";

export const REFERENCE_CASES: readonly CheckCase[] = [
  {
    rule: "missing-grant",
    text:
      GATEWAY +
      set("team-a", { port: 443, hostname: "a.example.com", tls: "{name: cert, namespace: team-b}" }) +
      secret("team-b", "cert", selfSigned(["a.example.com"], LONG)),
    owner: "ListenerSet team-a/web",
    message: /no ReferenceGrant in namespace team-b/,
    at: "tls",
  },
  {
    rule: "route-reference",
    text:
      GATEWAY +
      set("team-a", { hostname: "a.example.com" }) +
      route("team-a", {
        name: "other",
        rules: "[{matches: [{path: {value: /x}}], backendRefs: [{name: gone, port: 80}]}]",
      }),
    owner: "HTTPRoute team-a/other",
    message: /BackendNotFound: Service gone does not exist/,
    at: "rules",
  },
  {
    rule: "policy-not-accepted",
    text: `${GATEWAY}${set("team-a", { hostname: "a.example.com" })}${route("team-a", { name: "other", rules: "[{matches: [{path: {value: /x}}], backendRefs: [{name: svc, port: 80}]}]" })}
apiVersion: v1
kind: Service
metadata: {name: svc, namespace: team-a}
spec: {ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: tls, namespace: team-a}
spec:
  targetRefs: [{group: "", kind: Service, name: svc}]
  validation: {hostname: svc.example.com, caCertificateRefs: [{group: "", kind: ConfigMap, name: gone}]}
`,
    owner: "BackendTLSPolicy team-a/tls",
    message: /NoValidCACertificate: .*; InvalidCACertificateRef: .*gone/,
    at: "spec",
  },
  {
    rule: "no-endpoints",
    text: `${GATEWAY}${set("team-a", { hostname: "a.example.com" })}${route("team-a", { name: "other", rules: "[{matches: [{path: {value: /x}}], backendRefs: [{name: svc, port: 80}]}]" })}
apiVersion: v1
kind: Service
metadata: {name: svc, namespace: team-a}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: svc-1, namespace: team-a, labels: {kubernetes.io/service-name: svc}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1], conditions: {ready: false}}]
ports: [{port: 8080}]
`,
    owner: "HTTPRoute team-a/other",
    message: /Service team-a\/svc, port 80, has no ready endpoint/,
    at: "rules",
  },
];
