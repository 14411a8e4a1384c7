/**
 * Guards of routes: role-based access control by address, and local rate limits
 * (envoy.extensions.filters.http.rbac.v3, envoy.extensions.filters.http.local_ratelimit.v3).
 */

import * as proto from "../wire/proto.ts";
import {
  type EnumValue,
  enumValue,
  flag,
  type Message,
  map,
  message,
  nested,
  nestedEach,
  text,
  uint,
} from "../wire/protobuf.ts";
import {
  any,
  boolValue,
  type Cidr,
  cidrRange,
  duration,
  extension,
  matcherExtension,
  struct,
  uint32Value,
} from "./core.ts";
import { httpFilter } from "./http-filters.ts";

const RBAC = "envoy.extensions.filters.http.rbac.v3.RBAC";
const RBAC_PER_ROUTE = "envoy.extensions.filters.http.rbac.v3.RBACPerRoute";
const LOCAL_RATE_LIMIT = "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit";
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
  onAllowed: Message<proto.XdsExtension>,
  onDenied: Message<proto.XdsExtension>,
): Message<proto.Matcher> {
  const input = matcherExtension(
    "address",
    "envoy.extensions.matching.common_inputs.network.v3.SourceIPInput",
    message(),
  );
  const onMatch = (action: Message<proto.XdsExtension>): Message<proto.OnMatch> =>
    message(nested(proto.OnMatch.action, action));
  const within = (
    cidrs: readonly Cidr[],
    action: Message<proto.XdsExtension>,
  ): readonly Message<proto.FieldMatcher>[] => {
    if (cidrs.length === 0) return [];
    const ranges = matcherExtension(
      "ranges",
      "envoy.extensions.matching.input_matchers.ip.v3.Ip",
      message(
        nestedEach(proto.IpMatcher.cidrRanges, cidrs.map(cidrRange)),
        text(proto.IpMatcher.statPrefix, "guards"),
      ),
    );
    const single = message(
      nested(proto.SinglePredicate.input, input),
      nested(proto.SinglePredicate.customMatch, ranges),
    );
    const predicate = message(nested(proto.Predicate.singlePredicate, single));
    return [
      message(
        nested(proto.FieldMatcher.predicate, predicate),
        nested(proto.FieldMatcher.onMatch, onMatch(action)),
      ),
    ];
  };
  const matchers = [...within(deny, onDenied), ...within(allow, onAllowed)];
  return message(
    matchers.length === 0
      ? undefined
      : nested(proto.Matcher.matcherList, message(nestedEach(proto.MatcherList.matchers, matchers))),
    nested(proto.Matcher.onNoMatch, onMatch(others ? onAllowed : onDenied)),
  );
}

/** Does nothing unless a route has an admission. */
export function admissionFilter(name: string): Message<proto.HttpFilter> {
  return httpFilter(name, RBAC, message());
}

/** What Envoy's response code details call it. */
const ADDRESSES = "addresses";

export function routeAdmission(admission: AdmissionShape): Message<proto.Any> {
  const action = (kind: EnumValue<proto.RbacRulesAction>): Message<proto.XdsExtension> =>
    matcherExtension(
      ADDRESSES,
      "envoy.config.rbac.v3.Action",
      message(text(proto.RbacAction.name, ADDRESSES), enumValue(proto.RbacAction.action, kind)),
    );
  const { ALLOW, DENY } = proto.RbacRulesAction;
  const matcher = addressMatcher(admission, action(ALLOW), action(DENY));
  const rbac = message(nested(proto.RbacFilter.matcher, matcher));
  return any(RBAC_PER_ROUTE, message(nested(proto.RbacPerRoute.rbac, rbac)));
}

/** For a route that lets everybody in, whatever its scope has. */
export function admissionOff(): Message<proto.Any> {
  return any(RBAC_PER_ROUTE, message());
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
        readonly match: Message<proto.HeaderMatcher>;
      };
}

/** Does nothing unless a scope has limits. */
export function limitFilter(name: string): Message<proto.HttpFilter> {
  return httpFilter(name, LOCAL_RATE_LIMIT, message(text(proto.LocalRateLimit.statPrefix, "limits")));
}

/** What a route says to have these limits of its scope. */
export function limitsMetadata(words: readonly string[]): Message<proto.Metadata> {
  const routeLimits = struct(Object.fromEntries(words.map((word) => [word, word])));
  return message(map(proto.Metadata.filterMetadata, [[LIMITS, routeLimits]]));
}

/**
 * All limits of a scope, with `keys` buckets for each of those that have a key. Routes without
 * limits draw from the bucket that everything else has, which is never empty.
 */
