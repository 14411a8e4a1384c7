import { describe, expect, test } from "vitest";
import { folder, mergeway } from "../mergeway.ts";

const PLATFORM = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra}
spec:
  gatewayClassName: mergeway
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: all, port: 80, protocol: HTTP, hostname: platform.test}]
---
apiVersion: mergeway.dev/v1alpha1
kind: TenantPolicy
metadata: {name: tenants, namespace: infra}
spec:
  targetRefs: [{kind: Gateway, name: gw}]
  unmatchedNamespaces: Allow
  transfers: [{hostname: other.test, to: {namespace: old}}]
---
`;

function set(namespace: string, created: string): string {
  return `apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: web, namespace: ${namespace}, creationTimestamp: ${created}}
spec:
  parentRef: {name: gw, namespace: infra}
  listeners: [{name: http, port: 80, protocol: HTTP, hostname: shop.test}]
---
`;
}

const OLD = set("old", "2026-01-01T00:00:00Z");
const NEW = set("new", "2026-02-02T00:00:00Z");

describe("transfer", () => {
  test("shows who gives the hostname up to whom, and what the TenantPolicy needs for it", async () => {
    const manifests = folder({ "all.yaml": PLATFORM + OLD + NEW });
    const { code, stdout } = await mergeway(["transfer", "Shop.test.", "--to", "new/web", "-f", manifests]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/shop\.test on port 80: .*old\/web.* gives it up to .*new\/web/);
    expect(stdout).toContain("Nothing was written.");
    expect(stdout).toMatch(
      /- hostname: other\.test[\s\S]*- hostname: shop\.test\n +to:\n +namespace: new\n +name: web/,
    );
  });

  test("says that nothing changes hands while the receiver cannot serve the hostname", async () => {
    const manifests = folder({ "all.yaml": PLATFORM + OLD });
    const { code, stdout } = await mergeway(["transfer", "shop.test", "--to", "new", "-f", manifests]);
    expect(code).toBe(1);
    expect(stdout).toContain("Nothing changes hands yet: namespace new has no listener");
  });

  test.each([
    [["shop.test"], "needs --to"],
    [["shop..test", "--to", "new"], "is no hostname"],
    [["shop.test", "--to", "new/web/more"], "--to names nobody"],
    [["shop.test", "--to", "New"], "--to names nobody"],
    [["shop.test", "--to", "new", "--gateway", "infra/none"], "Gateway infra/none has a TenantPolicy"],
  ])("cannot run with %j", async (args, message) => {
    const manifests = folder({ "all.yaml": PLATFORM + OLD });
    const { code, stderr } = await mergeway(["transfer", ...args, "-f", manifests]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

test("resolve takes nothing that is no reference", async () => {
  const { code, stderr } = await mergeway(["resolve", "shop.test", "--context", "none"]);
  expect(code).toBe(2);
  expect(stderr).toContain("is no reference");
});
