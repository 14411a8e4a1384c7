/**
 * The plan of a Gateway, rewritten for a data plane that listens on one loopback port: every HTTP
 * and HTTPS listener that holds its hostname (name-holders.ts) becomes a cleartext listener of that
 * port, so hostnames isolate tenants as before; ports and TLS of the listeners go away. Everything
 * else passes through. A delta costs what it touches.
 */
import { validationAt } from "../../plan/client-validation.ts";
import type { HostItem, ItemId, ListenerItem, PlanDelta, PlanItem, PortItem } from "../../plan/plan.ts";
import { primaryRules, twinRules } from "./client-scheme.ts";
import { holderOf, type NameHolder } from "./name-holders.ts";

/** What becomes of a listener behind the tunnel. */
export type ListenerPlace =
  | { readonly state: "served"; readonly by: ItemId }
  | { readonly state: "refused"; readonly reason: string; readonly message: string };

const HOSTNAME_TAKEN: ListenerPlace = {
  state: "refused",
  reason: "HostnameTaken",
  message:
    "behind a tunnel hostnames are told apart without ports, and a listener that comes before this one has the same hostname",
};
const CLIENT_CERTIFICATES: ListenerPlace = {
  state: "refused",
  reason: "UnsupportedValue",
  message: "client certificates cannot be asked for behind a tunnel: TLS ends at the edge",
};
const NO_STREAMS: ListenerPlace = {
  state: "refused",
  reason: "UnsupportedProtocol",
  message: "a tunnel carries HTTP alone",
};

export interface InnerChange {
  readonly delta: PlanDelta;
  /** Listeners whose place may have changed. */
  readonly listeners: ReadonlySet<ItemId>;
}

/** Listeners of one Gateway with one hostname, and what was made of them. */
interface Name {
  readonly gateway: string;
  readonly members: Map<ItemId, ListenerItem>;
  holder: NameHolder | undefined;
  /** Hosts that the inner plan has of it. */
  readonly hosts: Set<ItemId>;
}

export class InnerPlan {
  readonly #portOf: (gateway: string) => number;
  readonly #ports: Map<ItemId, PortItem> = new Map();
  readonly #listeners: Map<ItemId, ListenerItem> = new Map();
  readonly #hosts: Map<ItemId, HostItem> = new Map();
  readonly #listenersOfPort: Map<ItemId, Set<ItemId>> = new Map();
  readonly #hostsOfListener: Map<ItemId, Map<string, HostItem>> = new Map();
  readonly #names: Map<string, Name> = new Map();
  readonly #gatewayOf: Map<ItemId, string> = new Map();

  constructor(portOf: (gateway: string) => number) {
    this.#portOf = portOf;
  }

