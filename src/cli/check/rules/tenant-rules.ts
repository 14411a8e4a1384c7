/** Rules about TenantPolicies. What they refuse is reported at the listener or route itself. */
import type { TenantPolicy } from "../../../api/tenant-policy.ts";
import type { CheckRule } from "./finding.ts";

export const tenantPolicyNotAccepted: CheckRule = {
  id: "tenant-policy-not-accepted",
  severity: "error",
  summary: "A TenantPolicy does not decide at a Gateway that it names: tenants are not restricted by it.",
  *find({ workspace: { engine, resources } }) {
    for (const [key, resource] of resources) {
      const verdict = engine.verdict(key);
      if (resource.kind !== "TenantPolicy" || verdict?.type !== "policy") continue;
      for (const { ancestorRef, conditions } of verdict.ancestors) {
        const accepted = conditions.find(({ type }) => type === "Accepted");
        if (accepted?.status !== "False") continue;
        yield {
          at: key,
          path: ["spec", "targetRefs", targetOf(resource, ancestorRef.name)],
          message: `Gateway ${ancestorRef.name}: ${accepted.message}`,
          remedy: "Correct the name of the Gateway, or merge the policies: each Gateway has one.",
        };
      }
    }
  },
};

export const tenantPolicyAudit: CheckRule = {
  id: "tenant-policy-audit",
  severity: "info",
  summary: "A TenantPolicy with enforcement Audit would refuse something.",
  *find({ workspace: { engine, resources } }) {
    for (const [key, resource] of resources) {
      const verdict = engine.verdict(key);
      if (resource.kind !== "TenantPolicy" || verdict?.type !== "policy") continue;
      for (const { ancestorRef, conditions } of verdict.ancestors) {
        const enforced = conditions.find(({ type }) => type === "Enforced");
        if (enforced?.status !== "False" || /^0 listeners and 0 routes/.test(enforced.message)) continue;
        yield {
          at: key,
          path: ["spec", "enforcement"],
          message: `Gateway ${ancestorRef.name}: ${enforced.message}`,
          remedy: "Set enforcement to Enforce to see which, and to refuse them.",
        };
      }
    }
  },
};

function targetOf({ spec }: TenantPolicy, gateway: string): number {
  return Math.max(
    0,
    spec.targetRefs.findIndex(({ name }) => name === gateway),
  );
}
