/**
 * Every candidate that lost, and why: beside each decision of the routing table, never instead of
 * it.
 */

import { compareSpecificity, matchesName } from "../../plan/hostname.ts";
import type { HostItem, ListenerItem } from "../../plan/plan.ts";
import type { Rule } from "../../plan/rule.ts";
import { whyBefore } from "../precedence.ts";
import type { RequestFacts } from "../request.ts";
import type { RoutingTable } from "../routing-table.ts";
import type { CandidateListener, Elimination } from "./explanation.ts";
import { mismatchOf, shown } from "./mismatch.ts";

export function candidateOf(listener: ListenerItem): CandidateListener {
  return { ...listener.owner, section: listener.section, hostname: listener.hostname };
}

/** Listeners that the name did not choose; an undefined name is a handshake without SNI. */
export function losingListeners(
  listeners: Iterable<ListenerItem>,
  winner: ListenerItem | undefined,
  name: string | undefined,
): Elimination[] {
  return [...listeners]
    .filter((listener) => listener.id !== winner?.id)
    .sort((a, b) => compareSpecificity(a.hostname, b.hostname) || (a.id < b.id ? -1 : 1))
    .map((listener): Elimination => {
      const ref = candidateOf(listener);
      if (winner === undefined || !isFor(listener.hostname, name)) {
        const asked = name === undefined ? "a client that names no host" : shown(name);
        return {
          listener: ref,
          rule: "hostname",
          reason: `hostname ${pattern(listener.hostname)} does not match ${asked}`,
        };
      }
      return {
        listener: ref,
        rule: "specificity",
        reason: `hostname ${pattern(listener.hostname)} matches, but is less specific than ${pattern(winner.hostname)}`,
      };
    });
}

/**
 * Rules of the listener that do not serve. `facts` is absent for streams, which have hostnames
 * only.
 */
export function losingRules(
  table: RoutingTable,
  at: {
    readonly listener: ListenerItem;
    readonly name: string | undefined;
    readonly winner: { readonly rule: Rule; readonly host: HostItem } | undefined;
    readonly facts?: RequestFacts;
  },
): Elimination[] {
  const asked = [...table.hostsFor(at.listener.id, at.name)];
  const others = [...table.hostsOf(at.listener.id)]
    .filter((host) => !asked.includes(host))
    .sort((a, b) => compareSpecificity(a.hostname, b.hostname) || (a.hostname < b.hostname ? -1 : 1));
  const listener = candidateOf(at.listener);
  const lost: Elimination[] = [];
  for (const host of asked) {
    for (const rule of host.rules) {
      if (rule === at.winner?.rule && host === at.winner.host) continue;
      lost.push({ listener, route: rule.origin, ...whyLost(rule, host, at) });
    }
  }
  for (const host of others) {
    const name = at.name === undefined ? "a client that names no host" : shown(at.name);
    const reason = `hostname ${pattern(host.hostname)} does not match ${name}`;
    for (const rule of host.rules) lost.push({ listener, route: rule.origin, rule: "hostname", reason });
  }
  return lost;
}

function whyLost(
  rule: Rule,
  host: HostItem,
  at: {
    readonly winner: { readonly rule: Rule; readonly host: HostItem } | undefined;
    readonly facts?: RequestFacts;
  },
): Pick<Elimination, "rule" | "reason"> {
  const mismatch = at.facts === undefined ? undefined : mismatchOf(rule.match, at.facts);
  if (mismatch !== undefined) return mismatch;
  if (at.winner === undefined) throw new Error("a rule matches that the routing table did not find");
  const { origin } = at.winner.rule;
  const served = `${origin.kind} ${origin.namespace}/${origin.name} rule ${origin.rule}`;
  if (host !== at.winner.host) {
    return {
      rule: "specificity",
      reason: `its hostname ${pattern(host.hostname)} is less specific than ${pattern(at.winner.host.hostname)} of ${served}`,
    };
  }
  return {
    rule: "precedence",
    reason: `lower precedence than ${served}, which ${whyBefore(at.winner.rule, rule, host)}`,
  };
}

function isFor(hostname: string, name: string | undefined): boolean {
  return name === undefined ? hostname === "" : matchesName(hostname, name);
}

export function pattern(hostname: string): string {
  return hostname === "" ? "(any)" : hostname;
}
