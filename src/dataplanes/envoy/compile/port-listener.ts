/**
 * One listener of Envoy per port. For HTTP and HTTPS it never changes, whatever tenants come and
 * go; filter chains of their own have only
 *
 * - hosts of TLS listeners (passthrough, or terminated and forwarded as a stream), found by server
 *   name;
 * - HTTPS listeners below such a chain's wildcard, which would otherwise take their names;
 * - HTTPS listeners with TLS settings or client certificates of their own, and those below their
 *   wildcards.
 */

import type { Endpoint } from "../../../plan/backend.ts";
import type { ClientValidation } from "../../../plan/client-validation.ts";
import { coversPattern as covers } from "../../../plan/hostname.ts";
import type { ItemId, ListenerItem, PortItem } from "../../../plan/plan.ts";
import type { Rule } from "../../../plan/rule.ts";
import { tenantLimits } from "../../../plan/tenant-limits.ts";
import { ALL, type Reference, resource, type XdsResource } from "../ads/resource.ts";
import { cluster, loadAssignment } from "../messages/cluster.ts";
import {
  type ChainShape,
  downstreamTls,
  filterChain,
  tcpListener,
  tcpProxy,
  udpListener,
  udpProxy,
} from "../messages/listener.ts";
import type * as proto from "../wire/proto.ts";
import type { Message } from "../wire/protobuf.ts";
import { type Admission, cidrsOf } from "./address-ranges.ts";
import { servableEndpoints } from "./backend-cluster.ts";
import { trustOf } from "./client-address.ts";
import { admissionOfChecks, guardsOf, shapeOf } from "./guard-addresses.ts";
import { type ChainClients, type HttpOptions, portHttpManager } from "./http-listener.ts";
import { terminating } from "./listener-tls.ts";
import { hasOwnTls, type Model } from "./model.ts";
import { certificateSecretName, clusterName, WITHOUT_NAME } from "./names.ts";
import { clientsMark, clientsShape, portMark } from "./own-clients.ts";

const DEFAULT_ALPN = ["h2", "http/1.1"];
const STREAM_IDLE_MS = 3_600_000;
const UDP_IDLE_MS = 60_000;
const ALL_SCOPES: Reference = { kind: "scope", name: ALL };
/** Where the share of a reference that is invalid goes: nobody listens there. */
const DISCARD: readonly Endpoint[] = [{ address: "127.0.0.1", port: 9 }];
/** A cluster that never exists: connections to it are closed. */
const NOWHERE = "nowhere";

export interface PortOptions extends HttpOptions {
  /** Whether a certificate can be shown. */
  readonly isUsable: (certificate: ItemId) => boolean;
  readonly bind: (port: PortItem) => { readonly address: string; readonly port: number };
  /** Listeners that Envoy refuses, and what becomes of their connections. */
  readonly refused?: ReadonlyMap<ItemId, RefusedTreatment>;
  /** Compiles no port but a trial of these listeners, which has no socket. */
  readonly probe?: { readonly name: string; readonly listeners: ReadonlySet<ItemId> };
}

/** `closed`: they are closed. `omitted`: Envoy cannot tell which connections they are. */
export type RefusedTreatment = "closed" | "omitted";

export interface CompiledPort {
  readonly resource: XdsResource;
  /** Clusters and endpoints that no backend has by itself. */
  readonly own: readonly XdsResource[];
  /** With the backend of each. */
  readonly clusters: ReadonlyMap<string, ItemId>;
  /** Backends and guards that decide what it looks like. */
  readonly dependsOn: ReadonlySet<string>;
}

