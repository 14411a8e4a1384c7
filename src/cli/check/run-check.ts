import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import type { Target } from "../workspace/cluster-flags.ts";
import { openManifests, openWorkspace, type Workspace } from "../workspace/workspace.ts";
import { compareHostnames, type HostnameChange } from "./against.ts";
import { check, rankOf } from "./check.ts";
import { type ReportFormat, renderReport } from "./report.ts";
import type { Finding, Severity } from "./rules/finding.ts";
import { tryWithout } from "./tried-deletions.ts";
import { tryPolicies } from "./tried-policies.ts";

export interface CheckOptions {
  readonly target: Target;
  /** Empty: nothing to compare with. */
  readonly against: readonly string[];
  /** TenantPolicies to try; empty: none. */
  readonly policies: readonly string[];
  /** Objects to take away; empty: none. */
  readonly without: readonly string[];
  readonly format: ReportFormat;
  readonly failOn: Severity | "never";
  readonly expiryDays: number;
}

export async function runCheck(options: CheckOptions, host: Host): Promise<ExitCode> {
  const { target, format } = options;
  if (target.paths === undefined && (format === "sarif" || format === "github")) {
    throw new CannotRun(
      `check: --format ${format} tells places in files, and a cluster has none`,
      "Use text or json, or check manifests.",
    );
  }
  const { policies, against, without } = options;
  const given = Object.entries({ policy: policies, without, against }).filter(([, { length }]) => length > 0);
  if (given.length > 1)
    throw new CannotRun(
      `check: ${given.map(([name]) => `--${name}`).join(" and ")} are two comparisons`,
      "Give one of them: --policy and --without compare with the same objects as they are.",
    );
  const workspace = await openWorkspace(target, host.signal);
  const { findings, changes } = await findingsOf(workspace, options, host);
  const report = {
    findings,
    ...(workspace.isLive ? { objects: workspace.resources.size } : { files: workspace.files.length }),
    ...(changes === undefined ? {} : { hostnames: changes }),
  };
  host.out.write(renderReport(format, report, host.out, host.version));
  const { failOn } = options;
  if (failOn === "never") return 0;
  return findings.some(({ severity }) => rankOf(severity) <= rankOf(failOn)) ? 1 : 0;
}

interface Checked {
  readonly findings: readonly Finding[];
  /** Absent: there was nothing to compare with. */
  readonly changes?: readonly HostnameChange[];
}

async function findingsOf(
  workspace: Workspace,
  { policies, against, without, expiryDays }: CheckOptions,
  host: Host,
): Promise<Checked> {
  const settings = { now: host.now(), expiryDays };
  if (policies.length > 0) return await tryPolicies(workspace, policies, settings);
  if (without.length > 0) return tryWithout(workspace, without, settings);
  const own = check(workspace, settings);
  if (against.length === 0) return { findings: own };
  const { findings, changes } = compareHostnames(await openManifests(against), workspace);
  return { findings: [...own, ...findings], changes };
}
