import type { HostItem } from "../plan/plan.ts";
import type { Rule } from "../plan/rule.ts";
import type { RequestFacts } from "./request.ts";
import { endsElement, matchesPath, matchesRequest, matchesRest, prefixElements } from "./request-match.ts";

/**
 * Up to this many rules, a scan is as fast as an index and costs no memory. Beyond it, each rule is
 * another cache miss.
 */
const SCAN_LIMIT = 4;

// A changed host is a new item, so its index goes away with the old one.
const indexes = new WeakMap<HostItem, RuleIndex>();

/** The first rule of the host that matches. */
export function firstRule(host: HostItem, facts: RequestFacts): Rule | undefined {
  if (host.rules.length <= SCAN_LIMIT) return scan(host.rules, facts);
  let index = indexes.get(host);
  if (index === undefined) {
    index = new RuleIndex(host.rules);
    indexes.set(host, index);
  }
  return index.first(facts);
}

function scan(rules: readonly Rule[], facts: RequestFacts): Rule | undefined {
  for (const rule of rules) if (matchesRequest(rule.match, facts)) return rule;
  return undefined;
}

/** Positions in the array of rules, ascending. */
type Positions = number[];

/**
 * The rules of one host by path: one hash of exact paths, one hash per distinct length of prefix,
 * and what has neither in order. Every list is in the order of the array and the lowest position
 * that matches wins, so the answer is that of a scan.
 */
class RuleIndex {
  readonly #rules: readonly Rule[];
  readonly #exact: Map<string, Positions> = new Map();
  /** Longest first. */
  readonly #prefixes: readonly { readonly length: number; readonly rules: Map<string, Positions> }[];
  readonly #others: Positions = [];

  constructor(rules: readonly Rule[]) {
    this.#rules = rules;
    const byLength = new Map<number, Map<string, Positions>>();
    for (const [position, { match }] of rules.entries()) {
      if (match.path?.type === "exact") {
        append(this.#exact, match.path.value, position);
      } else if (match.path?.type === "prefix") {
        const elements = prefixElements(match.path.value);
        const ofLength = byLength.get(elements.length) ?? new Map<string, Positions>();
        byLength.set(elements.length, ofLength);
        append(ofLength, elements, position);
      } else {
        this.#others.push(position);
      }
    }
    this.#prefixes = [...byLength]
      .map(([length, ofLength]) => ({ length, rules: ofLength }))
      .sort((a, b) => b.length - a.length);
  }

  first(facts: RequestFacts): Rule | undefined {
    const { path } = facts.request;
    let best = this.#firstOf(this.#exact.get(path), this.#rules.length, facts);
    for (const { length, rules } of this.#prefixes) {
      if (!endsElement(path, length)) continue;
      best = this.#firstOf(rules.get(path.slice(0, length)), best, facts);
    }
    for (const position of this.#others) {
      if (position >= best) break;
      const match = this.#rules[position]?.match;
      if (match === undefined || !matchesRest(match, facts)) continue;
      if (match.path === undefined || matchesPath(match.path, path)) {
        best = position;
        break;
      }
    }
    return this.#rules[best];
  }

  /** The first position below `best` whose rule matches; its path is known to match. */
  #firstOf(positions: Positions | undefined, best: number, facts: RequestFacts): number {
    if (positions === undefined) return best;
    for (const position of positions) {
      if (position >= best) return best;
      const rule = this.#rules[position];
      if (rule !== undefined && matchesRest(rule.match, facts)) return position;
    }
    return best;
  }
}

function append(map: Map<string, Positions>, key: string, position: number): void {
  const positions = map.get(key);
  if (positions === undefined) map.set(key, [position]);
  else positions.push(position);
}
