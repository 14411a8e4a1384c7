import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import type { Target } from "../workspace/cluster-flags.ts";
import { openManifests, openWorkspace } from "../workspace/workspace.ts";
import { compareHostnames } from "./against.ts";
import { check, rankOf } from "./check.ts";
import { type ReportFormat, renderReport } from "./report.ts";
import type { Severity } from "./rules/finding.ts";

export interface CheckOptions {
  readonly target: Target;
  /** Empty: nothing to compare with. */
  readonly against: readonly string[];
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
  const workspace = await openWorkspace(target, host.signal);
  const comparison =
    options.against.length === 0
      ? undefined
      : compareHostnames(await openManifests(options.against), workspace);
  const findings = [
    ...check(workspace, { now: host.now(), expiryDays: options.expiryDays }),
    ...(comparison?.findings ?? []),
  ];
  const report = {
    findings,
    ...(workspace.isLive ? { objects: workspace.resources.size } : { files: workspace.files.length }),
    ...(comparison === undefined ? {} : { hostnames: comparison.changes }),
  };
  host.out.write(renderReport(format, report, host.out, host.version));
  const { failOn } = options;
  if (failOn === "never") return 0;
  return findings.some(({ severity }) => rankOf(severity) <= rankOf(failOn)) ? 1 : 0;
}
