/**
 * Guards of routes: role-based access control by address, and local rate limits
 * (envoy.extensions.filters.http.rbac.v3, envoy.extensions.filters.http.local_ratelimit.v3).
 */

import { flag, type Message, map, message, nested, nestedEach, text, uint } from "../wire/protobuf.ts";
import { any, boolValue, type Cidr, cidrRange, duration, extension, struct, uint32Value } from "./core.ts";
import { httpFilter } from "./http-filters.ts";

const RBAC = "envoy.extensions.filters.http.rbac.v3";
const LOCAL_RATE_LIMIT = "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit";
const ALLOW = 0;
const DENY = 1;
const ROUTE_ENTRY = 1;
/** Under which a route says which limits it has, and the word for a limit in descriptors. */
const LIMITS = "mergeway.limits";
const LIMIT = "limit";
/** Envoy's own word for its action. */
const CLIENT = "masked_remote_address";
/** Whether an action is the one that knows how to write the client's address. */
const WRITTEN = "written";
/** Of an IPv6 address: what a network gives to one client, who may use all of it. */
const CLIENT_BITS = 64;
const VALUE = "value";
/** Whether a value has a bucket of its own. */
const OWN = "own";
const YES = "1";
const NO = "0";
/** Of uint32. */
export const MOST_TOKENS = 4_294_967_295;

/**
 * In CEL: whether IPv6 maps an IPv4 address, and that address as Envoy writes others. Expressions
 * with patterns are dear, so it is asked first.
 */
const IS_MAPPED = "source.address.startsWith('[::ffff:') && source.address.contains('.')";
const WRITTEN_AS_IT_IS = `${IS_MAPPED} ? '${NO}' : '${YES}'`;
const WRITTEN_AS_MAPPED = `${IS_MAPPED} ? '${YES}' : '${NO}'`;
const CLIENT_OF_MAPPED = `${IS_MAPPED} ? re.extract(source.address, '([0-9]+[.][0-9.]+)', '\\\\1/32') : '${NO}'`;

export interface AdmissionShape {
  readonly allow: readonly Cidr[];
  /** Comes before `allow`. */
  readonly deny: readonly Cidr[];
  /** Whether addresses of no range are let in. */
  readonly others: boolean;
}

/**
 * A matcher by the client's address, with an action for those who are let in and for the others.
 * Envoy puts the ranges of each list in a trie. It has another matcher for the same (IPMatcher of
 * xds.type.matcher.v3), but that is work in progress: every range of it is a line in Envoy's log.
 */
export function addressMatcher(
  { allow, deny, others }: AdmissionShape,
  onAllowed: Message,
  onDenied: Message,
): Message {
  const input = extension(
    "address",
    "envoy.extensions.matching.common_inputs.network.v3.SourceIPInput",
    message(),
  );
  const within = (cidrs: readonly Cidr[], action: Message): readonly Message[] => {
    if (cidrs.length === 0) return [];
    const ranges = extension(
      "ranges",
      "envoy.extensions.matching.input_matchers.ip.v3.Ip",
      message(nestedEach(1, cidrs.map(cidrRange)), text(2, "guards")),
    );
    const predicate = message(nested(1, message(nested(1, input), nested(3, ranges))));
    return [message(nested(1, predicate), nested(2, message(nested(2, action))))];
  };
  const matchers = [...within(deny, onDenied), ...within(allow, onAllowed)];
  return message(
    matchers.length === 0 ? undefined : nested(1, message(nestedEach(1, matchers))),
    nested(3, message(nested(2, others ? onAllowed : onDenied))),
  );
}

/** Does nothing unless a route has an admission. */
export function admissionFilter(name: string): Message {
  return httpFilter(name, `${RBAC}.RBAC`, message());
}

/** What Envoy's response code details call it. */
const ADDRESSES = "addresses";

export function routeAdmission(admission: AdmissionShape): Message {
  const action = (kind: number): Message =>
    extension(ADDRESSES, "envoy.config.rbac.v3.Action", message(text(1, ADDRESSES), uint(2, kind)));
  const matcher = addressMatcher(admission, action(ALLOW), action(DENY));
  return any(`${RBAC}.RBACPerRoute`, message(nested(2, message(nested(4, matcher)))));
}

/** For a route that lets everybody in, whatever its scope has. */
export function admissionOff(): Message {
  return any(`${RBAC}.RBACPerRoute`, message());
}

