/** HTTP filters of the connection manager (envoy.extensions.filters.http). */

import * as proto from "../wire/proto.ts";
import {
  enumValue,
  flag,
  type Message,
  map,
  message,
  nested,
  nestedEach,
  text,
  texts,
} from "../wire/protobuf.ts";
import {
  adsSource,
  any,
  extension,
  type HeaderMode,
  headerOption,
  matcherExtension,
  regexMatcher,
  typeUrl,
} from "./core.ts";
import { luaFilter } from "./route.ts";

const LUA = "envoy.extensions.filters.http.lua.v3.Lua";
const HEADER_MUTATION = "envoy.extensions.filters.http.header_mutation.v3.HeaderMutation";

export const CORS_FILTER = "envoy.filters.http.cors";

export function httpFilter<Type extends string>(
  name: string,
  type: Type,
  config: Message<Type>,
): Message<proto.HttpFilter> {
  return message(text(proto.HttpFilter.name, name), nested(proto.HttpFilter.typedConfig, any(type, config)));
}

/** Without code: it comes as a resource of its own. */
export function scriptFilter(name: string, code?: string): Message<proto.HttpFilter> {
  if (code !== undefined) return httpFilter(name, LUA, luaFilter(code));
  const discovery = message(
    nested(proto.ExtensionConfigSource.configSource, adsSource({ waits: true })),
    texts(proto.ExtensionConfigSource.typeUrls, [typeUrl(LUA)]),
  );
  return message(text(proto.HttpFilter.name, name), nested(proto.HttpFilter.configDiscovery, discovery));
}

export function corsFilter(): Message<proto.HttpFilter> {
  return httpFilter(CORS_FILTER, "envoy.extensions.filters.http.cors.v3.Cors", message());
}

export function routerFilter(): Message<proto.HttpFilter> {
  return httpFilter(
    "envoy.filters.http.router",
    "envoy.extensions.filters.http.router.v3.Router",
    message(flag(proto.Router.suppressEnvoyHeaders, true)),
  );
}

export interface RefusalShape {
  /** Said in the access log. */
  readonly name: string;
  /** A match of header fields, and of the protocol if it matters. */
  readonly header: Message<proto.HeaderMatcher>;
  readonly protocol?: string;
}

/** Answers requests that meet one of the refusals with 403. */
export function refusalFilter(name: string, refusals: readonly RefusalShape[]): Message<proto.HttpFilter> {
  const anybody = message(flag(proto.Principal.any, true));
  const policies = refusals.map(({ name: policy, header, protocol }) => {
    const content = message(
      nested(proto.Policy.permissions, message(nested(proto.Permission.header, header))),
      nested(proto.Policy.principals, anybody),
      protocol === undefined ? undefined : nested(proto.Policy.condition, protocolIs(protocol)),
    );
    return [policy, content] as const;
  });
  const rules = message(
    enumValue(proto.RbacRules.action, proto.RbacRulesAction.DENY),
    map(proto.RbacRules.policies, policies),
  );
  const config = message(nested(proto.RbacFilter.rules, rules));
  return httpFilter(name, "envoy.extensions.filters.http.rbac.v3.RBAC", config);
}

/** The CEL expression `request.protocol == protocol`, parsed (google.api.expr.v1alpha1.Expr). */
function protocolIs(protocol: string): Message<proto.Expr> {
  const request = message(nested(proto.Expr.identExpr, message(text(proto.Ident.name, "request"))));
  const selected = message(nested(proto.Select.operand, request), text(proto.Select.field, "protocol"));
  const given = message(nested(proto.Expr.selectExpr, selected));
  const constant = message(text(proto.Constant.stringValue, protocol));
  const wanted = message(nested(proto.Expr.constExpr, constant));
  const comparison = message(text(proto.Call.function, "_==_"), nestedEach(proto.Call.args, [given, wanted]));
  return message(nested(proto.Expr.callExpr, comparison));
}

