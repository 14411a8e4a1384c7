/**
 * The merge as the documents tell it: owner after owner in precedence, each against what is held so
 * far. Slow and plain; the engine must agree.
 */
import { isServable } from "../../src/engine/listeners/listeners.ts";
import type { MergedListener } from "../../src/engine/listeners/merge.ts";

export type Outcome = "serves" | "refused" | "HostnameConflict" | "ProtocolConflict";

export function naiveMerge(listeners: Iterable<MergedListener>): Map<string, Outcome> {
  const outcomes = new Map<string, Outcome>();
  const readings = new Map<string, string>();
  const names = new Set<string>();
  const sorted = [...listeners].sort((a, b) => (a.rank < b.rank ? -1 : 1));
  for (const list of Map.groupBy(sorted, ({ gateway }) => gateway).values()) {
    for (const own of Map.groupBy(list, ({ owner }) => owner.key).values()) {
      for (const group of Map.groupBy(own, portOf).values()) judge(group);
    }
  }
  return outcomes;

  function judge(group: readonly MergedListener[]): void {
    const left: MergedListener[] = [];
    for (const listener of group) {
      const held = readings.get(portOf(listener));
      if (listener.protocol === undefined) outcomes.set(listener.key, "refused");
      else if (held !== undefined && held !== reading(listener)) {
        outcomes.set(listener.key, isServable(listener) ? "ProtocolConflict" : "refused");
      } else left.push(listener);
    }
    const winners: MergedListener[] = [];
    for (const listener of left) {
      const others = left.filter((other) => other !== listener);
      if (others.some((other) => reading(other) !== reading(listener))) {
        outcomes.set(listener.key, "ProtocolConflict");
      } else if (others.some((other) => nameOf(other) === nameOf(listener))) {
        outcomes.set(listener.key, "HostnameConflict");
      } else if (!holds(listener)) outcomes.set(listener.key, "refused");
      else if (names.has(nameOf(listener))) outcomes.set(listener.key, "HostnameConflict");
      else winners.push(listener);
    }
    for (const winner of winners) {
      outcomes.set(winner.key, "serves");
      readings.set(portOf(winner), reading(winner));
      names.add(nameOf(winner));
    }
  }
}

/**
 * Why an attached owner is (not) accepted, from the outcomes of everybody's listeners: the reason
 * where it is not.
 */
export function naiveAcceptance(
  owner: { readonly role: "root" | "set" | "child"; readonly listeners: number; readonly valid: number },
  gateway: { readonly listeners: number; readonly validAnywhere: number },
): "accepted" | "ListenersNotValid" | "ParentNotAccepted" {
  const rejected = gateway.listeners > 0 && gateway.validAnywhere === 0;
  if (owner.role === "root") return rejected ? "ListenersNotValid" : "accepted";
  if (owner.valid > 0) return "accepted";
  if (rejected) return "ParentNotAccepted";
  return owner.role === "child" && owner.listeners === 0 ? "accepted" : "ListenersNotValid";
}

export function outcomeOf(listener: MergedListener): Outcome {
  if (listener.conflict !== undefined) return listener.conflict.reason as Outcome;
  return holds(listener) ? "serves" : "refused";
}

/** Quotas are compared elsewhere (tenancy). */
function holds(listener: MergedListener): boolean {
  return isServable(listener) && listener.excess === undefined;
}

function reading({ protocol }: MergedListener): string {
  return protocol === "HTTPS" || protocol === "TLS" ? "tls" : String(protocol);
}

function portOf({ gateway, protocol, port }: MergedListener): string {
  return `${gateway} ${protocol === "UDP" ? "udp" : "tcp"} ${port}`;
}

function nameOf(listener: MergedListener): string {
  return `${portOf(listener)} ${listener.hostname}`;
}
