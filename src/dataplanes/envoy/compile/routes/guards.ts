/**
 * The guards of one scope's rules.
 *
 * - Addresses are configuration of routes. The lists that most routes have stand once, in the
 *   scope, and the other routes turn them off: a thousand ranges take Envoy 200 KB each time.
 * - Limits are the scope's, so that all of its routes draw from the same buckets. A route says in
 *   its metadata which of them it has.
 *
 * - Authentication is the agent's: a route tells it which guards to ask. Its scope has turned the
 *   question off for all other routes.
 *
 * Addresses are looked at first, whatever the order of a rule's guards: a request of which both a
 * list and a limit would not let pass is 403, and takes no token. Who sends it is asked last.
 */

import { headersSetBy, isAuthentication } from "../../../../plan/authentication.ts";
import type { GuardItem, RateLimitCheck } from "../../../../plan/guard.ts";
import type { ItemId } from "../../../../plan/plan.ts";
import type { Rule } from "../../../../plan/rule.ts";
import { authenticationOff, authenticationOn } from "../../messages/authorization.ts";
import {
  admissionOff,
  type LimitShape,
  limitsMetadata,
  MOST_TOKENS,
  scopeLimits,
  type TokenBucket,
} from "../../messages/guards.ts";
import { headerMatch } from "../../messages/route.ts";
import type * as proto from "../../wire/proto.ts";
import type { Message } from "../../wire/protobuf.ts";
import type { Admission } from "../address-ranges.ts";
import { admissionOfChecks, encodedAdmission, guardsOf } from "../guard-addresses.ts";
import { ADDRESS_FILTER, AUTHENTICATION_FILTER, LIMIT_FILTER } from "../names.ts";
import { isHeaderName } from "./servable.ts";

/**
 * Buckets for all limits of a scope that have a key, in equal parts; of each limit the least
 * recently used one goes first. About 500 bytes each, and more with long values. The budget is the
 * scope's, so that no other scope changes when one gains a limit.
 */
const KEYS = 4_096;
/** Of one limit, however many there are. */
const LEAST_KEYS = 64;
/**
 * A value that has a bucket of its own. Two fields are one list to Envoy, so a list is no value;
 * and what is longer would be memory at a client's will.
 */
const OWN_VALUE = "[^,]{1,256}";
/** Envoy fills buckets no oftener. */
const LEAST_FILL_MS = 50;
/** A hundred years. */
const LONGEST_FILL_MS = 3_155_760_000_000;

type PerFilter = readonly (readonly [filter: string, config: Message<proto.Any>])[];

/** What a route needs for its guards. */
export interface RouteGuards {
  readonly perFilter: PerFilter;
  readonly metadata?: Message<proto.Metadata>;
  /** A limit lets nothing pass, whoever asks; so many seconds are a period of it. */
  readonly spentSeconds?: number;
  /** Of a body, at most. */
  readonly maxBytes?: number;
  /** Header fields that the backend gets from its guards alone. */
  readonly decided: readonly string[];
}

/** What a rule's guards come to. */
interface Checked {
  /** Of its lists of addresses; empty: it has none. */
  readonly addresses: string;
  readonly limits: readonly string[];
  readonly spentSeconds?: number;
  readonly maxBytes?: number;
  /** Those that ask who sends the request. */
  readonly authentication: readonly ItemId[];
  /** Of a body that they want to see, at most. */
  readonly askedBytes?: number;
  readonly decided: readonly string[];
}

export class ScopeGuards {
  readonly #guard: (id: ItemId) => GuardItem | undefined;
  readonly #limits: Map<ItemId, LimitShape> = new Map();
  readonly #admissions: Map<string, Message<proto.Any>> = new Map();
  /** Rules with the same guards share them; undefined: one is missing or cannot be applied. */
  readonly #known: Map<string, Checked | undefined> = new Map();
  /** The lists of addresses that the scope has for all routes that do not say otherwise. */
  readonly #shared: string;

