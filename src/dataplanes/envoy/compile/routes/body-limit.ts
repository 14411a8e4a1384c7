/**
 * A limit for bodies, as routes. Which of them a request takes depends on what it announces:
 *
 * - too long a body: 413, and nothing is sent;
 * - a body within the limit: the rule as it is. Envoy resets a stream whose body is longer than
 *   announced;
 * - nothing: the rule, with a filter that has the body counted as it comes.
 */

import { headerMatch, headerPresent } from "../../messages/route.ts";
import type * as proto from "../../wire/proto.ts";
import type { Message } from "../../wire/protobuf.ts";

const LENGTH = "content-length";

/** Header matches of requests that announce a body. */
export const announced: readonly Message<proto.HeaderMatcher>[] = [headerPresent(LENGTH)];

/** Of requests that announce too long a body, or no number. */
export function announcesMore(maxBytes: number): readonly Message<proto.HeaderMatcher>[] {
  const within = headerMatch({ name: LENGTH, type: "regex", value: atMost(maxBytes), invert: true });
  return [...announced, within];
}

/** A regular expression of the whole numbers up to this one. */
export function atMost(most: number): string {
  const digits = BigInt(most).toString();
  const same = Array.from(digits, (digit, at) => {
    const rest = digits.length - at - 1;
    return digit === "0" ? [] : [`${digits.slice(0, at)}[0-${Number(digit) - 1}][0-9]{${rest}}`];
  }).flat();
  const shorter = digits.length === 1 ? [] : [`[0-9]{1,${digits.length - 1}}`];
  return `0*(?:${[...shorter, ...same, digits].join("|")})`;
}