export function compilePort(model: Model, port: PortItem, options: PortOptions): CompiledPort {
  const streams = new Streams(model, port, options);
  const { probe } = options;
  const { address, port: number } = probe === undefined ? options.bind(port) : UNBOUND;
  const at = { name: probe?.name ?? port.id, address, port: number };
  const udp = port.protocol === "udp" ? streams.udpCluster() : undefined;
  const content =
    udp !== undefined
      ? udpListener(at, udpProxy({ cluster: udp.name, idleTimeoutMs: UDP_IDLE_MS, admission: udp.admission }))
      : tcpListener({
          ...at,
          chains: chainsOf(model, port, options, streams),
          inspectsTls: port.protocol === "tls",
          proxyProtocol: port.clientAddress?.proxyProtocol,
          accessLogs: port.protocol === "tls" && options.handshakeLog ? [options.handshakeLog] : [],
          ...(probe === undefined ? {} : { bound: false }),
        });
  return {
    resource: resource("listener", at.name, content, {
      needs: [
        ...streams.needs(),
        ...(port.protocol === "http" || port.protocol === "tls" ? [ALL_SCOPES] : []),
      ],
    }),
    own: udp?.own ?? [],
    clusters: streams.clusters,
    dependsOn: streams.dependsOn,
  };
}

/** The address of probes, which have no socket; the sentinel listener has port 1. */
const UNBOUND = { address: "127.0.0.1", port: 2 };

function chainsOf(
  model: Model,
  port: PortItem,
  options: PortOptions,
  streams: Streams,
): readonly Message<proto.FilterChain>[] {
  const managersFor = (clients: ChainClients): readonly ChainManager[] =>
    trustOf(port, options.trustedHops).map(({ trust, peers }) => ({
      suffix: peers === undefined ? "" : " behind proxies",
      sources: peers && cidrsOf(peers),
      filter: portHttpManager(port, trust, { ...options, ...clients }),
    }));
  const managers = managersFor({ validation: port.clientValidation, mark: portMark(port) });
  if (port.protocol === "http") {
    return managers.map(({ suffix, sources, filter }) =>
      filterChain({ name: `http${suffix}`, serverNames: [], sources, tls: false, filter }),
    );
  }
  if (port.protocol === "tcp") return streams.tcpChains();
  const chains = streams.tlsChains(options.isUsable);
  // A chain for a wildcard takes the names below it from the shared one.
  const patterns = [
    ...chains.map(({ pattern }) => pattern),
    ...[...model.chainedListeners(port.id)].map(({ hostname }) => hostname),
  ];
  const all = model.httpAt(port.id, "");
  // Then the chain for all names shows that listener's certificates: each other one needs its own.
  const allYields = all !== undefined && model.yields(all);
  const https = [...model.httpListeners(port.id)];
  const own = https
    .filter(({ hostname, id }) => hostname !== "" && streams.treatmentOf(id) !== "omitted")
    .filter(
      (each) =>
        allYields ||
        needsChain(each, patterns) ||
        model.yields(each) ||
        streams.treatmentOf(each.id) === "closed",
    )
    .sort(byId);
  const chain = (
    name: string,
    pattern: string,
    listener: ListenerItem | undefined,
  ): readonly Message<proto.FilterChain>[] => {
    const own = pattern === "" ? undefined : listener?.tls?.clientValidation;
    const validation = own ?? port.clientValidation;
    const mark = listener && clientsMark(listener, port);
    const chainManagers = own === undefined ? managers : managersFor({ validation, mark });
    const transportSocket = httpsSocket(validation, listener, {
      yields: listener !== undefined && model.yields(listener),
      isUsable: options.isUsable,
    });
    const serverNames = pattern === "" ? [] : [pattern];
    return chainManagers.map(({ suffix, sources, filter }) =>
      filterChain({ name: `${name}${suffix}`, serverNames, sources, tls: true, transportSocket, filter }),
    );
  };
  // Without HTTPS listeners there is no chain for unknown names: Envoy closes the connection
  // instead of sending a TLS alert.
  return [
    ...(chains.some(({ pattern }) => pattern === "") || (https.length === 0 && chains.length > 0)
      ? []
      : chain("https", "", all)),
    ...chains.flatMap((each) => each.chains),
    ...own.flatMap((listener) =>
      streams.treatmentOf(listener.id) === "closed"
        ? [streams.closedChain(listener)]
        : chain(listener.id, listener.hostname, listener),
    ),
  ];
}

function needsChain({ hostname, tls }: ListenerItem, patterns: readonly string[]): boolean {
  if (patterns.some((pattern) => covers(pattern, hostname))) return true;
  return hasOwnTls(tls);
}

interface ChainManager {
  readonly suffix: string;
  readonly sources: ChainShape["sources"];
  readonly filter: Message<proto.Filter>;
}