  constructor(rules: Iterable<Rule>, guard: (id: ItemId) => GuardItem | undefined) {
    this.#guard = guard;
    const bytes = new Map<string, number>();
    for (const rule of rules) {
      const addresses = this.#check(rule)?.addresses ?? "";
      const size = routesOf(rule) * (this.#admissions.get(addresses)?.length ?? 0);
      if (size > 0) bytes.set(addresses, (bytes.get(addresses) ?? 0) + size);
    }
    const most = Math.max(...bytes.values());
    const [shared = ""] = [...bytes].find(([, size]) => size === most) ?? [];
    this.#shared = most > (this.#admissions.get(shared)?.length ?? 0) ? shared : "";
  }

  /** For a route of the rule; undefined: a guard is missing or cannot be applied. */
  of(rule: Rule): RouteGuards | undefined {
    const checked = this.#check(rule);
    if (checked === undefined) return undefined;
    const { addresses, limits, spentSeconds, authentication, askedBytes, decided, maxBytes } = checked;
    return {
      perFilter: [
        ...this.#perFilter(addresses),
        ...(authentication.length === 0
          ? []
          : [[AUTHENTICATION_FILTER, authenticationOn(authentication, askedBytes)] as const]),
      ],
      decided,
      ...(limits.length === 0 ? {} : { metadata: limitsMetadata(limits) }),
      ...(spentSeconds === undefined ? {} : { spentSeconds }),
      ...(maxBytes === undefined ? {} : { maxBytes }),
    };
  }

  /** For a route without guards. */
  get none(): RouteGuards {
    return { perFilter: this.#perFilter(""), decided: [] };
  }

  /** For the whole scope. */
  get scope(): PerFilter {
    const shared = this.#admissions.get(this.#shared);
    return [
      [AUTHENTICATION_FILTER, authenticationOff()],
      ...(shared === undefined ? [] : [[ADDRESS_FILTER, shared] as const]),
      ...(this.#limits.size === 0
        ? []
        : [[LIMIT_FILTER, scopeLimits([...this.#limits.values()], this.#keys)] as const]),
    ];
  }

  /** For each limit. */
  get #keys(): number {
    const keyed = [...this.#limits.values()].filter(({ key }) => key.type !== "all").length;
    return Math.max(LEAST_KEYS, Math.floor(KEYS / Math.max(1, keyed)));
  }

  #perFilter(addresses: string): PerFilter {
    if (addresses === this.#shared) return [];
    return [[ADDRESS_FILTER, this.#admissions.get(addresses) ?? admissionOff()]];
  }

  #check({ guards = [] }: Rule): Checked | undefined {
    const key = guards.join("\n");
    if (!this.#known.has(key)) this.#known.set(key, this.#compile(guards));
    return this.#known.get(key);
  }

  #compile(ids: readonly ItemId[]): Checked | undefined {
    const guards = guardsOf(ids, this.#guard);
    const admission = guards && admissionOfChecks(guards);
    if (admission === undefined || guards === undefined) return undefined;
    const limits: { readonly id: ItemId; readonly check: RateLimitCheck }[] = [];
    const sizes: number[] = [];
    const asked: number[] = [];
    for (const { id, check } of guards) {
      if (check.type === "requestBody") {
        if (!Number.isSafeInteger(check.maxBytes) || check.maxBytes < 0) return undefined;
        sizes.push(check.maxBytes);
      }
      if (check.type === "externalAuth" && check.maxBodyBytes !== undefined) {
        if (!Number.isSafeInteger(check.maxBodyBytes) || check.maxBodyBytes < 1) return undefined;
        asked.push(check.maxBodyBytes);
      }
      if (check.type !== "rateLimit") continue;
      if (!isApplicable(check)) return undefined;
      limits.push({ id, check });
    }
    const spent = limits.find(({ check }) => check.requests < 1 || check.burst < 1);
    return {
      addresses: admission === "everybody" ? "" : this.#admission(guards, admission),
      limits: spent === undefined ? limits.map(({ id, check }) => this.#limit(id, check)) : [],
      ...(spent === undefined ? {} : { spentSeconds: secondsOf(spent.check) }),
      ...(sizes.length === 0 ? {} : { maxBytes: Math.min(...sizes) }),
      authentication: guards.filter(({ check }) => isAuthentication(check)).map(({ id }) => id),
      ...(asked.length === 0 ? {} : { askedBytes: Math.min(...asked) }),
      decided: guards.flatMap(({ check }) => (isAuthentication(check) ? headersSetBy(check) : [])),
    };
  }

  #admission(guards: readonly GuardItem[], admission: Admission): string {
    const lists = guards.filter(({ check }) => check.type === "addresses").map(({ id }) => id);
    const key = lists.join("\n");
    if (!this.#admissions.has(key)) this.#admissions.set(key, encodedAdmission(admission));
    return key;
  }

  #limit(id: ItemId, check: RateLimitCheck): string {
    const known = this.#limits.get(id);
    if (known !== undefined) return known.word;
    const word = String(this.#limits.size);
    this.#limits.set(id, { word, bucket: bucketOf(check), key: keyOf(check) });
    return word;
  }
}

/** About as many as Envoy has for a rule. */
function routesOf({ action }: Rule): number {
  return action.type === "forward" ? Math.max(1, action.backends.length) : 1;
}

function secondsOf({ periodMs }: RateLimitCheck): number {
  return Math.min(Math.max(1, Math.ceil(periodMs / 1_000)), LONGEST_FILL_MS / 1_000);
}

function isApplicable({ requests, periodMs, burst, key }: RateLimitCheck): boolean {
  if (![requests, periodMs, burst].every((value) => value >= 0) || periodMs === 0) return false;
  return key.type !== "header" || isHeaderName(key.name);
}

function keyOf({ key }: RateLimitCheck): LimitShape["key"] {
  if (key.type !== "header") return key;
  const { name } = key;
  // A client can write one host in many ways; a scope is of one hostname already.
  if (name.toLowerCase() === "host") return { type: "all" };
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
