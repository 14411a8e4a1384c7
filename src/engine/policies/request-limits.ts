/** Limits of requests, as policies write them. */
import type { TrafficSettings } from "../../api/traffic-policy.ts";
import type { RequestBodyCheck } from "../../plan/limits/request-limits.ts";

export interface Unreadable {
  /** Begins with the field, below the one that is read. */
  readonly problem: string;
}

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 1024,
  Mi: 1024 ** 2,
  Gi: 1024 ** 3,
};
const LARGEST_BODY = 1024 ** 4;

export function readRequestBody({
  maxSize,
}: NonNullable<TrafficSettings["requestBody"]>): RequestBodyCheck | Unreadable {
  const maxBytes = bytesOf(String(maxSize));
  if (maxBytes === undefined || maxBytes > LARGEST_BODY)
    return { problem: `maxSize: ${JSON.stringify(maxSize)} is no size up to 1024Gi` };
  return { type: "requestBody", maxBytes };
}

/** Of a whole quantity of Kubernetes, such as `10Mi`. */
function bytesOf(size: string): number | undefined {
  const [, amount, unit = ""] = /^(\d{1,13})([kMG]|[KMG]i)?$/.exec(size) ?? [];
  const factor = UNITS[unit];
  return amount === undefined || factor === undefined ? undefined : Number(amount) * factor;
}
