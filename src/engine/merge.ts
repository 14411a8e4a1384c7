/**
 * The merge: who holds which port and hostname of a Gateway.
 *
 * Distinctness (seed 002, "Distinct Listeners"): on one port, HTTP listeners are told apart by hostname, and so are HTTPS and TLS ones among each other (both are
 * chosen by SNI); TCP and UDP listeners are not told apart by anything. Protocols that read a connection's first bytes differently
 * (HTTP, TLS, TCP) cannot share a port. UDP ports are a space of their own.
 *
 * Conflicts (seed 000, "Listener and ListenerSet Conflicts"; seed 002, "Handling indistinct Listeners"):
 *   within one owner    all indistinct listeners are conflicted, none wins;
 *   across owners       the first in precedence holds, the others are conflicted;
 *   and only a listener that is itself servable and unconflicted holds anything: a refused one reserves nothing, so when a
 *   holder goes away or breaks, the next in line holds in the same step.
 */
import type { Key } from "../api/key.ts";
import type { Source } from "../graph/collection.ts";
import type { Graph } from "../graph/graph.ts";
import type { Index } from "../graph/index-collection.ts";
import type { Lookup } from "../graph/lookup.ts";
import type { Finding } from "./findings.ts";
import {
  type EvaluatedListener,
  isServable,
  type ListenerKey,
  portProtocolOf,
  transportOf,
} from "./listeners.ts";
import type { EngineSettings } from "./settings.ts";

export interface MergedListener extends EvaluatedListener {
  /** Reason HostnameConflict or ProtocolConflict. The message names nobody. */
  readonly conflict?: Finding;
  /** Who holds what this one wanted. For the Gateway's owner only, never for a message to the tenant. */
  readonly heldBy?: ListenerKey;
  /** Beyond the Gateway's limit (reason TooManyListeners). */
  readonly excess?: Finding;
}

/** Serving means holding its port and hostname. */
export function isServing(listener: MergedListener): boolean {
  return isServable(listener) && listener.conflict === undefined && listener.excess === undefined;
}

export function deriveMerge(
  graph: Graph,
  listeners: Source<EvaluatedListener>,
  settings: EngineSettings,
): Source<MergedListener> {
  const ofOwner = graph.index("listeners of owner and port", listeners, (_key, listener) =>
    listener.protocol === undefined
      ? []
      : [{ at: `${listener.owner.key}|${portOf(listener)}`, sort: listener.rank }],
  );
  const ofGateway = graph.index("listeners of gateway", listeners, (_key, { gateway, rank }) => [
    { at: gateway, sort: rank },
  ]);
  const selfConflicts = graph.derive("self conflicts", listeners, (_key, listener, lookup) =>
    conflictWithin(listener, lookup, ofOwner),
  );
  const contenders = graph.derive("contenders", listeners, (key, listener, lookup) => {
    if (!isServable(listener) || lookup.get(selfConflicts, key) !== undefined) return undefined;
    return isExcess(listener, lookup, ofGateway, settings) ? undefined : listener;
  });
  const byPort = graph.index("contenders by port", contenders, (_key, listener) => [
    { at: portOf(listener), sort: listener.rank },
  ]);
  const byName = graph.index("contenders by hostname", contenders, (_key, listener) => [
    { at: nameOf(listener), sort: listener.rank },
  ]);

  return graph.derive("merged listeners", listeners, (key, listener, lookup) => {
    const within = lookup.get(selfConflicts, key);
    if (within !== undefined) return { ...listener, conflict: within };
    if (!isServable(listener)) return listener;
    if (isExcess(listener, lookup, ofGateway, settings)) return { ...listener, excess: tooMany(settings) };
    const portHolder = lookup.first(byPort, portOf(listener))?.value;
    if (portHolder !== undefined && readsDifferently(portHolder, listener)) {
      return { ...listener, conflict: PROTOCOL_HELD, heldBy: portHolder.key };
    }
    const nameHolder = lookup.first(byName, nameOf(listener))?.value;
    if (nameHolder !== undefined && nameHolder.key !== key) {
      return { ...listener, conflict: hostnameHeld(listener), heldBy: nameHolder.key };
    }
    return listener;
  });
}

const PROTOCOL_HELD: Finding = {
  reason: "ProtocolConflict",
  message: "another listener of the Gateway already uses this port with a protocol that cannot share it",
};

function hostnameHeld({ hostname, port }: EvaluatedListener): Finding {
  const what = hostname === "" ? "all hostnames" : `hostname ${hostname}`;
  return {
    reason: "HostnameConflict",
    message: `${what} on port ${port} is already held by another listener of the Gateway that takes precedence`,
  };
}

/** Listeners of one owner: the author sees all of them, so the message may name them. */
function conflictWithin(
  listener: EvaluatedListener,
  lookup: Lookup,
  ofOwner: Index<EvaluatedListener>,
): Finding | undefined {
  if (listener.protocol === undefined) return undefined;
  const neighbours = lookup.get(ofOwner, `${listener.owner.key}|${portOf(listener)}`) ?? [];
  const others = neighbours.map(({ value }) => value).filter(({ key }) => key !== listener.key);
  const names = (found: readonly EvaluatedListener[]): string =>
    found.map(({ section }) => section).join(", ");
  const protocols = others.filter((other) => readsDifferently(other, listener));
  if (protocols.length > 0) {
    return {
      reason: "ProtocolConflict",
      message: `port ${listener.port} is also used by listener ${names(protocols)} of this resource with a protocol that cannot share it`,
    };
  }
  const twins = others.filter((other) => nameOf(other) === nameOf(listener));
  if (twins.length === 0) return undefined;
  return {
    reason: "HostnameConflict",
    message: `port and hostname are the same as those of listener ${names(twins)} of this resource`,
  };
}

function isExcess(
  listener: EvaluatedListener,
  lookup: Lookup,
  ofGateway: Index<EvaluatedListener>,
  { maxListenersPerGateway: limit }: EngineSettings,
): boolean {
  if (limit === 0 || lookup.count(ofGateway, listener.gateway) <= limit) return false;
  const entries = lookup.get(ofGateway, listener.gateway) ?? [];
  return listener.rank >= (entries[limit]?.sort ?? "\uffff");
}

function tooMany({ maxListenersPerGateway: limit }: EngineSettings): Finding {
  return { reason: "TooManyListeners", message: `the Gateway serves at most ${limit} listeners` };
}

/** Never called without a protocol: such listeners are refused before they meet their neighbours. */
function protocolOf(listener: EvaluatedListener): NonNullable<EvaluatedListener["protocol"]> {
  return listener.protocol ?? "TCP";
}

function readsDifferently(a: EvaluatedListener, b: EvaluatedListener): boolean {
  return portProtocolOf(protocolOf(a)) !== portProtocolOf(protocolOf(b));
}

export function portOf(listener: EvaluatedListener): string {
  return portKey(listener.gateway, transportOf(protocolOf(listener)), listener.port);
}

export function portKey(gateway: Key, transport: string, port: number): string {
  return `${gateway}|${transport}|${port}`;
}

function nameOf(listener: EvaluatedListener): string {
  return `${portOf(listener)}|${portProtocolOf(protocolOf(listener))}|${listener.hostname}`;
}
