import { CLASS, GATEWAY, set } from "./case-manifests.ts";
import type { CheckCase } from "./check-case.ts";

export const OWNER_CASES: readonly CheckCase[] = [
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
];
