/**
 * The merge: who holds which port and hostname of a Gateway.
 *
 * Distinctness (Gateway.spec.listeners, Distinct Listeners): on one port, HTTP listeners are told
 * apart by hostname, and so are HTTPS and TLS ones among each other (both are chosen by SNI); TCP
 * and UDP listeners are not told apart by anything. Protocols that read a connection's first bytes
 * differently (HTTP, TLS, TCP) cannot share a port. UDP ports are a space of their own.
 *
 * Conflicts (GEP-1713, Listener and ListenerSet Conflicts; Gateway.spec.listeners, Handling
 * indistinct Listeners). Owners are taken in the order of precedence. Of an owner's listeners on a
 * port:
 *
 * 1. Those that meet what an earlier owner holds are conflicted: the port in another protocol, or
 *    the hostname.
 * 2. Those of the rest that are indistinct among each other are all conflicted; none wins.
 * 3. What is left holds its port and hostname, if it is servable. A refused or conflicted listener
 *    holds nothing, so when a holder goes away or breaks, the next in line holds in the same step.
 *
 * A listener that has given its hostname up to another one (`transfers.ts`) holds it no more.
 *
 * The code does not walk the owners in that order. The protocol of a port is that of the first
 * owner that would hold something on an empty port (its claim), because every owner before that one
 * holds nothing.
 */
import type { Key } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Entries } from "../../graph/sorted-entries.ts";
import type { PortProtocol } from "../../plan/plan.ts";
import type { Rank } from "../foundation/precedence.ts";
import type { EngineSettings } from "../foundation/settings.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";
import type { ListenerQuota } from "./listener-quota.ts";
import {
  type EvaluatedListener,
  isServable,
  type ListenerKey,
  portProtocolOf,
  transportOf,
} from "./listeners.ts";
import { deriveTransfers } from "./transfers.ts";

export interface MergedListener extends EvaluatedListener {
  /** Reason HostnameConflict or ProtocolConflict. The message names nobody. */
  readonly conflict?: Failure;
  /**
   * Who holds what this one wanted. For the Gateway's owner only, never for a message to the
   * tenant.
   */
  readonly heldBy?: ListenerKey;
  /** Beyond the Gateway's limit (reason TooManyListeners). */
  readonly excess?: Failure;
}

/** Serving means holding its port and hostname. */
export function isServing(listener: MergedListener): boolean {
  return isServable(listener) && listener.conflict === undefined && listener.excess === undefined;
}

/** What an owner would hold on a port if nobody else were there. */
interface Claim {
  readonly port: string;
  readonly rank: Rank;
  readonly reading: PortProtocol;
}

/**
 * The state of a listener before hostnames of other owners are compared; absent when it cannot hold
 * anything.
 */
type Contention =
  | { readonly state: "contends" | "excess" | "port lost" }
  | { readonly state: "indistinct"; readonly conflict: Failure };

const CONTENDS: Contention = { state: "contends" };
const EXCESS: Contention = { state: "excess" };
const PORT_LOST: Contention = { state: "port lost" };