  apply({ upserts, removes }: PlanDelta): InnerChange {
    const out: Outgoing = { upserts: new Map(), removes: new Set() };
    const names = new Set<string>();
    const hosts = new Set<HostItem>();
    for (const id of removes) this.#remove(id, out, names, hosts);
    for (const item of upserts) this.#replace(item, out, names, hosts);
    const listeners = new Set<ItemId>();
    // All that leaves goes before anything comes: two listeners may swap hostnames in one delta.
    const regrouped = [...names].filter((key) => this.#regroup(key, out, listeners));
    for (const key of names) this.#emitListener(key, out);
    for (const key of regrouped) this.#emitHosts(key, out);
    for (const key of names) if (this.#names.get(key)?.members.size === 0) this.#names.delete(key);
    for (const host of hosts) this.#settleHost(host, out);
    return { delta: { upserts: [...out.upserts.values()], removes: [...out.removes] }, listeners };
  }

  /** Undefined when the listener is not in the plan, or its port is not yet. */
  placeOf(listener: ItemId): ListenerPlace | undefined {
    const item = this.#listeners.get(listener);
    const port = item && this.#ports.get(item.port);
    if (item === undefined || port === undefined) return undefined;
    const refused = refusalOf(item, port);
    if (refused !== undefined) return refused;
    const holder = this.#names.get(nameKey(item))?.holder;
    if (holder?.primary.id !== listener && holder?.twin?.id !== listener) return HOSTNAME_TAKEN;
    return { state: "served", by: holder.primary.id };
  }

  gatewayOf(id: ItemId): string | undefined {
    return (this.#listeners.get(id) ?? this.#ports.get(id))?.gateway;
  }

  isPort(id: ItemId): boolean {
    return this.#ports.has(id);
  }

  #replace(item: PlanItem, out: Outgoing, names: Set<string>, hosts: Set<HostItem>): void {
    switch (item.type) {
      case "gateway":
        this.#gatewayOf.set(item.id, item.gateway);
        put(out, item);
        put(out, this.#innerPort(item.gateway));
        return;
      case "guard":
      case "backend":
      case "certificate":
        put(out, item);
        return;
      case "port":
        this.#ports.set(item.id, item);
        this.#touchPort(item.id, names);
        return;
      case "listener":
        this.#leave(item.id, names);
        this.#listeners.set(item.id, item);
        entry(this.#listenersOfPort, item.port, () => new Set()).add(item.id);
        entry(this.#names, nameKey(item), () => emptyName(item.gateway)).members.set(item.id, item);
        names.add(nameKey(item));
        return;
      case "host":
        this.#forgetHost(item.id, hosts);
        this.#hosts.set(item.id, item);
        entry(this.#hostsOfListener, item.listener, () => new Map()).set(item.hostname, item);
        hosts.add(item);
    }
  }

  #remove(id: ItemId, out: Outgoing, names: Set<string>, hosts: Set<HostItem>): void {
    const gateway = this.#gatewayOf.get(id);
    if (gateway !== undefined) {
      this.#gatewayOf.delete(id);
      drop(out, id);
      drop(out, innerPortId(gateway));
    } else if (this.#ports.has(id)) {
      this.#ports.delete(id);
      this.#touchPort(id, names);
    } else if (this.#listeners.has(id)) {
      this.#leave(id, names);
      this.#listeners.delete(id);
    } else if (this.#hosts.has(id)) {
      this.#forgetHost(id, hosts);
      this.#hosts.delete(id);
    } else drop(out, id);
  }

  #touchPort(port: ItemId, names: Set<string>): void {
    for (const id of this.#listenersOfPort.get(port) ?? []) {
      const listener = this.#listeners.get(id);
      if (listener !== undefined) names.add(nameKey(listener));
    }
  }

  #leave(id: ItemId, names: Set<string>): void {
    const before = this.#listeners.get(id);
    if (before === undefined) return;
    const ofPort = this.#listenersOfPort.get(before.port);
    ofPort?.delete(id);
    if (ofPort?.size === 0) this.#listenersOfPort.delete(before.port);
    this.#names.get(nameKey(before))?.members.delete(id);
    names.add(nameKey(before));
  }

  #forgetHost(id: ItemId, hosts: Set<HostItem>): void {
    const before = this.#hosts.get(id);
    if (before === undefined) return;
    const ofListener = this.#hostsOfListener.get(before.listener);
    ofListener?.delete(before.hostname);
    if (ofListener?.size === 0) this.#hostsOfListener.delete(before.listener);
    hosts.add(before);
  }

  /** Finds the holder anew; true when the name's rules must be put together anew. */
  #regroup(key: string, out: Outgoing, changed: Set<ItemId>): boolean {
    const name = this.#names.get(key);
    if (name === undefined) return false;
    const before = name.holder;
    const eligible = [...name.members.values()].filter((listener) => {
      const port = this.#ports.get(listener.port);
      return port !== undefined && refusalOf(listener, port) === undefined;
    });
    name.holder = holderOf(eligible);
    for (const id of name.members.keys()) changed.add(id);
    if (before !== undefined && before.primary.id !== name.holder?.primary.id) drop(out, before.primary.id);
    if (sameHolder(before, name.holder)) return false;
    for (const id of name.hosts) drop(out, id);
    name.hosts.clear();
    return true;
  }

  #emitListener(key: string, out: Outgoing): void {
    const primary = this.#names.get(key)?.holder?.primary;
    if (primary !== undefined) put(out, innerListener(primary));
  }

