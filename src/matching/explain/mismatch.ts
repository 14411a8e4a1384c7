import type { RequestMatch, ValueMatch } from "../../plan/rule.ts";
import type { RequestFacts } from "../request.ts";
import { matchesPath, matchesValue } from "../request-match.ts";
import type { EliminationRule } from "./explanation.ts";

export interface Mismatch {
  readonly rule: EliminationRule;
  readonly reason: string;
}

/** The first part of a match that does not hold, in words; undefined if all hold. */
export function mismatchOf(match: RequestMatch, facts: RequestFacts): Mismatch | undefined {
  const { path, method } = facts.request;
  if (match.path !== undefined && !matchesPath(match.path, path)) {
    return {
      rule: "path",
      reason: `path ${shown(path)} ${PATH_FAILURE[match.path.type]} ${shown(match.path.value)}`,
    };
  }
  if (match.method !== undefined && match.method !== method) {
    return { rule: "method", reason: `method is ${shown(method)}, not ${match.method}` };
  }
  for (const header of match.headers) {
    const value = facts.request.header(header.name);
    if (!matchesValue(header, value))
      return { rule: "header", reason: `header ${valueFailure(header, value)}` };
  }
  for (const parameter of match.query) {
    const value = facts.queryParameter(parameter.name);
    if (!matchesValue(parameter, value)) {
      return { rule: "query", reason: `query parameter ${valueFailure(parameter, value)}` };
    }
  }
  return undefined;
}

const PATH_FAILURE = {
  exact: "is not",
  prefix: "is not under prefix",
  regex: "does not match the expression",
} as const;

function valueFailure(match: ValueMatch, value: string | undefined): string {
  if (value === undefined) return `${shown(match.name)} is missing`;
  const wanted = match.type === "exact" ? "not" : "which does not match the expression";
  return `${shown(match.name)} is ${JSON.stringify(shown(value))}, ${wanted} ${JSON.stringify(shown(match.value))}`;
}

/** A client's text may be long, and every candidate's reason repeats it. */
export function shown(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 99)}…`;
}