/** Sets a field, or removes one, or all whose lower-case names match an expression. */
export type HeaderMutation =
  | {
      readonly name: string;
      readonly value: string;
      readonly mode: HeaderMode;
      readonly unlessEmpty?: boolean;
    }
  | { readonly removed: string }
  | { readonly removedLike: string };

export function headerMutation(mutation: HeaderMutation): Message<proto.HeaderMutation> {
  if ("removed" in mutation) return message(text(proto.HeaderMutation.remove, mutation.removed));
  if ("removedLike" in mutation) {
    const match = message(nested(proto.RemoveOnMatch.keyMatcher, regexMatcher(mutation.removedLike)));
    return message(nested(proto.HeaderMutation.removeOnMatch, match));
  }
  const { name, value, mode, unlessEmpty } = mutation;
  return message(nested(proto.HeaderMutation.append, headerOption(name, value, mode, unlessEmpty)));
}

export interface MutationsShape {
  readonly request?: readonly HeaderMutation[];
  readonly requestTrailers?: readonly HeaderMutation[];
  readonly responseTrailers?: readonly HeaderMutation[];
}

function mutations({
  request = [],
  requestTrailers = [],
  responseTrailers = [],
}: MutationsShape): Message<proto.HeaderMutations> {
  return message(
    nestedEach(proto.HeaderMutations.requestMutations, request.map(headerMutation)),
    nestedEach(proto.HeaderMutations.responseTrailersMutations, responseTrailers.map(headerMutation)),
    nestedEach(proto.HeaderMutations.requestTrailersMutations, requestTrailers.map(headerMutation)),
  );
}

function mutationConfig(shape: MutationsShape): Message<proto.HeaderMutationFilter> {
  return message(nested(proto.HeaderMutationFilter.mutations, mutations(shape)));
}

export function mutationFilter(name: string, shape: MutationsShape): Message<proto.HttpFilter> {
  return httpFilter(name, HEADER_MUTATION, mutationConfig(shape));
}

/** What the filter does to requests of one route besides. */
export function routeMutations(shape: MutationsShape): Message<proto.Any> {
  const config = message(nested(proto.HeaderMutationPerRoute.mutations, mutations(shape)));
  return any("envoy.extensions.filters.http.header_mutation.v3.HeaderMutationPerRoute", config);
}

/** The same filter, for requests with certain methods only. */
export function mutationFilterFor(
  methods: readonly string[],
  name: string,
  shape: MutationsShape,
): Message<proto.HttpFilter> {
  const method = matcherExtension(
    "method",
    "envoy.type.matcher.v3.HttpRequestHeaderMatchInput",
    message(text(proto.HttpRequestHeaderMatchInput.headerName, ":method")),
  );
  const each = methods.map((name) => {
    const single = message(
      nested(proto.SinglePredicate.input, method),
      nested(proto.SinglePredicate.valueMatch, message(text(proto.XdsStringMatcher.exact, name))),
    );
    return message(nested(proto.Predicate.singlePredicate, single));
  });
  const anyOf = message(nestedEach(proto.PredicateList.predicate, each));
  const listed = message(nested(proto.Predicate.orMatcher, anyOf));
  const skip = matcherExtension(
    "skip",
    "envoy.extensions.filters.common.matcher.action.v3.SkipFilter",
    message(),
  );
  const others = message(
    nested(proto.FieldMatcher.predicate, message(nested(proto.Predicate.notMatcher, listed))),
    nested(proto.FieldMatcher.onMatch, message(nested(proto.OnMatch.action, skip))),
  );
  const matcher = message(
    nested(proto.Matcher.matcherList, message(nested(proto.MatcherList.matchers, others))),
  );
  const filter = extension(name, HEADER_MUTATION, mutationConfig(shape));
  return httpFilter(
    name,
    "envoy.extensions.common.matching.v3.ExtensionWithMatcher",
    message(
      nested(proto.ExtensionWithMatcher.extensionConfig, filter),
      nested(proto.ExtensionWithMatcher.xdsMatcher, matcher),
    ),
  );
}