  #emitHosts(key: string, out: Outgoing): void {
    const name = this.#names.get(key);
    const { primary, twin } = name?.holder ?? {};
    for (const listener of [primary, twin]) {
      if (name === undefined || listener === undefined) continue;
      for (const hostname of this.#hostsOfListener.get(listener.id)?.keys() ?? []) {
        this.#emitHost(name, hostname, out);
      }
    }
  }

  #settleHost({ listener, hostname }: HostItem, out: Outgoing): void {
    const item = this.#listeners.get(listener);
    const name = item && this.#names.get(nameKey(item));
    const { primary, twin } = name?.holder ?? {};
    if (name !== undefined && (primary?.id === listener || twin?.id === listener)) {
      this.#emitHost(name, hostname, out);
    }
  }

  #emitHost(name: Name, hostname: string, out: Outgoing): void {
    const { primary, twin } = name.holder ?? {};
    if (primary === undefined) return;
    const id = `tunnel-host:${primary.id}:${hostname}`;
    const own = this.#hostsOfListener.get(primary.id)?.get(hostname);
    const other = twin && this.#hostsOfListener.get(twin.id)?.get(hostname);
    if (own === undefined && other === undefined) {
      name.hosts.delete(id);
      drop(out, id);
      return;
    }
    name.hosts.add(id);
    put(out, {
      type: "host",
      id,
      gateway: name.gateway,
      listener: primary.id,
      hostname,
      rules: [...twinRules(other?.rules ?? []), ...primaryRules(own?.rules ?? [], primary.protocol)],
    });
  }

  #innerPort(gateway: string): PortItem {
    const port = this.#portOf(gateway);
    return { type: "port", id: innerPortId(gateway), gateway, transport: "tcp", port, protocol: "http" };
  }
}

export function innerPortId(gateway: string): ItemId {
  return `tunnel-port:${gateway}`;
}

function refusalOf(listener: ListenerItem, port: PortItem): ListenerPlace | undefined {
  if (listener.protocol !== "HTTP" && listener.protocol !== "HTTPS") return NO_STREAMS;
  const asks = listener.protocol === "HTTPS" ? validationAt(listener, port) : port.clientValidation;
  return asks === undefined ? undefined : CLIENT_CERTIFICATES;
}

function sameHolder(a: NameHolder | undefined, b: NameHolder | undefined): boolean {
  return (
    a?.primary.id === b?.primary.id &&
    a?.twin?.id === b?.twin?.id &&
    a?.primary.protocol === b?.primary.protocol
  );
}

function innerListener({ tls: _unused, ...listener }: ListenerItem): ListenerItem {
  return { ...listener, port: innerPortId(listener.gateway), protocol: "HTTP" };
}

function nameKey({ gateway, hostname }: ListenerItem): string {
  return `${gateway}|${hostname}`;
}

function emptyName(gateway: string): Name {
  return { gateway, members: new Map(), holder: undefined, hosts: new Set() };
}

interface Outgoing {
  readonly upserts: Map<ItemId, PlanItem>;
  readonly removes: Set<ItemId>;
}

function put(out: Outgoing, item: PlanItem): void {
  out.removes.delete(item.id);
  out.upserts.set(item.id, item);
}

function drop(out: Outgoing, id: ItemId): void {
  out.upserts.delete(id);
  out.removes.add(id);
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const present = map.get(key);
  if (present !== undefined) return present;
  const made = make();
  map.set(key, made);
  return made;
}
