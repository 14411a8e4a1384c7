/**
 * The items of one Gateway, indexed for compiling: what belongs to what, most specific pattern
 * first.
 */

import { PatternIndex } from "../../../matching/pattern-index.ts";
import type { BackendItem } from "../../../plan/backend.ts";
import { coversPattern as covers, isWildcard, patternsOverlap } from "../../../plan/hostname.ts";
import type {
  GatewayItem,
  HostItem,
  ItemId,
  ListenerItem,
  ListenerTlsPlan,
  PlanItem,
  PortItem,
} from "../../../plan/plan.ts";
import type { RuleOrigin } from "../../../plan/rule.ts";
import type * as proto from "../wire/proto.ts";
import type { Message } from "../wire/protobuf.ts";

export type RouteTracingOf = (
  listener: ListenerItem,
  origin: RuleOrigin,
) => Message<proto.RouteTracing> | undefined;

interface Listeners {
  /** HTTP and HTTPS: their hosts become scopes. */
  readonly http: PatternIndex<ListenerItem>;
  /** All listeners, to find the one of a server name. */
  readonly all: PatternIndex<ListenerItem>;
  /** TLS, TCP and UDP: their hosts become filter chains. */
  readonly streams: Map<ItemId, ListenerItem>;
  /** HTTPS with a hostname and TLS settings of their own: each has a filter chain. */
  readonly chained: Map<ItemId, ListenerItem>;
}

export class Model {
  /** How a route's requests are traced, if not as the Gateway's are. */
  routeTracing: RouteTracingOf | undefined;
  readonly #items: Map<ItemId, PlanItem> = new Map();
  readonly #listeners: Map<ItemId, Listeners> = new Map();
  readonly #hosts: Map<ItemId, PatternIndex<HostItem>> = new Map();
  readonly #ports: Map<ItemId, PortItem> = new Map();
  /**
   * A cache: needed for every on-demand name, and expensive with several ports and wildcards.
   */
  readonly #yielding: Map<ItemId, boolean> = new Map();
  #gateway: GatewayItem | undefined;

  get gateway(): GatewayItem | undefined {
    return this.#gateway;
  }

  set(item: PlanItem): void {
    this.delete(item.id);
    this.#items.set(item.id, item);
    if (item.type === "listener" || item.type === "port") this.#yielding.clear();
    if (item.type === "listener") {
      const listeners = this.#listenersAt(item.port);
      listeners.all.add(item);
      if (isHttp(item) && item.hostname !== "" && hasOwnTls(item.tls)) listeners.chained.set(item.id, item);
      if (isHttp(item)) listeners.http.add(item);
      else listeners.streams.set(item.id, item);
    } else if (item.type === "host") {
      const hosts = this.#hosts.get(item.listener) ?? new PatternIndex();
      this.#hosts.set(item.listener, hosts);
      hosts.add(item);
    } else if (item.type === "port") this.#ports.set(item.id, item);
    else if (item.type === "gateway") this.#gateway = item;
  }

  delete(id: ItemId): void {
    const item = this.#items.get(id);
    if (item === undefined) return;
    this.#items.delete(id);
    if (item.type === "listener" || item.type === "port") this.#yielding.clear();
    if (item.type === "listener") {
      const listeners = this.#listenersAt(item.port);
      listeners.all.delete(item);
      listeners.http.delete(item);
      listeners.streams.delete(id);
      listeners.chained.delete(id);
      if (listeners.all.size === 0) this.#listeners.delete(item.port);
    } else if (item.type === "host") {
      const hosts = this.#hosts.get(item.listener);
      hosts?.delete(item);
      if (hosts?.size === 0) this.#hosts.delete(item.listener);
    } else if (item.type === "port") this.#ports.delete(id);
    else if (item.type === "gateway") this.#gateway = undefined;
  }

  get<T extends PlanItem["type"]>(type: T, id: ItemId): Extract<PlanItem, { type: T }> | undefined {
    const item = this.#items.get(id);
    return item?.type === type ? (item as Extract<PlanItem, { type: T }>) : undefined;
  }

  item(id: ItemId): PlanItem | undefined {
    return this.#items.get(id);
  }

  items(): Iterable<PlanItem> {
    return this.#items.values();
  }

  ports(): Iterable<PortItem> {
    return this.#ports.values();
  }

  backends(): Iterable<BackendItem> {
    return this.#items.values().filter((item) => item.type === "backend");
  }

  httpListeners(port: ItemId): Iterable<ListenerItem> {
    return this.#listeners.get(port)?.http.values() ?? [];
  }

  streamListeners(port: ItemId): Iterable<ListenerItem> {
    return this.#listeners.get(port)?.streams.values() ?? [];
  }

