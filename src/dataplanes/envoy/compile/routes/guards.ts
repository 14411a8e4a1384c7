/**
 * The guards of one scope's rules. Addresses are a route's own configuration. Limits are the
 * scope's, so that all of its routes draw from the same buckets, and a route says in its metadata
 * which of them it has.
 *
 * Addresses are looked at first, whatever the order of a rule's guards: a request of which both a
 * list and a limit would not let pass is 403, and takes no token.
 */

import type { AddressCheck, GuardItem, RateLimitCheck } from "../../../../plan/guard.ts";
import type { ItemId } from "../../../../plan/plan.ts";
import type { Rule } from "../../../../plan/rule.ts";
import {
  type LimitShape,
  limitsMetadata,
  MOST_TOKENS,
  routeAdmission,
  scopeLimits,
  type TokenBucket,
} from "../../messages/guards.ts";
import { headerMatch } from "../../messages/route.ts";
import type { Message } from "../../wire/protobuf.ts";
import { type Admission, admissionOf, cidrsOf, readRanges } from "../address-ranges.ts";
import { ADDRESS_FILTER, LIMIT_FILTER } from "../names.ts";
import { isToken } from "./servable.ts";

/**
 * Buckets for one limit, at most; the least recently used one goes first. About 500 bytes each, and
 * more with long values.
 */
const KEYS = 16_384;
/**
 * A value that has a bucket of its own. Two fields are one list to Envoy, so a list is no value;
 * and what is longer would be memory at a client's will.
 */
const OWN_VALUE = "[^,]{1,256}";
/** Envoy fills buckets no oftener. */
const LEAST_FILL_MS = 50;
/** A hundred years. */
const LONGEST_FILL_MS = 3_155_760_000_000;

type PerFilter = readonly (readonly [filter: string, config: Message])[];

/** What a route needs for its guards. */
export interface RouteGuards {
  readonly perFilter: PerFilter;
  readonly metadata?: Message;
  /** A limit lets nothing pass, whoever asks. */
  readonly isSpent: boolean;
}

const NONE: RouteGuards = { perFilter: [], isSpent: false };

export class ScopeGuards {
  readonly #guard: (id: ItemId) => GuardItem | undefined;
  readonly #limits: Map<ItemId, LimitShape> = new Map();
  /** Rules with the same guards share them. */
  readonly #known: Map<string, RouteGuards | undefined> = new Map();

  constructor(guard: (id: ItemId) => GuardItem | undefined) {
    this.#guard = guard;
  }

  /** Undefined: one of the guards is missing or cannot be applied. */
  of({ guards = [] }: Rule): RouteGuards | undefined {
    if (guards.length === 0) return NONE;
    const key = guards.join("\n");
    if (!this.#known.has(key)) this.#known.set(key, this.#compile(guards));
    return this.#known.get(key);
  }

  /** The configuration of the whole scope. */
  perFilter(): PerFilter {
    return this.#limits.size === 0 ? [] : [[LIMIT_FILTER, scopeLimits([...this.#limits.values()], KEYS)]];
  }

  #compile(ids: readonly ItemId[]): RouteGuards | undefined {
    const guards = guardsOf(ids, this.#guard);
    const admission = guards && admissionOfChecks(guards);
    if (admission === undefined || guards === undefined) return undefined;
    const words: string[] = [];
    let isSpent = false;
    for (const { id, check } of guards) {
      if (check.type !== "rateLimit") continue;
      if (!isApplicable(check)) return undefined;
      if (check.requests < 1 || check.burst < 1) isSpent = true;
      else words.push(this.#limit(id, check));
    }
    return {
      perFilter:
        admission === "everybody" ? [] : [[ADDRESS_FILTER, routeAdmission("addresses", shapeOf(admission))]],
      ...(words.length === 0 ? {} : { metadata: limitsMetadata(words) }),
      isSpent,
    };
  }

  #limit(id: ItemId, check: RateLimitCheck): string {
    const known = this.#limits.get(id);
    if (known !== undefined) return known.word;
    const word = String(this.#limits.size);
    this.#limits.set(id, { word, bucket: bucketOf(check), key: keyOf(check) });
    return word;
  }
}

/** Undefined: one of them is not in the plan. */
export function guardsOf(
  ids: readonly ItemId[],
  guard: (id: ItemId) => GuardItem | undefined,
): readonly GuardItem[] | undefined {
  const guards = [...new Set(ids)].map(guard);
  return guards.every((item) => item !== undefined) ? guards : undefined;
}

/** Who passes the lists of addresses among the guards; undefined: one cannot be read. */
export function admissionOfChecks(guards: readonly GuardItem[]): Admission | "everybody" | undefined {
  const lists = guards.flatMap(({ check }) => (check.type === "addresses" ? [rangesOf(check)] : []));
  if (lists.length === 0) return "everybody";
  return lists.every((list) => list !== undefined) ? admissionOf(lists) : undefined;
}

function rangesOf(check: AddressCheck): Admission | undefined {
  const deny = readRanges(check.deny ?? []);
  if (check.allow === undefined || deny === undefined) return deny && { deny };
  const allow = readRanges(check.allow);
  return allow && { allow, deny };
}

export function shapeOf({ allow, deny }: Admission): Parameters<typeof routeAdmission>[1] {
  return { allow: cidrsOf(allow ?? []), deny: cidrsOf(deny), others: allow === undefined };
}

function isApplicable({ requests, periodMs, burst, key }: RateLimitCheck): boolean {
  if (![requests, periodMs, burst].every((value) => value >= 0) || periodMs === 0) return false;
  return key.type !== "header" || isToken(key.name);
}

function keyOf({ key }: RateLimitCheck): LimitShape["key"] {
  if (key.type !== "header") return key;
  // The host is no header to Envoy.
  const name = key.name.toLowerCase() === "host" ? ":authority" : key.name;
  return { type: "header", name, match: headerMatch({ name, type: "regex", value: OWN_VALUE }) };
}

/** The same rate, in numbers that Envoy takes. */
export function bucketOf({ requests, periodMs, burst }: RateLimitCheck): TokenBucket {
  const times = Math.max(1, Math.ceil(LEAST_FILL_MS / periodMs));
  return {
    most: tokens(burst),
    perFill: tokens(Math.floor(requests) * times),
    fillMs: Math.min(periodMs * times, LONGEST_FILL_MS),
  };
}

function tokens(count: number): number {
  return Math.min(Math.max(1, Math.floor(count)), MOST_TOKENS);
}
