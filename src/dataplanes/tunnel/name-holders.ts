/**
 * Who has a hostname when there are no ports to tell listeners apart.
 *
 * The engine accepts `HTTP :80 a.example` and `HTTPS :443 a.example`, also of different owners: on
 * real ports they never meet. Behind a tunnel a request has a Host and nothing else, so of all
 * listeners of a Gateway with one hostname
 *
 *   1. the first in the Gateway's order of precedence holds it, and with it its owner;
 *   2. of that owner one listener of the other scheme is its twin and is served as well: visitors who came over http meet the routes of the HTTP
 *      listener first, all others those of the HTTPS listener alone;
 *   3. everybody else is not served, and told so. No later owner can take a name away by choosing another port or protocol.
 */
import type { ListenerItem, OwnerRef } from "../../plan/plan.ts";

export interface Holder {
  /** The HTTPS listener if the owner has one, else its HTTP listener. */
  readonly primary: ListenerItem;
  /** The HTTP listener beside an HTTPS primary. */
  readonly twin?: ListenerItem;
}

/** All listeners must have the same Gateway and hostname. */
export function holderOf(listeners: Iterable<ListenerItem>): Holder | undefined {
  const ordered = [...listeners].sort(byPrecedence);
  const first = ordered[0];
  if (first === undefined) return undefined;
  const own = ordered.filter(({ owner }) => sameOwner(owner, first.owner));
  const https = own.find(({ protocol }) => protocol === "HTTPS");
  const http = own.find(({ protocol }) => protocol === "HTTP");
  if (https === undefined) return { primary: first };
  return http === undefined ? { primary: https } : { primary: https, twin: http };
}

function byPrecedence(a: ListenerItem, b: ListenerItem): number {
  const left = rankOf(a);
  const right = rankOf(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** A plan that says nothing of precedence still gets an order that does not depend on arrival. */
function rankOf({ rank, owner, section }: ListenerItem): string {
  return rank ?? `${owner.kind === "Gateway" ? 0 : 1}${owner.namespace}/${owner.name}/${section}`;
}

function sameOwner(a: OwnerRef, b: OwnerRef): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name;
}
