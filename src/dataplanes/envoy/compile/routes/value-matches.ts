/**
 * Values of headers and of query parameters, as Envoy sees them: it joins several values of a
 * header with a comma alone, and does not decode parameters. Where that makes a difference the
 * comparison is a regular expression over what can stand for the value.
 */

import type { ValueMatch } from "../../../../plan/rule.ts";
import { headerMatch, queryMatch } from "../../messages/route.ts";
import type * as proto from "../../wire/proto.ts";
import type { Message } from "../../wire/protobuf.ts";

export function headerValueMatch(match: ValueMatch): Message<proto.HeaderMatcher> {
  if (match.type === "regex" || !match.value.includes(", ")) return headerMatch(match);
  // Two fields, or one with both values.
  const value = match.value.split(", ").map(escapedPattern).join(", ?");
  return headerMatch({ name: match.name, type: "regex", value });
}

export function queryValueMatch(match: ValueMatch): Message<proto.QueryParameterMatcher> {
  if (match.type === "regex") return queryMatch(match);
  return queryMatch({ name: match.name, type: "regex", value: encodedForms(match.value) });
}

/**
 * Matches every way to write a value in a query (application/x-www-form-urlencoded): plain, with
 * `%XX`, and `+` for a space.
 */
export function encodedForms(value: string): string {
  return [...value].map(formsOf).join("");
}

function formsOf(character: string): string {
  const encoded = [...Buffer.from(character)].map((byte) => `%${hexPattern(byte)}`).join("");
  const plain = character === " " ? "\\+" : writable(character) ? escapedPattern(character) : undefined;
  return plain === undefined ? encoded : `(?:${plain}|${encoded})`;
}

/**
 * Whether a character can stand for itself: these end the value or the query, or stand for another.
 */
function writable(character: string): boolean {
  return !"&#+%".includes(character);
}

function hexPattern(byte: number): string {
  const digits = byte.toString(16).padStart(2, "0");
  return [...digits].map((digit) => (digit >= "a" ? `[${digit}${digit.toUpperCase()}]` : digit)).join("");
}

function escapedPattern(literal: string): string {
  return literal.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
