/** What would change if objects were deleted: `mergeway check --without`. */
import { CannotRun } from "../foundation/command.ts";
import { type Workspace, withoutObjects } from "../workspace/workspace.ts";
import { compareHostnames, type HostnameChange } from "./against.ts";
import { type CheckSettings, check } from "./check.ts";
import type { Finding } from "./rules/finding.ts";

/** Only what the deletion changes: findings that are there without it are left out. */
export function tryWithout(
  workspace: Workspace,
  objects: readonly string[],
  settings: CheckSettings,
): { readonly findings: readonly Finding[]; readonly changes: readonly HostnameChange[] } {
  const unknown = objects.find((object) => !workspace.resources.has(object));
  if (unknown !== undefined)
    throw new CannotRun(
      `check --without: there is no ${unknown}`,
      "Write KIND/NAMESPACE/NAME, as in ListenerSet/team-a/web.",
    );
  const tried = withoutObjects(workspace, new Set(objects));
  const known = new Set(check(workspace, settings).map((finding) => JSON.stringify(finding)));
  const added = check(tried, settings).filter((finding) => !known.has(JSON.stringify(finding)));
  const { findings, changes } = compareHostnames(workspace, tried);
  return { findings: [...added, ...findings], changes };
}