export function scopeLimits(limits: readonly LimitShape[], keys: number): Message<proto.Any> {
  const hundred = message(uint(proto.FractionalPercent.numerator, 100));
  const always = message(nested(proto.RuntimeFractionalPercent.defaultValue, hundred));
  const endless = { most: MOST_TOKENS, perFill: MOST_TOKENS, fillMs: 1_000 };
  const config = message(
    text(proto.LocalRateLimit.statPrefix, "limits"),
    nested(proto.LocalRateLimit.tokenBucket, tokenBucket(endless)),
    nested(proto.LocalRateLimit.filterEnabled, always),
    nested(proto.LocalRateLimit.filterEnforced, always),
    nestedEach(proto.LocalRateLimit.descriptors, limits.flatMap(descriptors)),
    boolValue(proto.LocalRateLimit.alwaysConsumeDefaultTokenBucket, false),
    nestedEach(proto.LocalRateLimit.rateLimits, limits.flatMap(limitActions)),
    uint32Value(proto.LocalRateLimit.maxDynamicDescriptors, keys),
    flag(proto.LocalRateLimit.enableRetryAfterHeader, true),
  );
  return any(LOCAL_RATE_LIMIT, config);
}

function tokenBucket({ most, perFill, fillMs }: TokenBucket): Message<proto.TokenBucket> {
  return message(
    uint(proto.TokenBucket.maxTokens, most),
    uint32Value(proto.TokenBucket.tokensPerFill, perFill),
    duration(proto.TokenBucket.fillInterval, fillMs),
  );
}

/** Entries without a value stand for every value, each with a bucket of its own. */
function descriptors({ word, key, bucket }: LimitShape): readonly Message<proto.LocalRateLimitDescriptor>[] {
  const entry = (name: string, value = ""): Message<proto.RateLimitEntry> =>
    message(text(proto.RateLimitEntry.key, name), text(proto.RateLimitEntry.value, value));
  const descriptor = (
    ...more: readonly Message<proto.RateLimitEntry>[]
  ): Message<proto.LocalRateLimitDescriptor> =>
    message(
      nestedEach(proto.LocalRateLimitDescriptor.entries, [entry(LIMIT, word), ...more]),
      nested(proto.LocalRateLimitDescriptor.tokenBucket, tokenBucket(bucket)),
    );
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
function limitActions({ word, key }: LimitShape): readonly Message<proto.RateLimit>[] {
  const path = message(
    text(proto.MetadataKey.key, LIMITS),
    nested(proto.MetadataKey.path, message(text(proto.PathSegment.key, word))),
  );
  const metadata = message(
    text(proto.MetaData.descriptorKey, LIMIT),
    nested(proto.MetaData.metadataKey, path),
    enumValue(proto.MetaData.source, proto.MetadataSource.ROUTE_ENTRY),
  );
  const ofRoute = message(nested(proto.RateLimitAction.metadata, metadata));
  const limit = (...more: readonly Message<proto.RateLimitAction>[]): Message<proto.RateLimit> =>
    message(nestedEach(proto.RateLimit.actions, [ofRoute, ...more]));
  switch (key.type) {
    case "all":
      return [limit()];
    case "client":
      return [
        limit(
          expression(WRITTEN, WRITTEN_AS_IT_IS),
          message(
            nested(
              proto.RateLimitAction.maskedRemoteAddress,
              message(uint32Value(proto.MaskedRemoteAddress.v6PrefixMaskLen, CLIENT_BITS)),
            ),
          ),
        ),
        limit(expression(WRITTEN, WRITTEN_AS_MAPPED), expression(CLIENT, CLIENT_OF_MAPPED)),
      ];
    case "header": {
      const headers = message(
        text(proto.RequestHeaders.headerName, key.name),
        text(proto.RequestHeaders.descriptorKey, VALUE),
      );
      const value = message(nested(proto.RateLimitAction.requestHeaders, headers));
      return [limit(ownAction(key.match, true), value), limit(ownAction(key.match, false))];
    }
  }
}

function ownAction(match: Message<proto.HeaderMatcher>, expected: boolean): Message<proto.RateLimitAction> {
  const valueMatch = message(
    text(proto.HeaderValueMatch.descriptorValue, expected ? YES : NO),
    boolValue(proto.HeaderValueMatch.expectMatch, expected),
    nested(proto.HeaderValueMatch.headers, match),
    text(proto.HeaderValueMatch.descriptorKey, OWN),
  );
  return message(nested(proto.RateLimitAction.headerValueMatch, valueMatch));
}

/** An entry with the value of a CEL expression; if that fails, there is no descriptor. */
function expression(key: string, cel: string): Message<proto.RateLimitAction> {
  const descriptor = message(
    text(proto.ExpressionDescriptor.descriptorKey, key),
    text(proto.ExpressionDescriptor.text, cel),
  );
  return message(
    nested(
      proto.RateLimitAction.extension,
      extension(
        "envoy.rate_limit_descriptors.expr",
        "envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor",
        descriptor,
      ),
    ),
  );
}
