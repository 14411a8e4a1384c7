import type { ExitCode, Host } from "../command.ts";
import { openWorkspace } from "../workspace.ts";
import { compareHostnames } from "./against.ts";
import { check, rankOf } from "./check.ts";
import type { Severity } from "./finding.ts";
import { type ReportFormat, renderReport } from "./report.ts";

export interface CheckOptions {
  readonly paths: readonly string[];
  /** Empty: nothing to compare with. */
  readonly against: readonly string[];
  readonly format: ReportFormat;
  readonly failOn: Severity | "never";
  readonly expiryDays: number;
}

export async function runCheck(options: CheckOptions, host: Host): Promise<ExitCode> {
  const workspace = await openWorkspace(options.paths);
  const comparison =
    options.against.length === 0
      ? undefined
      : compareHostnames(await openWorkspace(options.against), workspace);
  const findings = [
    ...check(workspace, { now: host.now(), expiryDays: options.expiryDays }),
    ...(comparison?.findings ?? []),
  ];
  const report = {
    findings,
    files: workspace.files.length,
    ...(comparison === undefined ? {} : { hostnames: comparison.changes }),
  };
  host.out.write(renderReport(options.format, report, host.out, host.version));
  const { failOn } = options;
  if (failOn === "never") return 0;
  return findings.some(({ severity }) => rankOf(severity) <= rankOf(failOn)) ? 1 : 0;
}
