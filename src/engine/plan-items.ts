/**
 * The plan, cut so that one tenant is one small set of items. Each collection here is one type of
 * item; a change of a route is a change of the host tables that it stands in, a change of a
 * certificate is a change of that certificate.
 */
import type { Key } from "../api/key.ts";
import type { ReadonlyCollection } from "../graph/collection.ts";
import type { Graph } from "../graph/graph.ts";
import type { Index } from "../graph/index-collection.ts";
import type { Entries } from "../graph/sorted-entries.ts";
import type { BackendItem } from "../plan/backend.ts";
import type { CertificateItem } from "../plan/certificate.ts";
import type { GuardItem } from "../plan/guard.ts";
import type { GatewayItem, HostItem, ListenerItem, PlanItem, PortItem } from "../plan/plan.ts";
import type { Inputs } from "./foundation/inputs.ts";
import {
  backendId,
  certificateId,
  gatewayId,
  gatewayName,
  hostId,
  listenerId,
  portId,
} from "./foundation/item-ids.ts";
import { ageRank } from "./foundation/precedence.ts";
import type { GatewayReferences } from "./listeners/gateway-references.ts";
import type { GatewayState } from "./listeners/gateways.ts";
import { type ListenerKey, portProtocolOf, transportOf } from "./listeners/listeners.ts";
import { isServing, type MergedListener, portOf } from "./listeners/merge.ts";
import {
  type AttachedBackendPolicies,
  backendLevels,
  effectiveBackend,
} from "./policies/backend-settings.ts";
import { validationOfGateway, validationOfListener } from "./policies/client-certificates.ts";
import { type ClientPolicies, clientAddressAt, clientLimitsAt } from "./policies/client-policies.ts";
import { guardedRules } from "./policies/guard-items.ts";
import type { ListenerLevels, TrafficPolicies } from "./policies/traffic-policies.ts";
import type { BackendPolicies } from "./references/backend-policies.ts";
import { type BackendUse, deriveBackends } from "./references/backends.ts";
import type { Certificates } from "./references/certificates.ts";
import { type FrontendSettings, validationForPort } from "./references/frontend-validation.ts";
import type { ServiceEndpoints } from "./references/refused-endpoints.ts";
import { type CompiledRoute, compiledRouteKey, NO_GATEWAY } from "./routes/compiled-routes.ts";
import type { RouteAttachment } from "./routes/route-attachment.ts";
import { compareRules, type RankedRule } from "./rules/order.ts";

export interface PlanSources {
  readonly inputs: Inputs;
  readonly states: ReadonlyCollection<GatewayState>;
  readonly merged: ReadonlyCollection<MergedListener>;
  readonly routes: ReadonlyCollection<RouteAttachment>;
  readonly compiled: ReadonlyCollection<CompiledRoute>;
  readonly certificates: Certificates;
  readonly frontends: ReadonlyCollection<FrontendSettings>;
  readonly references: ReadonlyCollection<GatewayReferences>;
  readonly policies: BackendPolicies;
  readonly endpoints: ServiceEndpoints;
  readonly trafficPolicies: TrafficPolicies;
  readonly listenerLevels: ReadonlyCollection<ListenerLevels>;
  readonly guards: ReadonlyCollection<GuardItem>;
  readonly guardBackends: ReadonlyCollection<BackendUse>;
  readonly clientPolicies: ClientPolicies;
  readonly backendPolicies: AttachedBackendPolicies;
}

export interface Plan {
  readonly items: ReadonlyCollection<PlanItem>;
  readonly backends: ReadonlyCollection<BackendItem>;
  /**
   * Which routes and guards use a backend, by its id; keys of routes begin with the route's and
   * `@`.
   */
  readonly backendUses: Index<BackendUse>;
}

export function derivePlan(graph: Graph, sources: PlanSources): Plan {
  const serving = graph.derive("serving listeners", sources.merged, (_key, listener) =>
    isServing(listener) ? listener : undefined,
  );
  const gateways = deriveGatewayItems(graph, sources);
  const ports = derivePortItems(graph, serving, sources);
  const listeners = deriveListenerItems(graph, serving, sources);
  const hosts = deriveHostItems(graph, serving, sources);
  const { backends, backendUses } = deriveBackendItems(graph, sources);
  const certificates = deriveCertificateItems(graph, serving, gateways, sources);
  const items = graph.union<PlanItem>("plan items", [
    gateways,
    ports,
    listeners,
    hosts,
    sources.guards,
    deriveRouteGuards(graph, sources),
    backends,
    certificates,
  ]);
  return { items, backends, backendUses };
}

function byId<T extends PlanItem>(item: T): readonly (readonly [string, T])[] {
  return [[item.id, item]];
}

