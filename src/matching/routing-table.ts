/**
 * Which listener and which rule serve a connection or a request (Gateway.spec.listeners, Listeners
 * that are distinct only by Hostname; Gateway.spec.listeners.hostname):
 *
 * - the most specific listener of the port takes the name, and only its routes count (isolation);
 * - cleartext HTTP: no listener for the authority is 404;
 * - HTTPS: the listener was chosen by SNI. If the best HTTPS listener of the port for the authority
 *   is another one, 421, so that the client comes back on a connection of its own; if there is
 *   none, 404;
 * - within a listener, the hosts whose pattern matches come most specific first, and the first rule
 *   that matches serves.
 *
 * The table is fed with deltas. A delta applies as a whole, in no particular order: items may
 * arrive before what they refer to, and are then not reachable yet.
 */

import type { HostItem, ItemId, ListenerItem, PlanDelta, PlanItem, PortItem } from "../plan/plan.ts";
import type { Rule } from "../plan/rule.ts";
import { hostnameOf, normalizeName } from "./authority.ts";
import { PatternIndex } from "./pattern-index.ts";
import { RequestFacts, type RequestView } from "./request.ts";
import { firstRule } from "./rule-index.ts";

export interface Match {
  readonly host: HostItem;
  readonly rule: Rule;
}

export type ListenerAdmission = { readonly listener: ListenerItem } | { readonly status: 404 | 421 };

/** Listeners that point to one port. */
interface PortListeners {
  readonly all: Map<ItemId, ListenerItem>;
  readonly byName: PatternIndex<ListenerItem>;
  /**
   * Authorities are compared on "the same port and protocol": TLS listeners beside HTTPS ones have
   * no say in a 421.
   */
  readonly https: PatternIndex<ListenerItem>;
}

export class RoutingTable {
  readonly #items: Map<ItemId, PlanItem> = new Map();
  readonly #ports: Map<ItemId, PortItem> = new Map();
  readonly #listeners: Map<ItemId, PortListeners> = new Map();
  readonly #hosts: Map<ItemId, PatternIndex<HostItem>> = new Map();

  apply(delta: PlanDelta): void {
    // Everything old leaves before anything new enters: two items may swap hostnames in one delta.
    for (const id of delta.removes) {
      this.#detach(id);
      this.#items.delete(id);
    }
    const upserts = new Map(delta.upserts.map((item) => [item.id, item]));
    for (const id of upserts.keys()) this.#detach(id);
    for (const [id, item] of upserts) {
      this.#items.set(id, item);
      this.#attach(item);
    }
  }

  get<T extends PlanItem["type"]>(type: T, id: ItemId): Extract<PlanItem, { type: T }> | undefined {
    const item = this.#items.get(id);
    return item?.type === type ? (item as Extract<PlanItem, { type: T }>) : undefined;
  }

  items(): Iterable<PlanItem> {
    return this.#items.values();
  }

  ports(): Iterable<PortItem> {
    return this.#ports.values();
  }

  listenersOf(port: ItemId): Iterable<ListenerItem> {
    return this.#ofPort(port)?.all.values() ?? [];
  }

  hostsOf(listener: ItemId): Iterable<HostItem> {
    return this.#ofListener(listener)?.values() ?? [];
  }

  /**
   * The hosts of a listener that match the name (normalised), in the order in which they are asked.
   */
  *hostsFor(listener: ItemId, name: string | undefined): Generator<HostItem, void, undefined> {
    const hosts = this.#ofListener(listener);
    let host = hosts?.find(name);
    while (host !== undefined) {
      yield host;
      host = hosts?.wider(host.hostname);
    }
  }

  /** By SNI, or by the host of a cleartext authority; undefined: no name was given. */
  listenerFor(port: ItemId, name: string | undefined): ListenerItem | undefined {
    return this.#ofPort(port)?.byName.find(name === undefined ? undefined : normalizeName(name));
  }

  admitHttp(port: ItemId, authority: string): ListenerAdmission {
    const listener = this.#ofPort(port)?.byName.find(hostnameOf(authority));
    return listener === undefined ? NOT_FOUND : { listener };
  }

  /**
   * A connection whose listener has gone since the handshake gets 421: on a new connection the
   * client reaches the listener that serves now.
   */
  admitHttps(connection: ItemId, authority: string): ListenerAdmission {
    const current = this.get("listener", connection);
    if (current === undefined) return MISDIRECTED;
    const best = this.#ofPort(current.port)?.https.find(hostnameOf(authority));
    if (best === undefined) return NOT_FOUND;
    return best.id === connection ? { listener: best } : MISDIRECTED;
  }

  /** `listener` is one that this table has just returned. */
  match(listener: ListenerItem, authority: string, request: RequestView): Match | undefined {
    const hosts = this.#hosts.get(listener.id);
    let host = hosts?.find(hostnameOf(authority));
    if (hosts === undefined || host === undefined) return undefined;
    const facts = new RequestFacts(request);
    while (host !== undefined) {
      const rule = firstRule(host, facts);
      if (rule !== undefined) return { host, rule };
      host = hosts.wider(host.hostname);
    }
    return undefined;
  }

  matchRule(listener: ItemId, authority: string, request: RequestView): Rule | undefined {
    const item = this.get("listener", listener);
    return item === undefined ? undefined : this.match(item, authority, request)?.rule;
  }

  /** TLS by SNI; TCP and UDP have one host, the empty pattern, and no name. */
  streamRule(listener: ItemId, serverName: string | undefined): Rule | undefined {
    const hosts = this.#ofListener(listener);
    let host = hosts?.find(serverName === undefined ? undefined : normalizeName(serverName));
    while (host !== undefined && host.rules.length === 0) host = hosts?.wider(host.hostname);
    return host?.rules[0];
  }

  #ofPort(port: ItemId): PortListeners | undefined {
    return this.#ports.has(port) ? this.#listeners.get(port) : undefined;
  }

  #ofListener(listener: ItemId): PatternIndex<HostItem> | undefined {
    return this.get("listener", listener) === undefined ? undefined : this.#hosts.get(listener);
  }

  #attach(item: PlanItem): void {
    if (item.type === "port") {
      this.#ports.set(item.id, item);
    } else if (item.type === "listener") {
      let listeners = this.#listeners.get(item.port);
      if (listeners === undefined) {
        listeners = { all: new Map(), byName: new PatternIndex(), https: new PatternIndex() };
        this.#listeners.set(item.port, listeners);
      }
      listeners.all.set(item.id, item);
      listeners.byName.add(item);
      if (item.protocol === "HTTPS") listeners.https.add(item);
    } else if (item.type === "host") {
      let hosts = this.#hosts.get(item.listener);
      if (hosts === undefined) {
        hosts = new PatternIndex();
        this.#hosts.set(item.listener, hosts);
      }
      hosts.add(item);
    }
  }

  #detach(id: ItemId): void {
    const item = this.#items.get(id);
    if (item?.type === "port") {
      this.#ports.delete(id);
    } else if (item?.type === "listener") {
      const listeners = this.#listeners.get(item.port);
      listeners?.all.delete(id);
      listeners?.byName.delete(item);
      listeners?.https.delete(item);
      if (listeners?.all.size === 0) this.#listeners.delete(item.port);
    } else if (item?.type === "host") {
      const hosts = this.#hosts.get(item.listener);
      hosts?.delete(item);
      if (hosts?.size === 0) this.#hosts.delete(item.listener);
    }
  }
}

const NOT_FOUND: ListenerAdmission = { status: 404 };
const MISDIRECTED: ListenerAdmission = { status: 421 };