  /** HTTPS listeners with filter chains of their own, whatever other chains there are. */
  chainedListeners(port: ItemId): Iterable<ListenerItem> {
    return this.#listeners.get(port)?.chained.values() ?? [];
  }

  hosts(listener: ItemId): Iterable<HostItem> {
    return this.#hosts.get(listener)?.values() ?? [];
  }

  /**
   * The listener that takes a server name at a port, of whatever protocol; undefined: the client
   * names none.
   */
  listenerFor(port: ItemId, name: string | undefined): ListenerItem | undefined {
    return this.#listeners.get(port)?.all.find(name);
  }

  /** The HTTP listener that owns all names of a pattern. */
  httpOwner(port: ItemId, pattern: string): ListenerItem | undefined {
    const index = this.#listeners.get(port)?.http;
    return index === undefined ? undefined : closest(index, pattern);
  }

  /** The listener of any protocol that owns all names of a pattern. */
  owner(port: ItemId, pattern: string): ListenerItem | undefined {
    const index = this.#listeners.get(port)?.all;
    return index === undefined ? undefined : closest(index, pattern);
  }

  /** The HTTP listener with exactly this pattern. */
  httpAt(port: ItemId, pattern: string): ListenerItem | undefined {
    return this.#listeners.get(port)?.http.at(pattern);
  }

  /**
   * Certificates are asked for by server name alone, whatever the port. Where two ports would show
   * different ones for a name, the port with the lower number has the name, and the listener of the
   * other must do without asking.
   */
  yields(listener: ListenerItem): boolean {
    const known = this.#yielding.get(listener.id) ?? this.#findsOther(listener);
    this.#yielding.set(listener.id, known);
    return known;
  }

  #findsOther(listener: ListenerItem): boolean {
    const own = this.#ports.get(listener.port)?.port ?? 0;
    for (const port of this.#ports.values()) {
      if (port.protocol !== "tls" || port.port >= own) continue;
      for (const other of this.#overlapping(port.id, listener.hostname)) {
        if (other.protocol === "HTTPS" && !sameCertificates(other, listener)) return true;
      }
    }
    return false;
  }

  *#overlapping(port: ItemId, pattern: string): Generator<ListenerItem, void, undefined> {
    const index = this.#listeners.get(port)?.http;
    if (index === undefined) return;
    if (pattern !== "" && !isWildcard(pattern)) {
      const found = index.find(pattern);
      if (found !== undefined) yield found;
      return;
    }
    for (const each of index.values()) if (patternsOverlap(pattern, each.hostname)) yield each;
  }

  hasHost(listener: ItemId, pattern: string): boolean {
    return this.#hosts.get(listener)?.at(pattern) !== undefined;
  }

  /** The hosts of a listener that cover the pattern, most specific first. */
  *hostsCovering(listener: ItemId, pattern: string): Generator<HostItem, void, undefined> {
    const index = this.#hosts.get(listener);
    if (index === undefined) return;
    let host = closest(index, pattern);
    while (host !== undefined) {
      yield host;
      host = index.wider(host.hostname);
    }
  }

  /**
   * Every pattern at a port that the given one covers and whose scope may therefore depend on it.
   */
  *patternsUnder(port: ItemId, pattern: string): Generator<string, void, undefined> {
    yield pattern;
    if (pattern !== "" && !isWildcard(pattern)) return;
    for (const listener of this.#listeners.get(port)?.all.values() ?? []) {
      if (covers(pattern, listener.hostname)) yield listener.hostname;
      for (const host of this.hosts(listener.id)) if (covers(pattern, host.hostname)) yield host.hostname;
    }
  }

  #listenersAt(port: ItemId): Listeners {
    let listeners = this.#listeners.get(port);
    if (listeners === undefined) {
      listeners = {
        http: new PatternIndex(),
        all: new PatternIndex(),
        streams: new Map(),
        chained: new Map(),
      };
      this.#listeners.set(port, listeners);
    }
    return listeners;
  }
}

export function isHttp({ protocol }: ListenerItem): boolean {
  return protocol === "HTTP" || protocol === "HTTPS";
}

export function hasOwnTls(tls: ListenerTlsPlan | undefined): boolean {
  return (
    tls?.minVersion !== undefined ||
    tls?.maxVersion !== undefined ||
    tls?.alpn !== undefined ||
    tls?.clientValidation !== undefined
  );
}

function sameCertificates(a: ListenerItem, b: ListenerItem): boolean {
  return (a.tls?.certificates ?? []).join("\n") === (b.tls?.certificates ?? []).join("\n");
}

function closest<T extends { readonly id: string; readonly hostname: string }>(
  index: PatternIndex<T>,
  pattern: string,
): T | undefined {
  return index.at(pattern) ?? index.wider(pattern);
}
