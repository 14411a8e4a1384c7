/**
 * The bar: whatever a suite asks succeeds through both data planes. A case that fails through one
 * of them needs an entry in the list of known differences, and an entry whose case passes by now is
 * an error too, so that the list stays true.
 */

import { CONTESTANTS, type Contestant } from "./contestants.ts";
import type { Case, Outcome } from "./suite.ts";

export type Gateway = Exclude<Contestant, "direct">;

export interface KnownDifference {
  readonly suite: string;
  readonly contestant: Gateway;
  /** All parts of the suite where it is absent. */
  readonly part?: string;
  /** The suite's own name of the case; an expression must fit failing cases only. */
  readonly name: string | RegExp;
  readonly reason: string;
  /** The case depends on a race within the other's program, and may pass as well. */
  readonly racy?: true;
}

/** Cases by contestant; a contestant that did not take part is absent. */
export type Results = Readonly<Partial<Record<Contestant, readonly Case[]>>>;

export interface Failure {
  readonly contestant: Contestant;
  readonly part: string;
  readonly name: string;
  /** In the suite's words. */
  readonly reason: string;
}

export interface Row {
  readonly part: string;
  readonly cases: number;
  readonly passed: Readonly<Partial<Record<Contestant, number>>>;
  readonly skipped: Readonly<Partial<Record<Contestant, number>>>;
}

export interface Verdict {
  readonly suite: string;
  readonly rows: readonly Row[];
  /** Every case that did not pass somewhere. */
  readonly failures: readonly Failure[];
  /** Sentences, one for each thing that makes the run fail. */
  readonly errors: readonly string[];
}

export function judge(suite: string, results: Results, known: readonly KnownDifference[]): Verdict {
  const own = known.filter((entry) => entry.suite === suite);
  const failures = CONTESTANTS.flatMap((contestant) => failuresOf(contestant, results));
  const unknown = failures.filter(
    (each) => each.contestant !== "direct" && explanation(each, own) === undefined,
  );
  return {
    suite,
    rows: [...namesByPart(results)].map(([part, names]) => rowOf(part, names, results)),
    failures,
    errors: [
      ...unknown.map((each) => `${suite}, ${each.contestant}: ${each.part}: ${each.name}: ${each.reason}`),
      ...own.flatMap((entry) => staleness(entry, results)),
    ],
  };
}

function failuresOf(contestant: Contestant, results: Results): readonly Failure[] {
  const ran = results[contestant];
  if (ran === undefined) return [];
  const failed = ran.filter((each) => each.outcome === "failed");
  const all = [...failed, ...(contestant === "direct" ? [] : missing(ran, results))];
  return all.map(({ part, name, reason }) => {
    return { contestant, part, name, reason: reason ?? "failed" };
  });
}

/** A case that others had and this gateway had not: the suite ended early, which is no success. */
function missing(ran: readonly Case[], results: Results): readonly Case[] {
  const has = new Set(ran.map(keyOf));
  const others = new Map(Object.values(results).flatMap((cases) => cases.map((each) => [keyOf(each), each])));
  return [...others.values()]
    .filter((each) => !has.has(keyOf(each)))
    .map(({ part, name }) => ({ part, name, outcome: "failed", reason: "the suite gave no result" }));
}

/** Why a failure may be, by the known differences of its suite. */
export function explanation(failure: Failure, known: readonly KnownDifference[]): string | undefined {
  const { contestant, part, name } = failure;
  return known.find((entry) => entry.contestant === contestant && fits(entry, part, name))?.reason;
}

function staleness(entry: KnownDifference, results: Results): readonly string[] {
  if (entry.racy === true) return [];
  const ran = results[entry.contestant] ?? [];
  return ran
    .filter((each) => each.outcome === "passed" && fits(entry, each.part, each.name))
    .map(
      ({ part, name }) =>
        `${entry.suite}, ${entry.contestant}: ${part}: ${name} passes by now: take it from suites/known-differences.ts`,
    );
}

function fits(entry: KnownDifference, part: string, name: string): boolean {
  if (entry.part !== undefined && entry.part !== part) return false;
  return typeof entry.name === "string" ? entry.name === name : entry.name.test(name);
}

function namesByPart(results: Results): ReadonlyMap<string, ReadonlySet<string>> {
  const parts = new Map<string, Set<string>>();
  for (const { part, name } of Object.values(results).flat()) {
    parts.set(part, (parts.get(part) ?? new Set()).add(name));
  }
  return parts;
}

function rowOf(part: string, names: ReadonlySet<string>, results: Results): Row {
  const count = (outcome: Outcome): Readonly<Partial<Record<Contestant, number>>> => {
    const entries = CONTESTANTS.flatMap((contestant) => {
      const ran = results[contestant]?.filter((each) => each.part === part) ?? [];
      return ran.length === 0
        ? []
        : [[contestant, ran.filter((each) => each.outcome === outcome).length] as const];
    });
    return Object.fromEntries(entries);
  };
  return { part, cases: names.size, passed: count("passed"), skipped: count("skipped") };
}

function keyOf({ part, name }: Case): string {
  return `${part}\n${name}`;
}
