/**
 * Ports for XListenerSet entries without one (GEP-1713 (experimental), Port): the gateway assigns a
 * unique port. An entry keeps the port that its status has shown. Otherwise it gets the first free
 * port at or after a place computed from its name, so the same files give the same ports. Whoever
 * ranks first chooses first; ports that some listener of the Gateway names are never assigned. A
 * listener that the Gateway's TenantPolicy refuses neither names a port nor gets one.
 */
import type { Listener } from "../../api/gateway.ts";
import type { Key } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { ListenerProtocol } from "../../plan/plan.ts";
import { type EngineSettings, isReserved } from "../foundation/settings.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";
import { listenerProblem } from "../tenancy/tenant-rights.ts";
import type { Attachment } from "./attachment.ts";

/** Ports by `owner#section`. */
export type PortAssignments = Readonly<Record<string, number>>;

export function derivePortAssignments(
  graph: Graph,
  attachments: ReadonlyCollection<Attachment>,
  tenancy: Tenancy,
  settings: EngineSettings,
): ReadonlyCollection<PortAssignments> {
  const explicit: Index<{ port: number }> = graph.index(
    "named ports",
    graph.expand<Attachment, { port: number }>("port claims", attachments, (key, attachment, lookup) =>
      allowedListeners(attachment, tenancy, lookup).flatMap(({ name, port }) =>
        port ? [[`${attachment.gateway}|${port}|${key}#${name}`, { port }] as const] : [],
      ),
    ),
    (key, { port }) => [{ at: `${key.slice(0, key.indexOf("|"))}|${port}` }],
  );
  const portless = graph.index(
    "portless owners",
    graph.derive("owners with portless entries", attachments, (_key, attachment) =>
      attachment.gateway !== undefined && attachment.owner.listeners.some(({ port }) => !port)
        ? attachment
        : undefined,
    ),
    (_key, { owner, gateway }) => [{ at: gateway as Key, sort: owner.rank }],
  );

  return graph.derive("port assignments", portless, (gateway, entries, lookup) => {
    const { from, to } = settings.portRange;
    const size = to - from + 1;
    const assigned: Record<string, number> = {};
    const taken = new Set<number>();
    const isFree = (port: number): boolean =>
      !taken.has(port) && !isReserved(settings, port) && lookup.count(explicit, `${gateway}|${port}`) === 0;
    const wanted = [...entries].flatMap(({ value }) =>
      allowedListeners(value, tenancy, lookup)
        .filter(({ port }) => !port)
        .map(({ name }) => ({ id: `${value.owner.key}#${name}`, shown: value.owner.shownPorts[name] })),
    );
    const take = (id: string, port: number): void => {
      assigned[id] = port;
      taken.add(port);
    };
    for (const { id, shown } of wanted) {
      if (shown !== undefined && shown >= from && shown <= to && isFree(shown)) take(id, shown);
    }
    for (const { id } of wanted) {
      if (assigned[id] !== undefined) continue;
      const start = hash(id) % size;
      for (let step = 0; step < size; step++) {
        const port = from + ((start + step) % size);
        if (isFree(port)) {
          take(id, port);
          break;
        }
      }
    }
    return assigned;
  });
}

/** Without those that a TenantPolicy refuses. */
function allowedListeners(
  { owner, gateway }: Attachment,
  tenancy: Tenancy,
  lookup: Lookup,
): readonly Listener[] {
  if (gateway === undefined) return [];
  const found = owner.role === "root" ? undefined : tenancy.rightsAt(gateway, owner.namespace, lookup);
  if (found?.isEnforced !== true) return owner.listeners;
  return owner.listeners.filter(({ hostname = "", port, protocol }) => {
    const asked = { hostname: hostname.toLowerCase(), port, protocol: protocol as ListenerProtocol };
    return listenerProblem(asked, found.rights) === undefined;
  });
}

/** FNV-1a: spreads names over the range; nothing depends on it being secret. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value;
}
