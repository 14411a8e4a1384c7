/**
 * JUnit's report, as far as the suites write it: test cases, each with at most one element that
 * says why it did not pass.
 */

import type { Outcome } from "./suite.ts";

export interface JunitCase {
  readonly attributes: Readonly<Record<string, string>>;
  readonly outcome: Outcome;
  /** What the element that says why not has to say; its attribute `message` where it has one. */
  readonly text?: string;
}

const CASE = /<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g;
const NOT_PASSED = /<(failure|error|skipped)\b([^>]*?)(?:\/>|>([\s\S]*?)<\/\1>)/;

export function parseJunit(report: string): readonly JunitCase[] {
  return [...report.matchAll(CASE)].map(([, found = "", content = ""]) => {
    const attributes = attributesIn(found);
    const [, kind, about = "", text = ""] = NOT_PASSED.exec(content) ?? [];
    if (kind === undefined) return { attributes, outcome: "passed" };
    const said = attributesIn(about)["message"] ?? unescapeEntities(text);
    return { attributes, outcome: kind === "skipped" ? "skipped" : "failed", text: said.trim() };
  });
}

function attributesIn(text: string): Readonly<Record<string, string>> {
  const pairs = [...text.matchAll(/([\w:-]+)="([^"]*)"/g)];
  return Object.fromEntries(pairs.map(([, name = "", value = ""]) => [name, unescapeEntities(value)]));
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

function unescapeEntities(text: string): string {
  return text.replaceAll(/&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    return String.fromCodePoint(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal));
  });
}
