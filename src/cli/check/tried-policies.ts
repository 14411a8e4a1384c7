/** What would change if TenantPolicies were in force: `mergeway check --policy`. */
import type { Key } from "../../api/key.ts";
import type { TenantPolicy } from "../../api/tenant-policy.ts";
import { loadPaths } from "../../sources/files/load-paths.ts";
import type { LocatedResource } from "../../sources/files/yaml/read-text.ts";
import { CannotRun } from "../foundation/command.ts";
import { type Workspace, withObjects } from "../workspace/workspace.ts";
import { compareHostnames, type HostnameChange } from "./against.ts";
import { type CheckSettings, check } from "./check.ts";
import type { Finding } from "./rules/finding.ts";

/** Only what the policies change: findings that are there without them are left out. */
export async function tryPolicies(
  workspace: Workspace,
  paths: readonly string[],
  settings: CheckSettings,
): Promise<{ readonly findings: readonly Finding[]; readonly changes: readonly HostnameChange[] }> {
  const tried = withObjects(workspace, await readPolicies(paths, workspace));
  const known = new Set(check(workspace, settings).map((finding) => JSON.stringify(finding)));
  const added = check(tried, settings).filter((finding) => !known.has(JSON.stringify(finding)));
  const { findings, changes } = compareHostnames(workspace, tried);
  return { findings: [...added, ...findings], changes };
}

async function readPolicies(
  paths: readonly string[],
  workspace: Workspace,
): Promise<ReadonlyMap<Key, LocatedResource>> {
  const { resources, errors } = await loadPaths(paths);
  const [error] = errors;
  if (error !== undefined) throw new CannotRun(`${error.file}:${error.line}: ${error.message}`, error.remedy);
  const policies = new Map<Key, LocatedResource>();
  for (const [key, { resource, ...place }] of resources) {
    if (resource.kind !== "TenantPolicy")
      throw new CannotRun(
        `${place.file}:${place.line}: check --policy tries TenantPolicies, and this is a ${resource.kind}`,
        "Use --against to compare whole sets of manifests.",
      );
    const before = workspace.resources.get(key);
    policies.set(key, { ...place, resource: enforced(resource, before) });
  }
  if (policies.size === 0)
    throw new CannotRun(`there is no TenantPolicy in ${paths.join(", ")}`, "Name a file that has one.");
  return policies;
}

/** As if it were enforced, and as old as the one whose place it takes: the older of two decides. */
function enforced(policy: TenantPolicy, before: LocatedResource["resource"] | undefined): TenantPolicy {
  const { creationTimestamp } = before?.metadata ?? {};
  return {
    ...policy,
    metadata: { ...policy.metadata, ...(creationTimestamp === undefined ? {} : { creationTimestamp }) },
    spec: { ...policy.spec, enforcement: "Enforce" },
  };
}
