/**
 * What a client must get of a random plan behind a tunnel: the status of a rule, or 404. A plain
 * second implementation to compare with.
 */
import { compareSpecificity, matchesName } from "../../../../src/plan/hostname.ts";
import type { HostItem, ListenerItem, PlanItem } from "../../../../src/plan/plan.ts";

/**
 * The most specific hostname, its first owner, and of that owner the listener of the client's
 * scheme.
 */
export function expectedAnswer(
  items: readonly PlanItem[],
  name: string,
  path: string,
  scheme: string,
): number {
  const listeners = items.filter((item): item is ListenerItem => item.type === "listener");
  const fitting = listeners
    .filter(({ hostname }) => matchesName(hostname, name))
    .sort((a, b) => compareSpecificity(a.hostname, b.hostname) || ((a.rank ?? "") < (b.rank ?? "") ? -1 : 1));
  const first = fitting[0];
  if (first === undefined) return 404;
  const own = fitting.filter(
    ({ hostname, owner }) => hostname === first.hostname && owner.namespace === first.owner.namespace,
  );
  const https = own.find(({ protocol }) => protocol === "HTTPS");
  const http = own.find(({ protocol }) => protocol === "HTTP");
  const order =
    https === undefined || http === undefined ? [first] : scheme === "http" ? [http, https] : [https];
  const hosts = items.filter(
    (item): item is HostItem => item.type === "host" && matchesName(item.hostname, name),
  );
  const patterns = [...new Set(hosts.map(({ hostname }) => hostname))].sort(compareSpecificity);
  for (const pattern of patterns) {
    for (const listener of order) {
      const host = hosts.find((item) => item.listener === listener.id && item.hostname === pattern);
      const rule = host?.rules.find(({ match }) => {
        const { type = "exact", value = "" } = match.path ?? {};
        const prefix = value === "/" ? "" : value;
        return type === "exact" ? path === value : path === prefix || path.startsWith(`${prefix}/`);
      });
      if (rule?.action.type === "respond") return rule.action.status;
    }
  }
  return 404;
}
