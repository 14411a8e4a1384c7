/**
 * Which listeners serve a hostname when no port tells them apart.
 *
 * The engine accepts `HTTP :80 a.example` and `HTTPS :443 a.example`, also of different owners:
 * they are on different ports. Behind a tunnel a request has only a Host. So, among all listeners
 * of a Gateway with one hostname:
 *
 *   1. The first one in the Gateway's order of precedence holds the hostname, and so does its
 *      owner.
 *   2. One listener of the other scheme is its twin, if it has the same owner. It is served as
 *      well. Clients over http get the routes of the HTTP listener first. All others get those of
 *      the HTTPS listener only.
 *   3. All other listeners are not served, and their status says so. A later owner cannot take a
 *      hostname by choosing another port or protocol.
 */
import type { ListenerItem, OwnerRef } from "../../plan/plan.ts";

export interface NameHolder {
  /** The HTTPS listener if the owner has one, else its HTTP listener. */
  readonly primary: ListenerItem;
  /** The HTTP listener beside an HTTPS primary. */
  readonly twin?: ListenerItem;
}

/** All listeners must have the same Gateway and hostname. */
export function holderOf(listeners: Iterable<ListenerItem>): NameHolder | undefined {
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
