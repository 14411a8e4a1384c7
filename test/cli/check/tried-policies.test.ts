import { describe, expect, test } from "vitest";
import { folder, mergeway } from "../mergeway.ts";

const GATEWAY = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra, creationTimestamp: 2026-01-01T00:00:00Z}
spec:
  gatewayClassName: mergeway
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: all, port: 80, protocol: HTTP, hostname: guard.example.com}
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
`;
}

function policy(allow: string, enforcement: string): string {
  return `apiVersion: mergeway.dev/v1alpha1
kind: TenantPolicy
metadata: {name: tenants, namespace: infra}
spec:
  targetRefs: [{kind: Gateway, name: gw}]
  enforcement: ${enforcement}
  rules:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
    hostnames: {allow: ["${allow}"]}
`;
}

/** An older set of somebody else holds the name of shop. */
const WORLD =
  GATEWAY +
  set("thirsty", "2026-01-02T00:00:00Z", "shop.example.com") +
  set("shop", "2026-01-03T00:00:00Z", "shop.example.com");

interface Report {
  readonly findings: readonly { readonly rule: string; readonly message: string; readonly owner?: string }[];
  readonly hostnames: readonly object[];
}

async function tried(policies: string, ...more: readonly string[]): Promise<Report> {
  const world = folder({ "world.yaml": WORLD });
  const file = `${folder({ "new.yaml": policies })}/new.yaml`;
  const args = ["check", world, "--policy", file, "--format", "json", ...more];
  const { stdout, stderr } = await mergeway(args);
  if (stdout === "") throw new Error(stderr);
  return JSON.parse(stdout) as Report;
}

describe("check --policy", () => {
  test.each(["Enforce", "Audit"])(
    "shows what a policy with %s would refuse, and what changes hands",
    async (enforcement) => {
      const { findings, hostnames } = await tried(policy("{namespace}.example.com", enforcement));
      expect(hostnames).toEqual([
        {
          change: "owner-changed",
          gateway: "infra/gw",
          port: 80,
          hostname: "shop.example.com",
          before: "ListenerSet thirsty/web, listener http",
          after: "ListenerSet shop/web, listener http",
        },
      ]);
      const told = findings.filter(({ rule }) => rule === "listener-not-accepted");
      expect(told.map(({ owner }) => owner)).toEqual(["ListenerSet thirsty/web"]);
      expect(told[0]?.message).toContain("namespace thirsty may have no listeners");
    },
  );

  test("leaves out what is wrong without the policy, too", async () => {
    const rules = (report: Report): readonly string[] => report.findings.map(({ rule }) => rule);
    expect(
      rules(
        await tried(policy("*", "Enforce").replace("matchLabels: {kubernetes.io/metadata.name: shop}", "")),
      ),
    ).toEqual([]);
  });

  test("tries TenantPolicies and nothing else", async () => {
    await expect(tried(GATEWAY)).rejects.toThrow(/tries TenantPolicies, and this is a Gateway/);
    await expect(tried("# nothing")).rejects.toThrow(/there is no TenantPolicy/);
    await expect(tried(policy("*", "Enforce"), "--against", ".")).rejects.toThrow(/two comparisons/);
  });
});
