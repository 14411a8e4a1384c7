import { GATEWAY, set } from "./case-manifests.ts";
import type { CheckCase } from "./check-case.ts";

const BASE = GATEWAY + set("team-a", { hostname: "a.example.com" });

function tenantPolicy(gateway: string, rest: string): string {
  return `
apiVersion: mergeway.dev/v1alpha1
kind: TenantPolicy
metadata: {name: tenants, namespace: infra}
spec:
  targetRefs:
  - {kind: Gateway, name: ${gateway}}
  ${rest}
---`;
}

export const TENANT_CASES: readonly CheckCase[] = [
  {
    rule: "tenant-policy-not-accepted",
    text: `${BASE}${tenantPolicy("nothing", "unmatchedNamespaces: Allow")}`,
    owner: "TenantPolicy infra/tenants",
    message: /^Gateway nothing: Gateway nothing does not exist in the policy's namespace$/,
    at: "kind: Gateway",
  },
  {
    rule: "tenant-policy-audit",
    text: `${BASE}${tenantPolicy("shared", "enforcement: Audit")}`,
    owner: "TenantPolicy infra/tenants",
    message: /^Gateway shared: 1 listener and 0 routes would be refused$/,
    at: "Audit",
  },
];
