/**
 * Which fields a request or an answer may not carry on, as expressions for Envoy's header
 * mutations. Behind a body nobody may say what is cleaned in front of it: what belongs to one
 * connection (RFC 9110, 7.6.1), what must be known before the body (RFC 9110, 6.5.1), what only the
 * gateway says, and what the route sets or removes.
 */

import { forgedFieldPattern } from "../../forged-fields.ts";
import { headOnlyFields } from "../../head-only-fields.ts";
import { hopByHopFields } from "../../hop-by-hop-fields.ts";
import { type HeaderMutation, routeMutations } from "../messages/http-filters.ts";
import type * as proto from "../wire/proto.ts";
import type { Message } from "../wire/protobuf.ts";

/** Every expression is for the whole of a lower-case field name. */
const unwanted = [...hopByHopFields, ...headOnlyFields].join("|");

export const cleanRequestTrailers: HeaderMutation = {
  removedLike: `(?:${unwanted}|x-request-id|x-mergeway-.*)|${forgedFieldPattern(false)}`,
};

export const cleanResponseTrailers: HeaderMutation = { removedLike: unwanted };

interface Decided {
  readonly request: readonly string[];
  /** Set by guards, which have looked at the header already. */
  readonly guarded: readonly string[];
  readonly response: readonly string[];
}

/**
 * Besides, for one route with the names of the fields that it sets or removes. A client must not
 * say them under a twin (`X_User` for `X-User`) or behind the body, nor a backend behind the body.
 */
export function routeCleaning({ request, guarded, response }: Decided): Message<proto.Any> | undefined {
  if (request.length === 0 && guarded.length === 0 && response.length === 0) return undefined;
  const removal = (patterns: readonly string[]): readonly HeaderMutation[] =>
    patterns.length === 0 ? [] : [{ removedLike: patterns.join("|") }];
  return routeMutations({
    request: removal(request.filter((name) => name.includes("-")).map(spellings)),
    requestTrailers: removal([...request, ...guarded].map(spellings)),
    responseTrailers: removal(response.map(literal)),
  });
}

/**
 * What may stand for a dash. In ASCII alone: the rest of Unicode would cost a program of many steps
 * each time.
 */
const SEPARATOR = "[!-/:-`{-~]";

/**
 * The name and its twins. Both give way to what the route says, so the name need not be told from
 * its twins.
 */
function spellings(name: string): string {
  return name.split("-").map(literal).join(SEPARATOR);
}

function literal(text: string): string {
  return text.replace(/[^a-z0-9-]/g, "\\$&");
}
