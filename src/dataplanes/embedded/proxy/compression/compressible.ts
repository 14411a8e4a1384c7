/**
 * Which answers of backends are compressed, and what their header says then (RFC 9110, 8.4, 8.8.3
 * and 12.5.3). `Vary` stands in all answers that would be compressed for another client.
 */

import type { CompressionAlgorithm, CompressionPolicy } from "../../../../plan/rule.ts";
import { chosenAlgorithm, codingName } from "../../message/content-coding.ts";
import type { HeaderFields } from "../../message/header-fields.ts";

export interface AnswerHead {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly hasBody: boolean;
}

/** Undefined: the answer goes as it is. */
export function compressionOf(
  policy: CompressionPolicy,
  accepted: string | undefined,
  { status, headers, hasBody }: AnswerHead,
): CompressionAlgorithm | undefined {
  if (!isCompressible(policy, status, headers)) return undefined;
  if (!listHas(headers.get("vary"), "accept-encoding")) headers.add("vary", "Accept-Encoding");
  return hasBody ? chosenAlgorithm(accepted, policy.algorithms) : undefined;
}

/** Of an answer that will be compressed. */
export function markCompressed(headers: HeaderFields, algorithm: CompressionAlgorithm): void {
  headers.remove("content-length");
  headers.set("content-encoding", codingName(algorithm));
  const etag = headers.get("etag");
  // The bytes are others, and may be others again the next time.
  if (etag !== undefined && !/^w\//i.test(etag)) headers.set("etag", `W/${etag}`);
}

const PARTIAL_CONTENT = 206;

function isCompressible(policy: CompressionPolicy, status: number, headers: HeaderFields): boolean {
  if (status === PARTIAL_CONTENT || headers.has("content-encoding")) return false;
  const length = headers.get("content-length");
  if (length !== undefined && Number(length) < policy.minBytes) return false;
  const type = headers.get("content-type")?.replace(/;.*/s, "").trim().toLowerCase();
  if (type !== undefined && !policy.contentTypes.includes(type)) return false;
  return !listHas(headers.get("cache-control"), "no-transform");
}

function listHas(list: string | undefined, wanted: string): boolean {
  return list?.split(",").some((each) => each.trim().toLowerCase() === wanted) ?? false;
}
