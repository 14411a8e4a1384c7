/** One case per rule of `mergeway check`: manifests, and the finding that they must give. */
import { selfSigned, type TestCertificate } from "../../dataplanes/support/certificates.ts";

/** When the cases are checked. */
export const NOW: Date = new Date("2026-06-01T00:00:00Z");

export const CLASS: string = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: mergeway}
spec: {controllerName: mergeway.dev/controller}
---`;

/** A Gateway with one listener that has a route, so that nothing is to be said of it. */
export const GATEWAY: string = `${CLASS}
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: mergeway
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: home, namespace: infra}
spec: {parentRefs: [{name: shared}], rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]}
---`;

interface Entry {
  readonly name?: string;
  readonly port?: number;
  readonly hostname?: string;
  readonly tls?: string;
}

export function set(namespace: string, { name = "web", port = 80, hostname, tls }: Entry): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners:
  - name: main
    port: ${port}
    protocol: ${tls === undefined ? "HTTP" : "HTTPS"}
    ${hostname === undefined ? "" : `hostname: "${hostname}"`}
    ${tls === undefined ? "" : `tls: {certificateRefs: [${tls}]}`}
---${route(namespace, { name, parent: name })}`;
}

function route(namespace: string, { name = "web", parent = "web", rules = REDIRECT, rest = "" }): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  parentRefs: [{kind: ListenerSet, name: ${parent}}]
  ${rest}
  rules: ${rules}
