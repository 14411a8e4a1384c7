import { type FieldPath, formatPath } from "../../api/admission/schema/field-error.ts";
import type { Key } from "../../api/key.ts";
import { overlapsAt } from "../../matching/overlap/overlap.ts";
import type { DocumentError } from "../../sources/files/yaml/document-error.ts";
import { buildState } from "../../view/build-state.ts";
import { describe, refOf } from "../../view/merged-state.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { RULES } from "./rule-table.ts";
import { type Finding, type Problem, SEVERITIES, type Severity } from "./rules/finding.ts";

export interface CheckSettings {
  readonly now: Date;
  readonly expiryDays: number;
}

/** All findings about the workspace, sorted by file and line. */
export function check(workspace: Workspace, settings: CheckSettings): Finding[] {
  const state = buildState(workspace);
  const overlaps = Array.from(workspace.table.ports(), ({ id, port }) => ({
    port,
    report: overlapsAt(workspace.table, id),
  }));
  const findings = [
    ...workspace.errors.map((error) => fromDocument(error, "error")),
    ...workspace.warnings.map((warning) => fromDocument(warning, "warning")),
    ...RULES.flatMap((rule) =>
      Array.from(rule.find({ workspace, state, overlaps, ...settings }), (problem) => ({
        rule: rule.id,
        severity: rule.severity,
        ...placed(workspace, problem),
      })),
    ),
  ];
  return unique(findings).sort(byPlace);
}

function fromDocument(
  { file, line, column, path, object, rule, message, remedy }: DocumentError,
  severity: Severity,
): Finding {
  return {
    rule,
    severity,
    file,
    line,
    column,
    ...(path === undefined ? {} : { path }),
    ...(object === undefined ? {} : { owner: object }),
    message,
    remedy,
  };
}

function placed(
  workspace: Workspace,
  { at, path, message, remedy }: Problem,
): Omit<Finding, "rule" | "severity"> {
  return { ...placeOf(workspace, at, path), owner: describe(refOf(at)), message, remedy };
}

export function placeOf(
  { located }: Workspace,
  at: Key,
  path: FieldPath = [],
): Pick<Finding, "file" | "line" | "column" | "path"> {
  const object = located.get(at);
  if (object === undefined) throw new Error(`a finding about ${at}, which is in no file`);
  const { line, column } = path.length === 0 ? object : object.locate(path);
  return { file: object.file, line, column, ...(path.length === 0 ? {} : { path: formatPath(path) }) };
}

/** Two parents or listeners of one route can give the same finding. */
function unique(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((finding) => [JSON.stringify(finding), finding])).values()];
}

function byPlace(a: Finding, b: Finding): number {
  if (a.file !== b.file) return a.file < b.file ? -1 : 1;
  return a.line - b.line || a.column - b.column || rankOf(a.severity) - rankOf(b.severity);
}

/** 0 is the most serious. */
export function rankOf(severity: Severity): number {
  return SEVERITIES.indexOf(severity);
}