export function deriveMerge(
  graph: Graph,
  listeners: ReadonlyCollection<EvaluatedListener>,
  { quota: listenerQuota, tenancy }: { readonly quota: ListenerQuota; readonly tenancy: Tenancy },
  settings: EngineSettings,
): ReadonlyCollection<MergedListener> {
  const quotaOf = listenerQuota.excessOf;
  const isBeyondLimit = deriveLimit(graph, listeners, quotaOf, settings);
  const isExcess: typeof isBeyondLimit = (listener, lookup) =>
    isBeyondLimit(listener, lookup) || quotaOf(listener, lookup)?.isEnforced === true;
  const ofOwner = graph.index("listeners of owner and port", listeners, (_key, listener) =>
    listener.protocol === undefined ? [] : [{ at: ownerPort(listener), sort: listener.rank }],
  );
  const claims = graph.index(
    "claims by port",
    graph.derive<Entries<{ readonly value: EvaluatedListener }>, Claim>(
      "claims",
      ofOwner,
      (_key, entries, lookup) =>
        claimOf(
          Array.from(entries, ({ value }) => value),
          (listener) => isExcess(listener, lookup),
        ),
    ),
    (_key, { port, rank }) => [{ at: port, sort: rank }],
  );
  // Derived apart from the claims: when a port changes hands within one protocol, nothing else is
  // recomputed.
  const readings = graph.derive<Entries<{ readonly value: Claim }>, PortProtocol>(
    "protocols of ports",
    claims,
    (_key, entries) => entries.at(0)?.value.reading,
  );
  const contentions = graph.derive<EvaluatedListener, Contention>(
    "contentions",
    listeners,
    (_key, listener, lookup) => {
      if (listener.protocol === undefined) return undefined;
      const neighbours = lookup.all(ofOwner, ownerPort(listener));
      const reading = lookup.get(readings, portOf(listener));
      const mixed = neighbours.filter((other) => readsDifferently(other, listener));
      const isLost = (): boolean => isClaimedBefore(listener, lookup, claims);
      if (mixed.length > 0 && !isLost()) return mixedWith(listener, mixed);
      if (reading !== undefined && reading !== readingOf(listener) && isLost()) {
        return isServable(listener) ? PORT_LOST : undefined;
      }
      const twins = twinsOf(listener, neighbours);
      if (twins.length > 0) return sameAs(twins);
      if (!isServable(listener)) return undefined;
      return isExcess(listener, lookup) ? EXCESS : CONTENDS;
    },
  );
  const able = graph.derive("able listeners", listeners, (key, listener, lookup) =>
    lookup.get(contentions, key)?.state === "contends" ? listener : undefined,
  );
  const { contenders, hasGivenUp } = deriveTransfers(graph, able, tenancy, nameOf);
  const byPort = graph.index("contenders by port", contenders, (_key, listener) => [
    { at: portOf(listener), sort: listener.rank },
  ]);
  const byName = graph.index("contenders by hostname", contenders, (_key, listener) => [
    { at: nameOf(listener), sort: listener.rank },
  ]);
  const referenceTo = ({ gateway, hostname }: EvaluatedListener, lookup: Lookup): string | undefined =>
    lookup.get(tenancy.holds, gateway) && settings.referenceOf?.(gateway, hostname);

  return graph.derive<EvaluatedListener, MergedListener>(
    "merged listeners",
    listeners,
    (key, evaluated, lookup) => {
      const contention = lookup.get(contentions, key);
      const quota = quotaOf(evaluated, lookup);
      const listener = quota?.isEnforced === false ? { violation: quota.problem, ...evaluated } : evaluated;
      switch (contention?.state) {
        case undefined:
          return listener;
        case "indistinct":
          return { ...listener, conflict: contention.conflict };
        case "excess":
          return { ...listener, ...excessOf(quota?.isEnforced ? quota.problem : undefined, settings) };
        case "port lost": {
          const holder = lookup.first(byPort, portOf(listener))?.key;
          return {
            ...listener,
            conflict: withReference(PROTOCOL_HELD, referenceTo(listener, lookup)),
            ...(holder === undefined ? {} : { heldBy: holder }),
          };
        }
        default: {
          const holder = lookup.first(byName, nameOf(listener))?.key;
          if (holder === undefined || holder === key) return listener;
          const held = hasGivenUp(listener, lookup) ? hostnameGivenUp(listener) : hostnameHeld(listener);
          return {
            ...listener,
            conflict: withReference(held, referenceTo(listener, lookup)),
            heldBy: holder,
          };
        }
      }
    },
  );
}

const PROTOCOL_HELD: Failure = {
  reason: "ProtocolConflict",
  message: "another listener of the Gateway already uses this port with a protocol that cannot share it",
};

function hostnameHeld(listener: EvaluatedListener): Failure {
  const message = `${shownName(listener)} is already held by another listener of the Gateway that takes precedence`;
  return { reason: "HostnameConflict", message };
}

function hostnameGivenUp(listener: EvaluatedListener): Failure {
  const message = `${shownName(listener)} was given to another listener by the Gateway's owner`;
  return { reason: "HostnameConflict", message };
}

function shownName({ hostname, port }: EvaluatedListener): string {
  return hostname === "" ? `port ${port} without a hostname` : `hostname ${hostname} on port ${port}`;
}

/** The Gateway's owner knows by the reference what the message must not say. */
function withReference(failure: Failure, reference: string | undefined): Failure {
  if (reference === undefined) return failure;
  return { ...failure, message: `${failure.message} (reference ${reference})` };
}

function claimOf(
  ofOwner: readonly EvaluatedListener[],
  isExcess: (listener: EvaluatedListener) => boolean,
): Claim | undefined {
  const first = ofOwner[0];
  if (first === undefined || ofOwner.some((other) => readsDifferently(other, first))) return undefined;
  const holds = ofOwner.some(
    (listener) => isServable(listener) && twinsOf(listener, ofOwner).length === 0 && !isExcess(listener),
  );
  return holds ? { port: portOf(first), rank: first.rank, reading: readingOf(first) } : undefined;
}

