import type { HostItem } from "../../plan/plan.ts";
import type { RequestMatch, Rule } from "../../plan/rule.ts";
import { prefixElements } from "../request-match.ts";
import { coversMatch } from "./coverage.ts";

/**
 * A rule that no request ever reaches, since an earlier rule of its host takes everything that it
 * matches.
 */
export interface ShadowedRule {
  readonly host: HostItem;
  readonly rule: Rule;
  readonly by: Rule;
  /** Both match exactly the same. */
  readonly identical: boolean;
}

/**
 * A rule of one namespace takes a part of what a rule of another matches: as the API wants it, but
 * good to know.
 */
export interface PartlyTakenRule {
  readonly host: HostItem;
  readonly rule: Rule;
  readonly by: Rule;
}

/**
 * The most rules with conditions that are compared per path. Overlaps beyond that are not reported:
 * the check must stay fast.
 */
const COMPARED = 32;
const ANCESTORS = 64;

/**
 * Only rules of the same host can shadow each other: a more specific host leaves names over, and a
 * wider one is asked later.
 */
export function overlapsWithin(host: HostItem): {
  readonly shadowed: readonly ShadowedRule[];
  readonly partlyTaken: readonly PartlyTakenRule[];
} {
  const earlier = new RulesByPath();
  const shadowed: ShadowedRule[] = [];
  const live: Rule[] = [];
  for (const rule of host.rules) {
    const by = earlier.covering(rule.match);
    if (by !== undefined) {
      shadowed.push({ host, rule, by, identical: coversMatch(rule.match, by.match) });
      continue;
    }
    // A shadowed rule shadows nothing that the rule before it does not shadow as well.
    earlier.add(rule);
    live.push(rule);
  }
  return { shadowed, partlyTaken: partlyTaken(host, live) };
}

/**
 * For each rule the closest wider one of lower precedence, if that belongs to another namespace.
 */
function partlyTaken(host: HostItem, live: readonly Rule[]): PartlyTakenRule[] {
  const later = new RulesByPath();
  const taken: PartlyTakenRule[] = [];
  for (const by of live.toReversed()) {
    const rule = later.covering(by.match);
    if (rule !== undefined && rule.origin.namespace !== by.origin.namespace) taken.push({ host, rule, by });
    later.add(by);
  }
  return taken.reverse();
}

interface Bucket {
  /** The first without any condition beside the path: it covers all that have the path. */
  open?: Rule;
  readonly identical: Map<string, Rule>;
  readonly conditional: Rule[];
}

/** Rules by the path that they match, so that a rule meets only those that could cover it. */
class RulesByPath {
  readonly #buckets: Map<string, Bucket> = new Map();
  readonly #regexes: Set<string> = new Set();

  add(rule: Rule): void {
    const key = keyOf(rule.match);
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = { identical: new Map(), conditional: [] };
      this.#buckets.set(key, bucket);
    }
    const rest = restKey(rule.match);
    if (rest === OPEN) bucket.open ??= rule;
    else if (bucket.conditional.length < COMPARED) bucket.conditional.push(rule);
    if (!bucket.identical.has(rest)) bucket.identical.set(rest, rule);
    if (rule.match.path?.type === "regex" && this.#regexes.size < COMPARED) this.#regexes.add(key);
  }

  /** A rule that covers the match; the one with the closest path, if there are several. */
  covering(match: RequestMatch): Rule | undefined {
    const rest = restKey(match);
    for (const key of this.#candidates(match)) {
      const bucket = this.#buckets.get(key);
      if (bucket === undefined) continue;
      const possible = [bucket.identical.get(rest), bucket.open, ...bucket.conditional];
      const found = possible.find((rule) => rule !== undefined && coversMatch(rule.match, match));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  *#candidates(match: RequestMatch): Generator<string, void, undefined> {
    const { path } = match;
    if (path?.type !== "prefix") yield keyOf(match);
    if (path?.type === "exact") yield* this.#regexes;
    if (path?.type === "regex") yield prefixKey("");
    else if (path !== undefined)
      yield* ancestorsOf(path.type === "prefix" ? prefixElements(path.value) : path.value);
    if (path !== undefined) yield NO_PATH;
  }
}

const OPEN = "";
const NO_PATH = "any";

function prefixKey(elements: string): string {
  return `prefix ${elements}`;
}

function keyOf({ path }: RequestMatch): string {
  if (path === undefined) return NO_PATH;
  return path.type === "prefix" ? prefixKey(prefixElements(path.value)) : `${path.type} ${path.value}`;
}

/**
 * Empty for a match without conditions beside its path; the order of conditions does not matter.
 */
function restKey({ method, headers, query }: RequestMatch): string {
  if (method === undefined && headers.length === 0 && query.length === 0) return OPEN;
  const sorted = (values: RequestMatch["headers"]) =>
    values.map((each) => [each.name, each.type, each.value].join("\n")).sort();
  return JSON.stringify([method ?? null, sorted(headers), sorted(query)]);
}

/** The keys of the prefixes that a path lies under, longest first. */
function* ancestorsOf(path: string): Generator<string, void, undefined> {
  yield prefixKey(path);
  let end = path.lastIndexOf("/");
  for (let count = 0; end > 0 && count < ANCESTORS; count++) {
    yield prefixKey(path.slice(0, end));
    end = path.lastIndexOf("/", end - 1);
  }
  yield prefixKey("");
}