function httpsSocket(
  validation: ClientValidation | undefined,
  listener: ListenerItem | undefined,
  how: { readonly yields: boolean; readonly isUsable: (certificate: ItemId) => boolean },
): Message<proto.TransportSocket> {
  const secrets = (listener?.tls?.certificates ?? []).filter(how.isUsable).map(certificateSecretName);
  return downstreamTls({
    certificates: how.yields && secrets.length > 0 ? { secrets } : { bySni: { withoutName: WITHOUT_NAME } },
    alpn: listener?.tls?.alpn ?? DEFAULT_ALPN,
    minVersion: listener?.tls?.minVersion,
    maxVersion: listener?.tls?.maxVersion,
    clients: clientsShape(validation),
  });
}

/** The stream routes of one port, and what they refer to. */
class Streams {
  /** With the backend of each. */
  readonly clusters: Map<string, ItemId> = new Map();
  readonly dependsOn: Set<string> = new Set();
  readonly #own: string[] = [];
  readonly #model: Model;
  readonly #port: PortItem;
  readonly #options: PortOptions;

  constructor(model: Model, port: PortItem, options: PortOptions) {
    this.#model = model;
    this.#port = port;
    this.#options = options;
  }

  /** Whether a listener has chains here; undefined: as it is written. */
  treatmentOf(listener: ItemId): RefusedTreatment | undefined {
    const { probe, refused } = this.#options;
    return probe?.listeners.has(listener) === false ? "omitted" : refused?.get(listener);
  }

