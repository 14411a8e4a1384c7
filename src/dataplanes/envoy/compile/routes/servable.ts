/**
 * Finds what Envoy would reject in a rule before it is sent: with one rejected rule, Envoy rejects
 * all rules of the host. The engine has checked most of this; here it is the second line of
 * defence.
 */

import { RE2JS } from "re2js";
import type { Filters, HeaderEdit, RequestMatch } from "../../../../plan/rule.ts";

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const unwritable = /[\x00-\x08\x0a-\x1f\x7f]/;
const hostname = /^[A-Za-z0-9._-]+(?::\d{1,5})?$/;

/** Whether a text can be the name of a header. */
export function isHeaderName(name: string): boolean {
  return token.test(name);
}

/** Whether any request can match; a broken expression matches none. */
export function canMatch({ path, headers, query }: RequestMatch): boolean {
  if (path !== undefined && !path.value.startsWith("/") && path.type !== "regex") return false;
  return [path, ...headers, ...query].every((part) => part?.type !== "regex" || compiles(part.value));
}

export function headersWritable(edits: readonly HeaderEdit[] | undefined): boolean {
  return edits?.every(({ name, value = "" }) => token.test(name) && !unwritable.test(value)) ?? true;
}

export function hostWritable({ rewrite }: Filters): boolean {
  return rewrite?.hostname === undefined || hostname.test(rewrite.hostname);
}

export function isStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 200 && status < 600;
}

// Patterns are few and repeat with every compilation of their host.
const known = new Map<string, boolean>();
const KNOWN = 4096;

function compiles(pattern: string): boolean {
  const before = known.get(pattern);
  if (before !== undefined) return before;
  if (known.size >= KNOWN) known.clear();
  let compiled = true;
  try {
    RE2JS.compile(pattern);
  } catch {
    compiled = false;
  }
  known.set(pattern, compiled);
  return compiled;
}
