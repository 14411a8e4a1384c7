import { GATEWAY, set } from "./case-manifests.ts";
import type { CheckCase } from "./check-case.ts";

export const LISTENER_CASES: readonly CheckCase[] = [
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
];