  /** No other listener may answer for the hostnames of a rejected one. */
  closedChain({ id, hostname }: ListenerItem): Message<proto.FilterChain> {
    return filterChain({ name: id, serverNames: [hostname], tls: true, filter: this.#filter(undefined) });
  }

  needs(): readonly Reference[] {
    return [...this.clusters.keys(), ...this.#own].flatMap((name): Reference[] => [
      { kind: "cluster", name },
      { kind: "endpoints", name },
    ]);
  }

  /** Every name that belongs to a TLS listener has a chain; one without a route closes. */
  tlsChains(
    isUsable: (certificate: ItemId) => boolean,
  ): readonly { readonly pattern: string; readonly chains: readonly Message<proto.FilterChain>[] }[] {
    const found: { readonly pattern: string; readonly chains: readonly Message<proto.FilterChain>[] }[] = [];
    for (const listener of [...this.#model.streamListeners(this.#port.id)].sort(byId)) {
      const treatment = this.treatmentOf(listener.id);
      if (treatment === "omitted") continue;
      const patterns = new Set([listener.hostname]);
      for (const { hostname } of this.#model.hosts(listener.id)) {
        if (this.#model.owner(this.#port.id, hostname)?.id === listener.id) patterns.add(hostname);
      }
      const { socket, closes } =
        treatment === "closed" ? { socket: undefined, closes: true } : terminating(listener, isUsable);
      for (const pattern of [...patterns].sort()) {
        const chains = this.#chains(closes ? undefined : this.#ruleOf(listener, pattern), {
          name: `${listener.id} ${pattern}`,
          serverNames: pattern === "" ? [] : [pattern],
          tls: true,
          transportSocket: socket,
        });
        found.push({ pattern, chains });
      }
    }
    return found;
  }

  tcpChains(): readonly Message<proto.FilterChain>[] {
    return this.#chains(this.#onlyRule(), { name: "tcp", serverNames: [], tls: false });
  }

  /**
   * Datagrams are shared out by a cluster with a part for each backend, since Envoy has no other
   * weights for them.
   */
  udpCluster(): UdpTarget {
    const rule = this.#onlyRule();
    const admission = this.#admissionOf(rule);
    if (admission === undefined) return { name: NOWHERE, own: [] };
    const admitted =
      admission === "everybody" ? {} : { admission: { shape: shapeOf(admission), others: NOWHERE } };
    const targets = this.#targets(rule);
    const [first] = targets;
    if (first === undefined || targets.length === 1)
      return { name: first?.name ?? NOWHERE, own: [], ...admitted };
    const name = `${this.#port.id}#udp`;
    const localities = targets.map((target, index) => ({
      name: String(index),
      weight: target.weight,
      endpoints: servableEndpoints(
        (target.backend === undefined ? undefined : this.#model.get("backend", target.backend))?.endpoints ??
          DISCARD,
      ),
    }));
    // A session is to UDP what a client's connection is to the others.
    const { connections } = tenantLimits(this.#model.gateway?.tenantLimits);
    const limits = { connections, requests: 0 };
    const content = cluster({
      name,
      service: name,
      http: "1",
      connectTimeoutMs: 1_000,
      weighted: true,
      limits,
    });
    this.#own.push(name);
    return {
      name,
      ...admitted,
      own: [
        resource("cluster", name, content),
        resource("endpoints", name, loadAssignment(name, localities)),
      ],
    };
  }

  #onlyRule(): Rule | undefined {
    const [listener] = [...this.#model.streamListeners(this.#port.id)].sort(byId);
    if (listener === undefined || this.treatmentOf(listener.id) !== undefined) return undefined;
    return this.#ruleOf(listener, "");
  }

  #ruleOf(listener: ListenerItem, pattern: string): Rule | undefined {
    for (const host of this.#model.hostsCovering(listener.id, pattern)) {
      if (host.rules.length > 0) return host.rules[0];
    }
    return undefined;
  }

  /**
   * By the addresses of clients, so that who is not let in is closed before the backend is
   * connected to: a filter would look only at the first bytes that a client sends.
   */
  #chains(
    rule: Rule | undefined,
    shape: Omit<ChainShape, "filter" | "sources">,
  ): readonly Message<proto.FilterChain>[] {
    const { name, serverNames, tls } = shape;
    const admission = this.#admissionOf(rule);
    const closed = (suffix: string, sources?: ChainShape["sources"]): Message<proto.FilterChain> =>
      filterChain({ name: `${name} ${suffix}`, serverNames, tls, sources, filter: this.#filter(undefined) });
    if (admission === undefined) return [closed("closed")];
    const open = (sources?: ChainShape["sources"]): Message<proto.FilterChain> =>
      filterChain({ ...shape, sources, filter: this.#filter(rule) });
    if (admission === "everybody") return [open()];
    const { allow, deny, others } = shapeOf(admission);
    return [
      ...(deny.length === 0 ? [] : [closed("denied", deny)]),
      ...(allow.length === 0 ? [] : [open(allow)]),
      others ? open() : closed("others"),
    ];
  }

  /** Who may use a rule; undefined: nobody, since a guard of it cannot be applied. */
  #admissionOf(rule: Rule | undefined): Admission | "everybody" | undefined {
    const ids = rule?.guards ?? [];
    for (const id of ids) this.dependsOn.add(id);
    const guards = guardsOf(ids, (id) => this.#model.get("guard", id));
    const isApplicable = guards?.every(({ check }) => check.type === "addresses");
    return guards === undefined || isApplicable !== true ? undefined : admissionOfChecks(guards);
  }

  #filter(rule: Rule | undefined): Message<proto.Filter> {
    const targets = this.#targets(rule);
    return tcpProxy({
      clusters: targets.length === 0 ? [{ name: NOWHERE, weight: 1 }] : targets,
      idleTimeoutMs: STREAM_IDLE_MS,
    });
  }

  #targets(rule: Rule | undefined): readonly Target[] {
    if (rule?.action.type !== "forward") return [];
    return rule.action.backends
      .filter(({ weight }) => weight > 0)
      .map(({ backend: id, weight }) => {
        if (id !== undefined) this.dependsOn.add(id);
        const backend = id === undefined ? undefined : this.#model.get("backend", id);
        if (backend === undefined || backend.refused !== undefined) return { name: NOWHERE, weight };
        const name = clusterName(backend.gateway, backend.id, "plain");
        this.clusters.set(name, backend.id);
        return { name, weight, backend: backend.id };
      });
  }
}

interface UdpTarget {
  /** Of the cluster. */
  readonly name: string;
  readonly own: readonly XdsResource[];
  readonly admission?: NonNullable<Parameters<typeof udpProxy>[0]["admission"]>;
}

interface Target {
  /** Of the cluster. */
  readonly name: string;
  readonly weight: number;
  readonly backend?: ItemId;
}

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : 1;
}
