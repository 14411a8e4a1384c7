/**
 * A guard: what a request must meet before its rule acts, in no data plane's words. It comes from
 * one section (`defaults` or `overrides`) of one TrafficPolicy, or from a filter of a route, and is
 * an item of its own, so that a list of a thousand ranges stands in the plan once, however many
 * rules it guards.
 *
 * A rule names its guards in order, and all of them must let a request pass. A guard that a data
 * plane does not have, or cannot apply, lets nothing pass: the answer is 500.
 */
import type { AuthenticationCheck } from "./authentication.ts";
import type { RequestBodyCheck } from "./limits/request-limits.ts";
import type { ItemId } from "./plan.ts";

export interface GuardItem {
  readonly type: "guard";
  readonly id: ItemId;
  readonly gateway: string;
  /** What it comes from, for logs and explanations. */
  readonly policy: GuardOrigin;
  readonly check: GuardCheck;
}

export interface GuardOrigin {
  /** Absent: a TrafficPolicy. */
  readonly kind?: "HTTPRoute";
  readonly namespace: string;
  readonly name: string;
}

export type GuardCheck = AddressCheck | RateLimitCheck | AuthenticationCheck | RequestBodyCheck;

/**
 * By the client's address as `ClientAddressPlan` finds it; who is not let in gets 403. `deny` comes
 * before `allow`. Ranges are in CIDR notation, IPv4 or IPv6, and never the IPv4-mapped form: an
 * address like ::ffff:192.0.2.1 is compared as 192.0.2.1.
 */
export interface AddressCheck {
  readonly type: "addresses";
  /** Absent: everybody who is not denied. Empty: nobody. */
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
}

/**
 * A token bucket of `burst` tokens that gains `requests` tokens in `periodMs`; a request without a
 * token gets 429. Each pod counts for itself, and separately for every guard, every hostname
 * pattern that a listener serves, and every key. The pattern is the most specific one that matches
 * the name, also where the rule of a wider one serves. A changed limit begins with full buckets.
 */
export interface RateLimitCheck {
  readonly type: "rateLimit";
  readonly requests: number;
  readonly periodMs: number;
  readonly burst: number;
  /**
   * What has its own bucket. A header that is absent or repeated counts as one empty value. The
   * header Host is no key beyond the hostname pattern: there are many ways to write one host.
   */
  readonly key: RateLimitKey;
}

export type RateLimitKey =
  | { readonly type: "all" }
  | { readonly type: "client" }
  | { readonly type: "header"; readonly name: string };
