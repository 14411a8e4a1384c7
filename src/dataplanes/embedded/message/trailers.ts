/**
 * Fields behind a body, in both directions. What is cleaned in front of a body must not come in
 * behind it, so the fields that a route's filters touch end here as well. `Trailer` (RFC 9110,
 * 6.6.2) announces what is left: some servers, such as Go's over HTTP/2, show a program only the
 * trailers that were announced.
 */

import type { Filters } from "../../../plan/rule.ts";
import { headOnlyFields } from "../../head-only-fields.ts";
import { isForged } from "./client-fields.ts";
import { touches } from "./edit-headers.ts";
import type { HeaderFields } from "./header-fields.ts";
import { hopByHop } from "./hop-by-hop.ts";

const headOnly: ReadonlySet<string> = new Set(headOnlyFields);

/** Which trailers of a message may pass. */
export type TrailerTest = (name: string) => boolean;

/** Of a request, with the filters of its rule and of its backend, and what its guards hide. */
export function requestTrailerTest(
  filters: readonly Filters[],
  hides: ((name: string) => boolean) | undefined,
): TrailerTest {
  const edits = filters.flatMap(({ requestHeaders = [] }) => requestHeaders);
  return (name) =>
    mayPass(name) &&
    !isForged(name) &&
    name !== "x-request-id" &&
    hides?.(name) !== true &&
    !edits.some((edit) => touches(edit, name));
}

/** Of an answer. */
export function answerTrailerTest(filters: readonly Filters[]): TrailerTest {
  const edits = filters.flatMap(({ responseHeaders = [] }) => responseHeaders);
  return (name) => mayPass(name) && !edits.some((edit) => edit.op !== "add" && edit.name === name);
}

/** What may pass; undefined if nothing is left. */
export function cleanTrailers(
  trailers: HeaderFields | undefined,
  passes: TrailerTest,
): HeaderFields | undefined {
  if (trailers === undefined) return undefined;
  trailers.removeAll((name) => !passes(name));
  return trailers.count > 0 ? trailers : undefined;
}

/** Of the trailers that a `Trailer` field announces, those that pass; empty if there are none. */
export function passingNames(announced: string, passes: TrailerTest): string {
  const names = announced.split(",").map((name) => name.trim().toLowerCase());
  return names.filter((name) => name !== "" && passes(name)).join(", ");
}

function mayPass(name: string): boolean {
  return !hopByHop.has(name) && !headOnly.has(name);
}
