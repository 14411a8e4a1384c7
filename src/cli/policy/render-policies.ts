import { stringify } from "yaml";
import type { TenantPolicy } from "../../api/tenant-policy.ts";
import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import type { Target } from "../workspace/cluster-flags.ts";
import { openWorkspace, printReadErrors } from "../workspace/workspace.ts";
import { admissionBinding, admissionPolicy } from "./admission-policy.ts";
import { claimsBinding, claimsPolicy, type MissingClaims } from "./claims-policy.ts";
import type { FailurePolicy } from "./validating-policy.ts";

export interface RenderPoliciesOptions {
  readonly target: Target;
  readonly failurePolicy: FailurePolicy;
  readonly missingClaims: MissingClaims;
  readonly output: string;
}

export async function renderPolicies(
  { target, failurePolicy, missingClaims, output }: RenderPoliciesOptions,
  host: Host,
): Promise<ExitCode> {
  const workspace = await openWorkspace(target, host.signal);
  printReadErrors(workspace, host.err);
  const policies = [...workspace.resources.values()].filter((each) => each.kind === "TenantPolicy");
  const namespaces = namespacesOf(policies);
  const holding = namespacesOf(policies.filter(({ spec }) => spec.claims === "Hold"));
  if (namespaces.length === 0)
    throw new CannotRun("policy: there is no TenantPolicy", "Write one, or name the folder that has it.");
  const objects = [
    admissionPolicy(failurePolicy),
    ...namespaces.map(admissionBinding),
    ...(holding.length === 0 ? [] : [claimsPolicy(failurePolicy)]),
    ...holding.map((namespace) => claimsBinding(namespace, missingClaims)),
  ];
  host.out.write(
    output === "json"
      ? `${JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }, null, 2)}\n`
      : objects.map(yamlOf).join("---\n"),
  );
  return workspace.errors.length === 0 ? 0 : 1;
}

function namespacesOf(policies: readonly TenantPolicy[]): readonly string[] {
  return [...new Set(policies.map(({ metadata }) => metadata.namespace ?? ""))].sort();
}

export function yamlOf(object: object): string {
  return stringify(object, { lineWidth: 0 });
}
