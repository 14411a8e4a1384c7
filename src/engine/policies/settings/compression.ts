/**
 * `compression` of a TrafficPolicy: answers of backends are compressed on their way to clients that
 * can read it (RFC 9110, 12.5.3). It is one unit. Routes say nothing of it, so the nearest default
 * holds; of several overrides the farthest one, as two lists of types or algorithms may have
 * nothing in common. `enabled: false` takes the place of what others ask for.
 */
import type { TrafficSettings } from "../../../api/traffic-policy.ts";
import type { CompressionAlgorithm, CompressionPolicy, ForwardAction } from "../../../plan/rule.ts";

export interface CompressionSetting {
  readonly type: "compression";
  /** Undefined: nothing is compressed. */
  readonly policy: CompressionPolicy | undefined;
}

const ALGORITHMS: readonly CompressionAlgorithm[] = ["brotli", "gzip", "zstd"];
const DEFAULT_MIN_BYTES = 1024;
/** Of one answer; also far below what Envoy takes for a length. */
const MOST_MIN_BYTES = 1_073_741_824;
const MOST_TYPES = 64;
/** What shrinks to a part of its length. Not events, which are small and urgent. */
export const USUAL_TYPES: readonly string[] = [
  "application/atom+xml",
  "application/javascript",
  "application/json",
  "application/manifest+json",
  "application/rss+xml",
  "application/wasm",
  "application/xhtml+xml",
  "application/xml",
  "image/svg+xml",
  "text/css",
  "text/html",
  "text/javascript",
  "text/plain",
  "text/xml",
];
/** A media type without parameters (RFC 9110, 8.3.1). */
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]{1,64}\/[a-z0-9!#$&^_.+-]{1,64}$/;
/** gRPC compresses its messages one by one, and its framing must stay readable. */
const GRPC = /^application\/grpc/;

export function readCompression(
  written: NonNullable<TrafficSettings["compression"]>,
): CompressionSetting | { readonly problem: string } {
  const { enabled = true, algorithms = ALGORITHMS, minBytes = DEFAULT_MIN_BYTES } = written;
  const { contentTypes = USUAL_TYPES } = written;
  const unknown = algorithms.find((each) => !isAlgorithm(each));
  if (unknown !== undefined)
    return { problem: `algorithms: ${JSON.stringify(unknown)} is not one of ${ALGORITHMS.join(", ")}` };
  if (algorithms.length === 0) return { problem: "algorithms: the list is empty" };
  if (!Number.isInteger(minBytes) || minBytes < 0 || minBytes > MOST_MIN_BYTES)
    return { problem: `minBytes: ${minBytes} is not between 0 and ${MOST_MIN_BYTES}` };
  if (contentTypes.length === 0 || contentTypes.length > MOST_TYPES)
    return { problem: `contentTypes: ${contentTypes.length} is not between 1 and ${MOST_TYPES}` };
  const noType = contentTypes.find((each) => !MEDIA_TYPE.test(each));
  if (noType !== undefined)
    return { problem: `contentTypes: ${JSON.stringify(noType)} is no media type without parameters` };
  if (contentTypes.some((each) => GRPC.test(each)))
    return { problem: "contentTypes: gRPC compresses its messages itself" };
  const policy = {
    algorithms: [...new Set(algorithms.filter(isAlgorithm))],
    minBytes,
    contentTypes: [...new Set(contentTypes)],
  };
  return { type: "compression", policy: enabled ? policy : undefined };
}

function isAlgorithm(name: string): name is CompressionAlgorithm {
  return (ALGORITHMS as readonly string[]).includes(name);
}

/** Called for what holds, the one that decides last. */
export function withCompression(action: ForwardAction, { policy }: CompressionSetting): ForwardAction {
  const { compression: _nearer, ...rest } = action;
  return policy === undefined ? rest : { ...rest, compression: policy };
}
