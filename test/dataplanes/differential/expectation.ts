import { isDeepStrictEqual } from "node:util";
import type { BackendShare, Explanation } from "../../../src/matching/explain/explanation.ts";
import type { Outcome } from "./client.ts";
import { backendName } from "./names.ts";

/**
 * What `explain` leaves possible: one outcome, or one for each backend with a share of the
 * requests.
 */
export function expectedOutcomes(
  explanation: Explanation,
  { grpc, redirectsGrpc }: { readonly grpc: boolean; readonly redirectsGrpc: boolean },
): readonly Outcome[] {
  const { outcome, status, location, backends } = explanation;
  if (outcome === "refuse") return [{ refused: "" }];
  if (location !== undefined)
    return [{ ...(redirectsGrpc ? { status: status ?? 0 } : ownAnswer(status ?? 0, grpc)), location }];
  const shares = backends.filter(({ share }) => share > 0);
  if (shares.length > 0) return shares.map((share) => ofShare(share, grpc));
  return [ownAnswer(status ?? 0, grpc)];
}

/**
 * A redirect to where the client is, with its host as it wrote it: in capitals, or with a port
 * where explain gives none.
 */
export function withHostAsWritten(
  { location = "", status = 0 }: Explanation,
  { authority, grpc }: { readonly authority: string; readonly grpc: boolean },
): readonly Outcome[] {
  const [, written = "", port = ""] = /^(.*?)(:\d+)?$/.exec(authority) ?? [];
  const [, scheme, host = "", wanted, rest] =
    /^(\w+:\/\/)(\[[^\]]*\]|[^/:]+)(:\d+)?(\/.*)$/.exec(location) ?? [];
  if (host === "" || host !== written.toLowerCase().replace(/\.$/, "")) return [];
  return [{ ...ownAnswer(status, grpc), location: `${scheme}${written}${wanted ?? port}${rest}` }];
}

export function fits(expected: readonly Outcome[], actual: Outcome): boolean {
  return expected.some((one) =>
    "refused" in one || "refused" in actual
      ? "refused" in one === "refused" in actual
      : isDeepStrictEqual(one, actual),
  );
}

function ofShare({ namespace, name, status }: BackendShare, grpc: boolean): Outcome {
  if (status !== undefined) return ownAnswer(status, grpc);
  return { status: 200, backend: backendName(namespace ?? "", name ?? "") };
}

/**
 * gRPC clients are told in gRPC's words; the mapping is the protocol's own (HTTP to gRPC status
 * code mapping).
 */
export function ownAnswer(status: number, grpc: boolean): Outcome {
  return grpc ? { status: 200, grpcStatus: GRPC_STATUS.get(status) ?? 2 } : { status };
}

const GRPC_STATUS: ReadonlyMap<number, number> = new Map([
  [400, 13],
  [401, 16],
  [403, 7],
  [404, 12],
  [429, 14],
  [502, 14],
  [503, 14],
  [504, 14],
]);
