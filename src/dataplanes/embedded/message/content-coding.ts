/**
 * Which content coding a client gets (RFC 9110, 12.5.3). The one it likes best is taken. Of those
 * that it likes equally, it is the first one that the policy offers, or else the first one that
 * the client names. Envoy's compressors decide in the same way, also where a client writes what the
 * RFC does not know: an element with an unreadable weight is passed over, names are as they are
 * registered.
 */

import type { CompressionAlgorithm } from "../../../plan/rule.ts";

const CODINGS: Readonly<Record<CompressionAlgorithm, string>> = { brotli: "br", gzip: "gzip", zstd: "zstd" };
const IDENTITY = "identity";
const ANY = "*";
const WEIGHT = /^[+-]?(?:\d+\.?\d*|\.\d+)$/;

/** As `Content-Encoding` names it. */
export function codingName(algorithm: CompressionAlgorithm): string {
  return CODINGS[algorithm];
}

/** Undefined: the answer goes as it is. */
export function chosenAlgorithm(
  accepted: string | undefined,
  offered: readonly CompressionAlgorithm[],
): CompressionAlgorithm | undefined {
  if (accepted === undefined) return undefined;
  const elements = accepted.split(",").flatMap((text) => elementOf(text) ?? []);
  const refused = new Set(elements.flatMap(({ name, weight }) => (weight === 0 ? [name] : [])));
  const allowed = offered.filter((each) => !refused.has(CODINGS[each]));
  const preferred = offered[0] === undefined ? undefined : CODINGS[offered[0]];
  const names = new Set([IDENTITY, ANY, ...allowed.map(codingName)]);
  let best: Element = { name: IDENTITY, weight: 0 };
  for (const each of elements) {
    if (!names.has(each.name)) continue;
    const isLikedAsWell = each.weight > 0 && each.weight === best.weight && each.name === preferred;
    if (each.weight > best.weight || isLikedAsWell) best = each;
  }
  return best.name === ANY ? allowed[0] : allowed.find((each) => CODINGS[each] === best.name);
}

interface Element {
  readonly name: string;
  readonly weight: number;
}

/** Undefined: nothing stands there, or its weight cannot be read. */
function elementOf(text: string): Element | undefined {
  const [first = "", ...rest] = text.split(";");
  const name = first.trim();
  const parameters = rest.join(";");
  const equals = parameters.indexOf("=");
  if (name === "") return undefined;
  if (equals < 0 || parameters.slice(0, equals).trim().toLowerCase() !== "q") return { name, weight: 1 };
  const value = parameters.slice(equals + 1).trim();
  return WEIGHT.test(value) ? { name, weight: Number(value) } : undefined;
}