/** Whether an owner of higher precedence decides the port's protocol. */
function isClaimedBefore(listener: EvaluatedListener, lookup: Lookup, claims: Index<Claim>): boolean {
  const claim = lookup.first(claims, portOf(listener))?.value;
  return claim !== undefined && claim.rank < listener.rank;
}

// Listeners of one owner: its author sees all of them, so the messages may name them.

function mixedWith({ port }: EvaluatedListener, others: readonly EvaluatedListener[]): Contention {
  const message = `port ${port} is also used by listener ${sections(others)} of this resource with a protocol that cannot share it`;
  return { state: "indistinct", conflict: { reason: "ProtocolConflict", message } };
}

function sameAs(twins: readonly EvaluatedListener[]): Contention {
  const message = `port and hostname are the same as those of listener ${sections(twins)} of this resource`;
  return { state: "indistinct", conflict: { reason: "HostnameConflict", message } };
}

function sections(listeners: readonly EvaluatedListener[]): string {
  return listeners.map(({ section }) => section).join(", ");
}

function twinsOf(
  listener: EvaluatedListener,
  neighbours: readonly EvaluatedListener[],
): readonly EvaluatedListener[] {
  return neighbours.filter(
    (other) =>
      other.key !== listener.key &&
      other.hostname === listener.hostname &&
      readingOf(other) === readingOf(listener),
  );
}

/**
 * Counts listeners in order of precedence, whatever their state: a limit must not depend on who is
 * valid today. Those that the TenantPolicy refuses do not count: nobody may use up the limit with
 * what is refused to them.
 */
function deriveLimit(
  graph: Graph,
  listeners: ReadonlyCollection<EvaluatedListener>,
  quotaOf: ListenerQuota["excessOf"],
  { maxListenersPerGateway: limit }: EngineSettings,
): (listener: EvaluatedListener, lookup: Lookup) => boolean {
  if (limit === 0) return () => false;
  const counted = graph.derive<EvaluatedListener, EvaluatedListener>(
    "listeners that count",
    listeners,
    (_key, listener, lookup) => {
      const isRefused = listener.violation !== undefined && listener.refused === listener.violation;
      return isRefused || quotaOf(listener, lookup)?.isEnforced === true ? undefined : listener;
    },
  );
  const ofGateway = graph.index("listeners of gateway", counted, (_key, { gateway, rank }) => [
    { at: gateway, sort: rank },
  ]);
  const firstBeyond = graph.derive<Entries<{ readonly sort: Rank }>, Rank>(
    "first listeners beyond the limit",
    ofGateway,
    (_key, entries) => entries.at(limit)?.sort,
  );
  return ({ gateway, rank }, lookup) => {
    const beyond = lookup.get(firstBeyond, gateway);
    return beyond !== undefined && rank >= beyond;
  };
}

/** Who is beyond a quota is against the TenantPolicy, who is beyond the Gateway's limit is not. */
function excessOf(
  quota: Failure | undefined,
  settings: EngineSettings,
): Pick<MergedListener, "excess" | "violation"> {
  return quota === undefined ? { excess: tooMany(settings) } : { excess: quota, violation: quota };
}

function tooMany({ maxListenersPerGateway: limit }: EngineSettings): Failure {
  return { reason: "TooManyListeners", message: `the Gateway serves at most ${limit} listeners` };
}

/**
 * Never called without a protocol: such listeners are refused before they meet their neighbours.
 */
function protocolOf(listener: EvaluatedListener): NonNullable<EvaluatedListener["protocol"]> {
  return listener.protocol ?? "TCP";
}

function readingOf(listener: EvaluatedListener): PortProtocol {
  return portProtocolOf(protocolOf(listener));
}

function readsDifferently(a: EvaluatedListener, b: EvaluatedListener): boolean {
  return readingOf(a) !== readingOf(b);
}

export function portOf(listener: EvaluatedListener): string {
  return portKey(listener.gateway, transportOf(protocolOf(listener)), listener.port);
}

export function portKey(gateway: Key, transport: string, port: number): string {
  return `${gateway}|${transport}|${port}`;
}

function ownerPort(listener: EvaluatedListener): string {
  return `${listener.owner.key}|${portOf(listener)}`;
}

function nameOf(listener: EvaluatedListener): string {
  return `${portOf(listener)}|${readingOf(listener)}|${listener.hostname}`;
}
