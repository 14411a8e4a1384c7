import { expect, test } from "vitest";
import { folder, mergeway } from "../mergeway.ts";

const GATEWAY = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra, creationTimestamp: 2026-01-01T00:00:00Z}
spec:
  gatewayClassName: mergeway
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: all, port: 80, protocol: HTTP, hostname: "*.example.com"}
---
`;

function set(namespace: string, created: string, hostname: string): string {
  return `apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: web, namespace: ${namespace}, creationTimestamp: ${created}}
spec:
  parentRef: {name: gw, namespace: infra}
  listeners:
  - {name: http, port: 80, protocol: HTTP, hostname: ${hostname}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: app, namespace: ${namespace}}
spec: {parentRefs: [{kind: ListenerSet, name: web}]}
---
`;
}

const WORLD = {
  "all.yaml":
    GATEWAY +
    set("older", "2026-01-02T00:00:00Z", "shop.example.com") +
    set("younger", "2026-01-03T00:00:00Z", "shop.example.com"),
};

test("who names the holder, its routes, who was refused and why, and the next wider pattern", async () => {
  const { code, stdout: out } = await mergeway(["who", "Shop.Example.com.", "-f", folder(WORLD)]);
  expect(code).toBe(0);
  expect(out).toContain("shop.example.com on port 80  HTTP, Gateway infra/gw");
  expect(out).toMatch(
    /held by {2}ListenerSet older\/web, listener http, created 2026-01-02T00:00:00Z, as shop/,
  );
  expect(out).toContain("routes: HTTPRoute older/app");
  expect(out).toMatch(
    /refused {2}ListenerSet younger\/web, listener http, .*: HostnameConflict \(the holder is older\)/,
  );
  expect(out).toMatch(/next {5}Gateway infra\/gw, listener all, .*, as \*\.example\.com/);
});

test("who says that a name is held through a wildcard, and prints JSON", async () => {
  const { code, stdout: out } = await mergeway(["who", "other.example.com", "--json", "-f", folder(WORLD)]);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject([
    {
      port: 80,
      holder: { owner: { kind: "Gateway" }, listener: { hostname: "*.example.com" } },
      refused: [],
    },
  ]);
});

test("who ends with 1 when nobody holds the name, and with 2 when it is none", async () => {
  const manifests = folder(WORLD);
  const nobody = await mergeway(["who", "example.org", "-f", manifests]);
  expect(nobody).toMatchObject({ code: 1, stdout: "No listener asks for example.org.\n" });
  const none = await mergeway(["who", "no hostname", "-f", manifests]);
  expect(none.code).toBe(2);
  expect(none.stderr).toContain("is no hostname");
});