function deriveGatewayItems(
  graph: Graph,
  { references, states }: PlanSources,
): ReadonlyCollection<GatewayItem> {
  return graph.expand<GatewayReferences, GatewayItem>(
    "gateway items",
    references,
    (key, { served, clientCertificate }, lookup) => {
      if (!served) return [];
      const limits = lookup.get(states, key)?.tenantLimits;
      return byId({
        type: "gateway",
        id: gatewayId(key),
        gateway: gatewayName(key),
        ...(clientCertificate === undefined
          ? {}
          : { clientCertificate: certificateId(key, clientCertificate) }),
        ...(limits === undefined ? {} : { tenantLimits: limits }),
      });
    },
  );
}

function derivePortItems(
  graph: Graph,
  serving: ReadonlyCollection<MergedListener>,
  sources: PlanSources,
): ReadonlyCollection<PortItem> {
  const { frontends, clientPolicies } = sources;
  const byPort = graph.index("serving listeners by port", serving, (_key, listener) => [
    { at: portOf(listener), sort: listener.rank },
  ]);
  return graph.expand<Entries<{ readonly value: MergedListener }>, PortItem>(
    "port items",
    byPort,
    (_key, entries, lookup) => {
      const listener = entries.at(0)?.value;
      if (listener?.protocol === undefined) return [];
      const { gateway, port, protocol } = listener;
      const transport = transportOf(protocol);
      const reading = portProtocolOf(protocol);
      const frontend = validationForPort(lookup.get(frontends, gateway), port)?.validation;
      const clients = reading === "tls" ? validationOfGateway(gateway, frontend, lookup, sources) : undefined;
      const clientAddress =
        transport === "tcp" ? clientAddressAt(gateway, lookup, clientPolicies) : undefined;
      const clientLimits =
        reading === "http" || reading === "tls" ? clientLimitsAt(gateway, lookup, clientPolicies) : undefined;
      return byId({
        type: "port",
        id: portId(gateway, transport, port),
        gateway: gatewayName(gateway),
        transport,
        port,
        protocol: reading,
        ...(clients === undefined ? {} : { clientValidation: clients }),
        ...(clientAddress === undefined ? {} : { clientAddress }),
        ...(clientLimits === undefined ? {} : { clientLimits }),
      });
    },
  );
}

function deriveListenerItems(
  graph: Graph,
  serving: ReadonlyCollection<MergedListener>,
  sources: PlanSources,
): ReadonlyCollection<ListenerItem> {
  return graph.expand<MergedListener, ListenerItem>("listener items", serving, (key, listener, lookup) => {
    const { owner, gateway, port, protocol, hostname, section, rank, spec, certificates, tlsOptions } =
      listener;
    if (protocol === undefined) return [];
    const mode = spec.tls?.mode ?? "Terminate";
    const ends = portProtocolOf(protocol) === "tls" && mode === "Terminate";
    const frontend = ends ? validationForPort(lookup.get(sources.frontends, gateway), port) : undefined;
    const clientValidation = ends
      ? validationOfListener(listener, frontend?.validation, lookup, sources)
      : undefined;
    const tls =
      portProtocolOf(protocol) === "tls"
        ? {
            mode,
            certificates: certificates.map((secret) => certificateId(gateway, secret)),
            ...tlsOptions,
            ...(clientValidation === undefined ? {} : { clientValidation }),
          }
        : undefined;
    return byId({
      type: "listener",
      id: listenerId(gateway, key),
      gateway: gatewayName(gateway),
      port: portId(gateway, transportOf(protocol), port),
      owner: { kind: owner.kind, namespace: owner.namespace, name: owner.name },
      section,
      rank,
      hostname,
      protocol,
      ...(tls === undefined ? {} : { tls }),
    });
  });
}

/** One route under one hostname of one listener. */
interface Hosting {
  readonly listener: ListenerKey;
  readonly gateway: Key;
  readonly route: Key;
  readonly pattern: string;
  readonly asked: string;
}

