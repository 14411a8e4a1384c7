/**
 * What may surprise the owners of listeners and routes that share a port, for `mergeway check`.
 * Only what is certain is reported, and the cost is near-linear: whatever covers something is found
 * by hash, never by comparing all pairs.
 *
 * - shadowed: a rule that nothing reaches, since an earlier rule of its host takes everything it
 *   matches;
 * - unreachable: a host that nothing reaches, since a more specific listener of the port takes all
 *   of its names (isolation);
 * - the rest is information: a listener, host or rule that takes a part of what another owner's
 *   would take.
 */

import type { HostItem, ItemId, ListenerItem } from "../../plan/plan.ts";
import { PatternIndex } from "../pattern-index.ts";
import type { RoutingTable } from "../routing-table.ts";
import { overlapsWithin, type PartlyTakenRule, type ShadowedRule } from "./shadow.ts";

export interface OverlapReport {
  readonly shadowed: readonly (ShadowedRule & { readonly listener: ListenerItem })[];
  readonly unreachable: readonly UnreachableHost[];
  readonly listeners: readonly ListenerOverlap[];
  readonly hosts: readonly HostOverlap[];
  readonly rules: readonly (PartlyTakenRule & { readonly listener: ListenerItem })[];
}

interface UnreachableHost {
  readonly listener: ListenerItem;
  readonly host: HostItem;
  /** Takes every name of the host. */
  readonly by: ListenerItem;
}

/** Two owners on one port: `by` takes the names of its pattern out of the wider one's. */
export interface ListenerOverlap {
  readonly listener: ListenerItem;
  readonly by: ListenerItem;
}

/**
 * Routes of different namespaces at one listener: those of `by` are asked first for the names of
 * its pattern.
 */
interface HostOverlap {
  readonly listener: ListenerItem;
  readonly host: HostItem;
  readonly by: HostItem;
}

/** Everything that one port's listeners, hosts and rules do to each other. */
export function overlapsAt(table: RoutingTable, port: ItemId): OverlapReport {
  const listeners = [...table.listenersOf(port)];
  const byName = indexOf(listeners);
  const https = indexOf(listeners.filter(({ protocol }) => protocol === "HTTPS"));
  const report = {
    shadowed: [] as (ShadowedRule & { listener: ListenerItem })[],
    unreachable: [] as UnreachableHost[],
    listeners: listenerOverlaps(listeners, byName),
    hosts: [] as HostOverlap[],
    rules: [] as (PartlyTakenRule & { listener: ListenerItem })[],
  };
  for (const listener of listeners) {
    const hosts = [...table.hostsOf(listener.id)];
    // An authority is compared with HTTPS listeners alone, so a TLS one beside them takes nothing
    // for certain.
    const competing = listener.protocol === "HTTPS" ? https : byName;
    for (const each of unreachableHosts(listener, hosts, competing)) report.unreachable.push(each);
    for (const each of hostOverlaps(listener, hosts)) report.hosts.push(each);
    for (const host of hosts) {
      const { shadowed, partlyTaken } = overlapsWithin(host);
      for (const each of shadowed) report.shadowed.push({ listener, ...each });
      for (const each of partlyTaken) report.rules.push({ listener, ...each });
    }
  }
  return report;
}

function listenerOverlaps(
  listeners: readonly ListenerItem[],
  byName: PatternIndex<ListenerItem>,
): ListenerOverlap[] {
  return listeners.flatMap((by) => {
    const listener = byName.wider(by.hostname);
    return listener === undefined || sameOwner(listener, by) ? [] : [{ listener, by }];
  });
}

/**
 * The most specific listener that covers the whole pattern is the one that gets its names, or gives
 * some to narrower ones.
 */
function unreachableHosts(
  listener: ListenerItem,
  hosts: readonly HostItem[],
  competing: PatternIndex<ListenerItem>,
): UnreachableHost[] {
  return hosts.flatMap((host) => {
    const by = competing.at(host.hostname) ?? competing.wider(host.hostname);
    return by === undefined || by.id === listener.id ? [] : [{ listener, host, by }];
  });
}

function hostOverlaps(listener: ListenerItem, hosts: readonly HostItem[]): HostOverlap[] {
  const index = indexOf(hosts);
  // Once per host: a wide one with many rules may lie under many narrow ones.
  const namespaces = new Map(hosts.map((host) => [host, soleNamespace(host)]));
  return hosts.flatMap((by) => {
    const host = index.wider(by.hostname);
    if (host === undefined || host.rules.length === 0 || by.rules.length === 0) return [];
    const namespace = namespaces.get(host);
    return namespace !== undefined && namespace === namespaces.get(by) ? [] : [{ listener, host, by }];
  });
}

function soleNamespace({ rules }: HostItem): string | undefined {
  const first = rules[0]?.origin.namespace;
  return rules.every(({ origin }) => origin.namespace === first) ? first : undefined;
}

function indexOf<T extends { readonly id: ItemId; readonly hostname: string }>(
  items: readonly T[],
): PatternIndex<T> {
  const index = new PatternIndex<T>();
  for (const item of items) index.add(item);
  return index;
}

function sameOwner({ owner: a }: ListenerItem, { owner: b }: ListenerItem): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name;
}
