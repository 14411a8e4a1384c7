import { GATEWAY, route, set } from "./case-manifests.ts";
import type { CheckCase } from "./check-case.ts";

export const ROUTE_CASES: readonly CheckCase[] = [
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
    rule: "name-out-of-wildcard",
    text:
      GATEWAY + set("team-a", { hostname: "*.example.com" }) + set("team-b", { hostname: "b.example.com" }),
    owner: "ListenerSet team-a/web",
    message: /does not get b\.example\.com: ListenerSet team-b\/web, listener main/,
    at: "listeners",
  },
  {
    // Teams are meant to take names out of a wildcard of the Gateway itself.
    rule: "overlap",
    text:
      GATEWAY.replace("{name: http", "{hostname: '*.example.com', name: http") +
      set("team-b", { hostname: "b.example.com" }),
    owner: "Gateway infra/shared",
    message: /does not get b\.example\.com/,
    at: "listeners",
  },
];