/** Response code details of a request whose client is not let in. */
export const ADDRESS_DENIED: string = `rbac_access_denied_matched_policy[${ADDRESSES}]`;

export interface TokenBucket {
  readonly most: number;
  readonly perFill: number;
  readonly fillMs: number;
}

export interface LimitShape {
  /** Of the limit, for the routes that have it. */
  readonly word: string;
  readonly bucket: TokenBucket;
  readonly key:
    | { readonly type: "all" }
    | { readonly type: "client" }
    | {
        readonly type: "header";
        readonly name: string;
        /** A header match of values that have a bucket of their own; the others share one. */
        readonly match: Message;
      };
}

/** Does nothing unless a scope has limits. */
export function limitFilter(name: string): Message {
  return httpFilter(name, LOCAL_RATE_LIMIT, message(text(1, "limits")));
}

/** What a route says to have these limits of its scope. */
export function limitsMetadata(words: readonly string[]): Message {
  return message(map(1, [[LIMITS, struct(Object.fromEntries(words.map((word) => [word, word])))]]));
}

/**
 * All limits of a scope, with `keys` buckets for each of those that have a key. Routes without
 * limits draw from the bucket that everything else has, which is never empty.
 */
export function scopeLimits(limits: readonly LimitShape[], keys: number): Message {
  const always = nested(1, message(uint(1, 100)));
  const endless = { most: MOST_TOKENS, perFill: MOST_TOKENS, fillMs: 1_000 };
  const config = message(
    text(1, "limits"),
    nested(3, tokenBucket(endless)),
    nested(4, message(always)),
    nested(5, message(always)),
    nestedEach(8, limits.flatMap(descriptors)),
    boolValue(14, false),
    nestedEach(17, limits.flatMap(limitActions)),
    uint32Value(18, keys),
    flag(19, true),
  );
  return any(LOCAL_RATE_LIMIT, config);
}

function tokenBucket({ most, perFill, fillMs }: TokenBucket): Message {
  return message(uint(1, most), uint32Value(2, perFill), duration(3, fillMs));
}

/** Entries without a value stand for every value, each with a bucket of its own. */
function descriptors({ word, key, bucket }: LimitShape): readonly Message[] {
  const entry = (name: string, value = ""): Message => message(text(1, name), text(2, value));
  const descriptor = (...more: readonly Message[]): Message =>
    message(nestedEach(1, [entry(LIMIT, word), ...more]), nested(2, tokenBucket(bucket)));
  switch (key.type) {
    case "all":
      return [descriptor()];
    case "client":
      return [descriptor(entry(WRITTEN, YES), entry(CLIENT))];
    case "header":
      return [descriptor(entry(OWN, YES), entry(VALUE)), descriptor(entry(OWN, NO))];
  }
}

/** Each says of a request which bucket it draws from, or nothing: that it draws from none. */
function limitActions({ word, key }: LimitShape): readonly Message[] {
  const path = message(text(1, LIMITS), nested(2, message(text(1, word))));
  const ofRoute = message(nested(8, message(text(1, LIMIT), nested(2, path), uint(4, ROUTE_ENTRY))));
  const limit = (...more: readonly Message[]): Message => message(nestedEach(3, [ofRoute, ...more]));
  switch (key.type) {
    case "all":
      return [limit()];
    case "client":
      return [
        limit(
          expression(WRITTEN, WRITTEN_AS_IT_IS),
          message(nested(10, message(uint32Value(2, CLIENT_BITS)))),
        ),
        limit(expression(WRITTEN, WRITTEN_AS_MAPPED), expression(CLIENT, CLIENT_OF_MAPPED)),
      ];
    case "header": {
      const value = message(nested(3, message(text(1, key.name), text(2, VALUE))));
      return [limit(ownAction(key.match, true), value), limit(ownAction(key.match, false))];
    }
  }
}

function ownAction(match: Message, expected: boolean): Message {
  const value = text(1, expected ? YES : NO);
  return message(nested(6, message(value, boolValue(2, expected), nested(3, match), text(4, OWN))));
}

/** An entry with the value of a CEL expression; if that fails, there is no descriptor. */
function expression(key: string, cel: string): Message {
  const descriptor = message(text(1, key), text(3, cel));
  return message(
    nested(
      9,
      extension(
        "envoy.rate_limit_descriptors.expr",
        "envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor",
        descriptor,
      ),
    ),
  );
}
