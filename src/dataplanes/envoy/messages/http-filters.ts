/** HTTP filters of the connection manager (envoy.extensions.filters.http). */

import { flag, type Message, map, message, nested, nestedEach, text, texts, uint } from "../wire/protobuf.ts";
import { adsSource, any, extension, type HeaderMode, headerOption, regexMatcher, typeUrl } from "./core.ts";
import { luaFilter } from "./route.ts";

const LUA = "envoy.extensions.filters.http.lua.v3.Lua";
const HEADER_MUTATION = "envoy.extensions.filters.http.header_mutation.v3";
const DENY = 1;

export const CORS_FILTER = "envoy.filters.http.cors";

export function httpFilter(name: string, type: string, config: Message): Message {
  return message(text(1, name), nested(4, any(type, config)));
}

/** Without code: it comes as a resource of its own. */
export function scriptFilter(name: string, code?: string): Message {
  if (code !== undefined) return httpFilter(name, LUA, luaFilter(code));
  const discovery = message(nested(1, adsSource({ waits: true })), texts(4, [typeUrl(LUA)]));
  return message(text(1, name), nested(5, discovery));
}

export function corsFilter(): Message {
  return httpFilter(CORS_FILTER, "envoy.extensions.filters.http.cors.v3.Cors", message());
}

export function routerFilter(): Message {
  return httpFilter(
    "envoy.filters.http.router",
    "envoy.extensions.filters.http.router.v3.Router",
    message(flag(4, true)),
  );
}

export interface Refusal {
  /** Said in the access log. */
  readonly name: string;
  /** A match of header fields, and of the protocol if it matters. */
  readonly header: Message;
  readonly protocol?: string;
}

/** Answers requests that meet one of the refusals with 403. */
export function refusalFilter(name: string, refusals: readonly Refusal[]): Message {
  const anybody = message(flag(3, true));
  const policies = refusals.map(({ name: policy, header, protocol }) => {
    const condition = protocol === undefined ? undefined : nested(3, protocolIs(protocol));
    const content = message(nested(1, message(nested(4, header))), nested(2, anybody), condition);
    return [policy, content] as const;
  });
  const rules = message(uint(1, DENY), map(2, policies));
  return httpFilter(name, "envoy.extensions.filters.http.rbac.v3.RBAC", message(nested(1, rules)));
}

/** The CEL expression `request.protocol == protocol`, parsed (google.api.expr.v1alpha1.Expr). */
function protocolIs(protocol: string): Message {
  const request = message(nested(4, message(text(1, "request"))));
  const given = message(nested(5, message(nested(1, request), text(2, "protocol"))));
  const wanted = message(nested(3, message(text(6, protocol))));
  return message(nested(6, message(text(2, "_==_"), nestedEach(3, [given, wanted]))));
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

export function headerMutation(mutation: HeaderMutation): Message {
  if ("removed" in mutation) return message(text(1, mutation.removed));
  if ("removedLike" in mutation)
    return message(nested(3, message(nested(1, regexMatcher(mutation.removedLike)))));
  const { name, value, mode, unlessEmpty } = mutation;
  return message(nested(2, headerOption(name, value, mode, unlessEmpty)));
}

export interface MutationsShape {
  readonly request?: readonly HeaderMutation[];
  readonly requestTrailers?: readonly HeaderMutation[];
  readonly responseTrailers?: readonly HeaderMutation[];
}

function mutations({ request = [], requestTrailers = [], responseTrailers = [] }: MutationsShape): Message {
  return message(
    nestedEach(1, request.map(headerMutation)),
    nestedEach(4, responseTrailers.map(headerMutation)),
    nestedEach(5, requestTrailers.map(headerMutation)),
  );
}

export function mutationFilter(name: string, shape: MutationsShape): Message {
  return httpFilter(name, `${HEADER_MUTATION}.HeaderMutation`, message(nested(1, mutations(shape))));
}

/** What the filter does to requests of one route besides. */
export function routeMutations(shape: MutationsShape): Message {
  return any(`${HEADER_MUTATION}.HeaderMutationPerRoute`, message(nested(1, mutations(shape))));
}

/** The same filter, for requests with certain methods only. */
export function mutationFilterFor(methods: readonly string[], name: string, shape: MutationsShape): Message {
  const method = extension(
    "method",
    "envoy.type.matcher.v3.HttpRequestHeaderMatchInput",
    message(text(1, ":method")),
  );
  const each = methods.map((name) =>
    message(nested(1, message(nested(1, method), nested(2, message(text(1, name)))))),
  );
  const listed = message(nested(2, message(nestedEach(1, each))));
  const skip = extension("skip", "envoy.extensions.filters.common.matcher.action.v3.SkipFilter", message());
  const others = message(nested(1, message(nested(4, listed))), nested(2, message(nested(2, skip))));
  const matcher = message(nested(1, message(nested(1, others))));
  const filter = extension(name, `${HEADER_MUTATION}.HeaderMutation`, message(nested(1, mutations(shape))));
  return httpFilter(
    name,
    "envoy.extensions.common.matching.v3.ExtensionWithMatcher",
    message(nested(2, filter), nested(3, matcher)),
  );
}
