// CHANGELOG.md, as Keep a Changelog has it: the newest part first, and what is not released yet
// under a heading that says so.

import { ReleaseFailure } from "./failure.ts";

interface Part {
  readonly heading: string;
  readonly body: string;
}

/** Moves the unreleased part under a version and a date. */
export function releasedChangelog(text: string, version: string, date: string): string {
  const { head, parts } = split(text);
  const [first, ...others] = parts;
  if (first === undefined || !isUnreleased(first)) {
    throw new ReleaseFailure('CHANGELOG.md has no part "## Unreleased" at its top');
  }
  if (first.body.trim() === "") throw new ReleaseFailure("CHANGELOG.md has nothing that is unreleased");
  const released = { heading: `${version} - ${date}`, body: first.body };
  return join(head, [{ heading: "Unreleased", body: "\n" }, released, ...others]);
}

/** What is written about a version, without its heading. */
export function releaseNotes(text: string, version: string): string {
  const found = split(text).parts.find((part) => part.heading.startsWith(`${version} - `));
  if (found === undefined) throw new ReleaseFailure(`CHANGELOG.md has no released version ${version}`);
  return `${found.body.trim()}\n`;
}

function isUnreleased({ heading }: Part): boolean {
  return /^(?:\[?unreleased\]?|\S+ \(unreleased\))$/i.test(heading);
}

function split(text: string): { readonly head: string; readonly parts: readonly Part[] } {
  const [head = "", ...rest] = text.split(/^## /m);
  const parts = rest.map((part) => {
    const end = part.indexOf("\n");
    return end < 0 ? { heading: part, body: "" } : { heading: part.slice(0, end), body: part.slice(end + 1) };
  });
  return { head, parts };
}

function join(head: string, parts: readonly Part[]): string {
  return head + parts.map(({ heading, body }) => `## ${heading}\n${body}`).join("");
}
