import type { Filters } from "../../../plan/rule.ts";
import type { HeaderFields } from "./header-fields.ts";
import { removeHopByHop } from "./hop-by-hop.ts";

/**
 * The header of an interim answer as the client may have it. Filters of the route are about the
 * answer itself: nothing is added here, but what they set or remove there must not get out before.
 * It says no length (RFC 9110, 8.6).
 */
export function cleanInterim(headers: HeaderFields, filters: readonly Filters[]): void {
  removeHopByHop(headers);
  headers.remove("content-length");
  for (const { responseHeaders = [], cors } of filters) {
    for (const { op, name } of responseHeaders) if (op !== "add") headers.remove(name);
    if (cors !== undefined) headers.removeAll((name) => name.startsWith("access-control-"));
  }
}