---`;
}

const REDIRECT = "[{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]";

function secret(namespace: string, name: string, { cert, key }: TestCertificate): string {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  return `
apiVersion: v1
kind: Secret
metadata: {name: ${name}, namespace: ${namespace}}
type: kubernetes.io/tls
data: {tls.crt: ${base64(cert)}, tls.key: ${base64(key)}}
---`;
}

function days(count: number): { readonly notBefore: Date; readonly notAfter: Date } {
  return { notBefore: new Date("2020-01-01"), notAfter: new Date(NOW.getTime() + count * 86_400_000) };
}

const LONG = days(400);

export interface CheckCase {
  readonly rule: string;
  readonly text: string;
  readonly owner: string;
  readonly message: RegExp;
  /** Text that stands at the place of the finding. */
  readonly at: string;
  /** Rules that may speak beside it. */
  readonly beside?: readonly string[];
}

export const CASES: readonly CheckCase[] = [
  {
    rule: "unknown-class",
    text: GATEWAY.replace(CLASS, ""),
    owner: "Gateway infra/shared",
    message: /GatewayClass mergeway is not here/,
    at: "gatewayClassName",
  },
  {
    rule: "other-controller",
    text: GATEWAY.replace("mergeway.dev/controller", "example.com/other")
      .replace(/kind: HTTPRoute[\s\S]*/, "kind: Namespace\nmetadata: {name: x}")
      .replace(/apiVersion: [^\n]*\nkind: Namespace/, "apiVersion: v1\nkind: Namespace"),
    owner: "Gateway infra/shared",
    message: /belongs to another controller/,
    at: "apiVersion",
  },
  {
    rule: "gateway-not-accepted",
    text: GATEWAY.replace(
      "listeners: [{name: http",
      "addresses: [{type: example.com/odd, value: x}]\n  listeners: [{name: http",
    ),
    owner: "Gateway infra/shared",
    message: /UnsupportedAddress/,
    at: "spec",
    beside: ["route-not-accepted"],
  },
  {
    rule: "gateway-reference",
    text: GATEWAY.replace(
      "listeners: [{name: http",
      "tls: {backend: {clientCertificateRef: {name: nothing}}}\n  listeners: [{name: http",
    ),
    owner: "Gateway infra/shared",
    message: /Secret nothing does not exist/,
    at: "tls",
  },
  {
    rule: "set-not-accepted",
    text: GATEWAY.replace("from: All", "from: Same") + set("team-a", { hostname: "a.example.com" }),
    owner: "ListenerSet team-a/web",
    message: /NotAllowed: .*namespace team-a/,
    at: "parentRef",
    beside: ["route-not-accepted"],
  },
  {
    rule: "namespace-labels-unknown",
    text:
      GATEWAY.replace(
        "from: All",
        'from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: "team-a"}}',
      ) + set("team-a", { hostname: "a.example.com" }),
    owner: "ListenerSet team-a/web",
    message: /labels of namespace team-a are not known/,
    at: "namespace: team-a",
  },
  {
    rule: "listener-conflict",
    text:
      GATEWAY + set("team-a", { hostname: "a.example.com" }) + set("team-b", { hostname: "a.example.com" }),
    owner: "ListenerSet team-b/web",
    message: /HostnameConflict: .*held by ListenerSet team-a\/web, listener main/,
    at: "name: main",
  },
  {
    rule: "listener-not-accepted",
    text: GATEWAY.replace("protocol: HTTP}", "protocol: example.com/odd}")
      .replace(/kind: HTTPRoute[\s\S]*/, "kind: Namespace\nmetadata: {name: x}")
      .replace(/apiVersion: [^\n]*\nkind: Namespace/, "apiVersion: v1\nkind: Namespace"),
    owner: "Gateway infra/shared",
    message: /UnsupportedProtocol/,
    at: "{name: http",
  },
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
    rule: "listener-reference",
    text: GATEWAY.replace(
      "protocol: HTTP}",
      "protocol: HTTP, allowedRoutes: {kinds: [{kind: HTTPRoute}, {kind: TCPRoute}]}}",
    ),
    owner: "Gateway infra/shared",
    message: /InvalidRouteKinds/,
    at: "{name: http",
  },
  {
    rule: "certificate-invalid",
    text:
      GATEWAY +
      set("team-a", { port: 443, hostname: "a.example.com", tls: "{name: cert}" }) +
      secret("team-a", "cert", { ...selfSigned(["a.example.com"], LONG), key: selfSigned(["b"]).key }),
    owner: "ListenerSet team-a/web",
    message: /Secret team-a\/cert cannot be used: tls.key does not belong to tls.crt/,
    at: "{name: cert}",
  },
  {
    rule: "certificate-expired",
    text:
      GATEWAY +
      set("team-a", { port: 443, hostname: "a.example.com", tls: "{name: cert}" }) +
      secret("team-a", "cert", selfSigned(["a.example.com"], days(-3))),
    owner: "ListenerSet team-a/web",
    message: /has ended 3 days ago \(2026-05-29\)/,
    at: "{name: cert}",
  },
  {
    rule: "certificate-expiring",
    text:
      GATEWAY +
      set("team-a", { port: 443, hostname: "a.example.com", tls: "{name: cert}" }) +
      secret("team-a", "cert", selfSigned(["a.example.com"], days(29))),
    owner: "ListenerSet team-a/web",
    message: /ends in 29 days/,
    at: "{name: cert}",
  },
  {
    rule: "certificate-name",
    text:
      GATEWAY +
      set("team-a", { port: 443, hostname: "a.b.example.com", tls: "{name: cert}" }) +
      secret("team-a", "cert", selfSigned(["*.example.com"], LONG)),
    owner: "ListenerSet team-a/web",
    message: /are for \*\.example\.com, not for a\.b\.example\.com/,
    at: "name: main",
  },
  {
    rule: "certificate-covers-other-tenant",
    text:
      GATEWAY +
      set("team-a", { port: 443, hostname: "a.example.com", tls: "{name: cert}" }) +
      secret("team-a", "cert", selfSigned(["*.example.com"], LONG)) +
      set("team-b", { port: 443, hostname: "b.example.com", tls: "{name: cert}" }) +
      secret("team-b", "cert", selfSigned(["b.example.com"], LONG)),
    owner: "ListenerSet team-a/web",
    message: /also covers b\.example\.com, which ListenerSet team-b\/web serves on port 443/,
    at: "{name: cert}",
  },
  {
    rule: "route-without-parent",
    text: GATEWAY + route("team-a", { parent: "nowhere" }),
    owner: "HTTPRoute team-a/web",
    message: /its parent is not here: gateway\.networking\.k8s\.io\/ListenerSet team-a\/nowhere/,
    at: "{kind: ListenerSet",
  },
  {
    rule: "route-not-accepted",
    text:
      GATEWAY +
      set("team-a", { hostname: "a.example.com" }) +
      route("team-a", { name: "other", rest: "hostnames: [b.example.com]" }),
    owner: "HTTPRoute team-a/other",
    message: /NoMatchingListenerHostname/,
    at: "{kind: ListenerSet",
  },
  {
    rule: "rule-dropped",
    text:
      GATEWAY +
      set("team-a", { hostname: "a.example.com" }) +
      route("team-a", {
        name: "other",
        rules: `[{matches: [{path: {value: /x}}], filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}, {matches: [{path: {type: RegularExpression, value: "/(?=a)"}}]}]`,
      }),
    owner: "HTTPRoute team-a/other",
    message: /Dropped Rule 1/,
    at: "{matches: [{path: {type: RegularExpression",
  },
  {
    rule: "rule-refused",
    text: `${GATEWAY}
