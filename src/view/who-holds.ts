/** Who has a hostname: per port its holder, everybody else who asks for it, and wider patterns. */
import { compareSpecificity, coversPattern } from "../plan/hostname.ts";
import type { ListenerView, MergedState, ObjectRef, OwnerView, RouteView } from "./merged-state.ts";

export interface HostnameHolders {
  readonly gateway: ObjectRef;
  readonly port: number;
  readonly protocol: string;
  /** Whose rules a request for the name meets; absent: nobody's, it is answered with 404. */
  readonly holder?: HostnameClaim;
  /** Listeners with the same hostname pattern as was asked for, that are not served. */
  readonly refused: readonly HostnameClaim[];
  /** Served listeners with wider patterns: the next in line if the holder goes. */
  readonly wider: readonly HostnameClaim[];
}

export interface HostnameClaim {
  readonly owner: Pick<OwnerView, "kind" | "namespace" | "name" | "createdAt" | "precedence">;
  readonly listener: Pick<
    ListenerView,
    "section" | "hostname" | "state" | "reason" | "message" | "decidedBy"
  >;
  /** Routes of the listener that serve the name. */
  readonly routes: readonly ObjectRef[];
}

/** `hostname`: a name or a wildcard, in lower case. */
export function whoHolds({ gateways }: MergedState, hostname: string): readonly HostnameHolders[] {
  return gateways.flatMap((gateway) => {
    const { kind, namespace, name } = gateway;
    const claims = gateway.owners
      .flatMap((owner) => owner.listeners.map((listener) => ({ owner, listener })))
      .filter(({ listener }) => isNamed(listener) && coversPattern(listener.hostname, hostname));
    const ports = Map.groupBy(claims, ({ listener }) => listener.port);
    return [...ports]
      .sort(([a], [b]) => a - b)
      .map(([port, ofPort]) => holdersAt({ gateway: { kind, namespace, name }, port, hostname }, ofPort));
  });
}

interface Claim {
  readonly owner: OwnerView;
  readonly listener: ListenerView;
}

function holdersAt(
  { gateway, port, hostname }: Pick<HostnameHolders, "gateway" | "port"> & { readonly hostname: string },
  claims: readonly Claim[],
): HostnameHolders {
  const shown = (claim: Claim): HostnameClaim => claimOf(claim, hostname);
  const served = claims
    .filter(({ listener: { state } }) => state !== "conflicted" && state !== "refused")
    .toSorted((a, b) => compareSpecificity(a.listener.hostname, b.listener.hostname));
  const [holder, ...wider] = served;
  return {
    gateway,
    port,
    protocol: (holder ?? claims[0])?.listener.protocol ?? "",
    ...(holder === undefined ? {} : { holder: shown(holder) }),
    refused: claims
      .filter((claim) => !served.includes(claim) && claim.listener.hostname === hostname)
      .map(shown),
    wider: wider.map(shown),
  };
}

function claimOf({ owner, listener }: Claim, hostname: string): HostnameClaim {
  const { kind, namespace, name, createdAt, precedence } = owner;
  const { section, hostname: pattern, state, reason, message, decidedBy } = listener;
  return {
    owner: { kind, namespace, name, precedence, ...(createdAt === undefined ? {} : { createdAt }) },
    listener: {
      section,
      hostname: pattern,
      state,
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
      ...(decidedBy === undefined ? {} : { decidedBy }),
    },
    routes: listener.routes.filter((route) => serves(route, hostname)).map(refOfRoute),
  };
}

function serves({ hostnames }: RouteView, hostname: string): boolean {
  return hostnames.some((pattern) => coversPattern(pattern, hostname));
}

function refOfRoute({ kind, namespace, name }: RouteView): ObjectRef {
  return { kind, namespace, name };
}

function isNamed({ protocol }: ListenerView): boolean {
  return protocol === "HTTP" || protocol === "HTTPS" || protocol === "TLS";
}
