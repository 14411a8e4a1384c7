/**
 * What of a client's header fields counts. The same fields are routed on and passed on, so whatever
 * ends at this proxy is taken out before any rule looks at them: fields of this connection (RFC
 * 9110, 7.6.1) with those that `Connection` names, as Envoy does, and what only this proxy or a
 * trusted one in front may say.
 */

import { forgedFieldPattern } from "../../forged-fields.ts";
import type { HeaderFields } from "./header-fields.ts";
import { hopByHop, removeNamed } from "./hop-by-hop.ts";

const KNOWN_NAMES = 1024;
const LONGEST_KNOWN_NAME = 64;

/** A copy without what ends here. */
export function cleanFields(headers: HeaderFields, behindProxy: boolean): HeaderFields {
  const clean = headers.without(behindProxy ? endsBehindProxies : endsHere);
  removeNamed(clean, headers.get("connection"));
  return clean;
}

/** What a client forges ends here wherever it stands, also behind a body. */
export const isForged: (name: string) => boolean = remembered(forgedTest(false));

const endsHere = remembered(ends(forgedTest(false)));
const endsBehindProxies = remembered(ends(forgedTest(true)));

function forgedTest(trustsFront: boolean): (name: string) => boolean {
  const pattern = new RegExp(forgedFieldPattern(trustsFront));
  return (name) => pattern.test(name);
}

function ends(forged: (name: string) => boolean): (name: string) => boolean {
  return (name) => hopByHop.has(name) || name === "expect" || forged(name);
}

/** Requests repeat the same few names: seeing one again is a lookup. */
function remembered(test: (name: string) => boolean): (name: string) => boolean {
  const known = new Map<string, boolean>();
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const verdict = test(name);
    if (known.size >= KNOWN_NAMES) known.clear();
    // A copy: a slice would keep the whole head that it was cut from.
    if (name.length <= LONGEST_KNOWN_NAME) known.set(Buffer.from(name, "latin1").toString("latin1"), verdict);
    return verdict;
  };
}