function deriveHostItems(
  graph: Graph,
  serving: ReadonlyCollection<MergedListener>,
  { inputs, routes, compiled, trafficPolicies, listenerLevels }: PlanSources,
): ReadonlyCollection<HostItem> {
  const hostings = graph.expand<RouteAttachment, Hosting>("hostings", routes, (route, { parents }) => {
    const found = new Map<string, Hosting>();
    for (const { bindings } of parents) {
      for (const { listener, gateway, hostnames } of bindings) {
        for (const { pattern, asked } of hostnames) {
          const at = `${listener}|${pattern}`;
          const present = found.get(at);
          // Two hostnames of a route may meet in one pattern: the more specific one counts.
          if (present === undefined || asked.length > present.asked.length) {
            found.set(at, { listener, gateway, route, pattern, asked });
          }
        }
      }
    }
    // Keys by place rather than by content: there is one for each route and hostname.
    return [...found.values()].map((hosting, place) => [`${route}|${place}`, hosting] as const);
  });
  const byHost = graph.index("hostings by host", hostings, (_key, { gateway, listener, pattern }) => [
    { at: hostId(gateway, listener, pattern) },
  ]);
  return graph.derive<Entries<{ readonly value: Hosting }>, HostItem>(
    "host items",
    byHost,
    (id, entries, lookup) => {
      const first = entries.at(0)?.value;
      const listener = first && lookup.get(serving, first.listener);
      if (first === undefined || listener === undefined) return undefined;
      const levels = lookup.get(listenerLevels, first.listener);
      const ranked = [...entries].flatMap(({ value: { route, gateway, asked } }): RankedRule[] => {
        const source = lookup.get(inputs.routes, route);
        const age = source === undefined ? "" : ageRank(source.metadata);
        const rules = lookup.get(compiled, compiledRouteKey(route, gateway))?.rules ?? [];
        const place = { gateway, route, levels, isSecure: listener.protocol !== "HTTP" };
        const guarded = guardedRules(rules, place, lookup, { policies: trafficPolicies, inputs });
        return guarded.map((rule) => ({ rule, asked, age }));
      });
      return {
        type: "host",
        id,
        gateway: gatewayName(first.gateway),
        listener: listenerId(first.gateway, first.listener),
        hostname: first.pattern,
        rules: ranked
          .sort(compareRules)
          .map(({ rule, asked }) => (asked === first.pattern ? rule : { ...rule, asked })),
      };
    },
  );
}

/** Guards that stand in the rules of routes themselves. */
function deriveRouteGuards(graph: Graph, { compiled }: PlanSources): ReadonlyCollection<GuardItem> {
  return graph.expand<CompiledRoute, GuardItem>("guards of routes", compiled, (_key, { gateway, guards }) =>
    gateway === NO_GATEWAY ? [] : guards.flatMap(byId),
  );
}

function deriveBackendItems(
  graph: Graph,
  { inputs, compiled, guardBackends, policies, endpoints, backendPolicies }: PlanSources,
): Pick<Plan, "backends" | "backendUses"> {
  const ofRoutes = graph.expand<CompiledRoute, BackendUse>(
    "backend uses of routes",
    compiled,
    (key, { gateway, targets }) =>
      gateway === NO_GATEWAY
        ? []
        : targets.map((target, place) => [`${key}|${place}`, { gateway, target }] as const),
  );
  const uses = graph.union("backend uses", [ofRoutes, guardBackends]);
  const backendUses = graph.index("uses by backend", uses, (_key, { gateway, target }) => [
    { at: backendId(gateway, target) },
  ]);
  const backends = deriveBackends(graph, inputs, backendUses, {
    policies,
    endpoints,
    settingsOf: ({ gateway, target, portName }, lookup) =>
      effectiveBackend(backendLevels({ gateway, target, portName }, lookup, backendPolicies)),
  });
  return { backends, backendUses };
}

function deriveCertificateItems(
  graph: Graph,
  serving: ReadonlyCollection<MergedListener>,
  gateways: ReadonlyCollection<GatewayItem>,
  { certificates, references }: PlanSources,
): ReadonlyCollection<CertificateItem> {
  interface Use {
    readonly gateway: Key;
    readonly secret: Key;
  }
  const ofListeners = graph.expand<MergedListener, Use>(
    "certificates of listeners",
    serving,
    (key, listener) =>
      listener.certificates.map(
        (secret) => [`${key}|${secret}`, { gateway: listener.gateway, secret }] as const,
      ),
  );
  const ofGateways = graph.expand<GatewayItem, Use>(
    "certificates of gateways",
    gateways,
    (id, _item, lookup) => {
      const key = id.replace("gateway:", "Gateway/");
      const secret = lookup.get(references, key)?.clientCertificate;
      return secret === undefined ? [] : [[`${key}|${secret}`, { gateway: key, secret }] as const];
    },
  );
  const uses = graph.union("certificate uses", [ofListeners, ofGateways]);
  const bySecret = graph.index("uses by certificate", uses, (_key, { gateway, secret }) => [
    { at: `${gateway}|${secret}` },
  ]);
  return graph.expand<Entries<{ readonly value: Use }>, CertificateItem>(
    "certificate items",
    bySecret,
    (_key, entries, lookup) => {
      const use = entries.at(0)?.value;
      const reading = use && lookup.get(certificates.keyPairs, use.secret);
      if (use === undefined || reading === undefined || "problem" in reading) return [];
      const { chain, key, names } = reading.pair;
      const { gateway, secret } = use;
      return byId({
        type: "certificate",
        id: certificateId(gateway, secret),
        gateway: gatewayName(gateway),
        chain,
        key,
        names,
      });
    },
  );
}
