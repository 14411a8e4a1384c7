import type { TunnelState } from "./cloudflare/tunnel-link.ts";

/** What a Gateway's owner reads of its tunnel. */
export interface TunnelFact {
  readonly addresses: readonly { readonly type: "Hostname"; readonly value: string }[];
  readonly problem?: { readonly reason: "Invalid" | "Pending"; readonly message: string };
}

/** Reasons that need somebody to act; the others are transient. */
const NEEDS_HELP: ReadonlySet<string> = new Set([
  "InvalidCredentials",
  "TunnelNotFound",
  "TunnelInUse",
  "ForeignConfiguration",
  "ApiRefused",
  "ConnectorMissing",
  "NameTaken",
]);

/**
 * The address stays while connectors come and go: records of it must not flap. A problem counts
 * when nothing is connected.
 */
export function tunnelFact(state: TunnelState | undefined): TunnelFact {
  const addresses = state?.address === undefined ? [] : [{ type: "Hostname", value: state.address } as const];
  if (state?.problem === undefined || state.connections > 0) return { addresses };
  const reason = NEEDS_HELP.has(state.problem.reason) ? "Invalid" : "Pending";
  return { addresses, problem: { reason, message: state.problem.message } };
}