${set("team-a", { hostname: "a.example.com" })}
${route("team-a", { name: "other", rules: "[{matches: [{path: {value: /x}}], filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]" }).replace(/---\s*$/, "")}
status:
  parents:
  - controllerName: mergeway.dev/controller
    parentRef: {group: gateway.networking.k8s.io, kind: ListenerSet, name: own}
    conditions:
    - {type: mergeway.dev/Programmed, status: "False", reason: Refused, message: "the data plane refuses rules[0].retry: requests that the rule matches are answered with 500", lastTransitionTime: "2026-06-01T00:00:00Z"}
`,
    owner: "HTTPRoute team-a/other",
    message: /Refused: the data plane refuses rules\[0\]\.retry/,
    at: "{matches: [{path: {value: /x}}]",
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
    rule: "shadowed-rule",
    text:
      GATEWAY +
      set("team-a", { hostname: "a.example.com" }) +
      route("team-a", { name: "younger", rules: "[{matches: [{path: {value: /}}], backendRefs: []}]" }),
    owner: "HTTPRoute team-a/younger",
    message: /nothing reaches rule 0 for hostname a\.example\.com: HTTPRoute team-a\/web rule 0/,
    at: "{path: {value: /}}",
  },
  {
    rule: "unreachable-hostname",
    text:
      GATEWAY +
      set("team-a", { hostname: "*.example.com" }) +
      route("team-a", { name: "lost", rest: "hostnames: [b.example.com]" }) +
      set("team-b", { hostname: "b.example.com" }),
    owner: "HTTPRoute team-a/lost",
    message: /ListenerSet team-b\/web, listener main \(b\.example\.com\) takes all of that name/,
    at: "spec",
    beside: ["name-out-of-wildcard"],
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
  {
    rule: "listener-without-routes",
    text:
      GATEWAY +
      set("team-a", { hostname: "a.example.com" }).replace(/apiVersion: [^\n]*\nkind: HTTPRoute[\s\S]*/, ""),
    owner: "ListenerSet team-a/web",
    message: /no route is attached/,
    at: "name: main",
  },
  {
    rule: "placeholder-listener",
    text: GATEWAY.replace(/apiVersion: [^\n]*\nkind: HTTPRoute[\s\S]*/, ""),
    owner: "Gateway infra/shared",
    message: /answers every hostname that no set names on port 80 with 404/,
    at: "{name: http",
  },
  {
    rule: "name-out-of-wildcard",
    text:
      GATEWAY + set("team-a", { hostname: "*.example.com" }) + set("team-b", { hostname: "b.example.com" }),
    owner: "ListenerSet team-a/web",
    message: /does not get b\.example\.com: ListenerSet team-b\/web, listener main/,
    at: "listeners",
  },
  {
    // A wildcard of the platform team's own is there for teams to take names out of.
    rule: "overlap",
    text:
      GATEWAY.replace("{name: http", "{hostname: '*.example.com', name: http") +
      set("team-b", { hostname: "b.example.com" }),
    owner: "Gateway infra/shared",
    message: /does not get b\.example\.com/,
    at: "listeners",
  },
];
