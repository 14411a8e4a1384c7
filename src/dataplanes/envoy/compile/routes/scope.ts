/**
 * One scope: what a hostname pattern at a port means. A port has a scope for every listener and for
 * every host whose names belong to its own listener, so the most specific scope of a name always
 * belongs to the name's listener (isolation), and a tenant is a few small scopes.
 *
 * The rules of the host come first, then those of wider hosts of the same listener.
 */

import { isWildcard } from "../../../../plan/hostname.ts";
import type { HostItem, ListenerItem, PortItem } from "../../../../plan/plan.ts";
import { type Reference, resource, type XdsResource } from "../../ads/resource.ts";
import {
  type FilterConfigs,
  filterOff,
  headerMatch,
  luaOn,
  route,
  routeMatch,
  scopedRoutes,
} from "../../messages/route.ts";
import * as proto from "../../wire/proto.ts";
import { type Message, message, nested } from "../../wire/protobuf.ts";
import type { ClusterUse } from "../backend-cluster.ts";
import type { Model } from "../model.ts";
import {
  CLIENTS_HEADER,
  clusterName,
  endpointsName,
  listenerWord,
  NORMAL_FILTER,
  SCOPE_HEADER,
  SNI_HEADER,
  scopeName,
  TENANCY_FILTER,
} from "../names.ts";
import { clientsMark } from "../own-clients.ts";
import { ScopeCompression } from "./compression.ts";
import { ScopeGuards } from "./guards.ts";
import { defaultRetry } from "./retries.ts";
import { ruleRoutes } from "./rule-routes.ts";

const REPLAY_BYTES = 64 * 1024;

export interface CompiledScope {
  readonly resource: XdsResource;
  readonly listener: ListenerItem;
  /** Backends that it forwards to. */
  readonly clusters: ReadonlyMap<string, ClusterUse & { readonly backend: string }>;
  /** Backends and guards that decide what it looks like. */
  readonly dependsOn: ReadonlySet<string>;
}

/** What a scope is made of, if it is not what the model says. */
export interface ScopeContent {
  readonly name?: string;
  readonly hosts: readonly Pick<HostItem, "hostname" | "rules">[];
}

/** The hosts whose rules a scope has, most specific first; undefined: there is no such scope. */
export function hostsOfScope(model: Model, port: PortItem, pattern: string): readonly HostItem[] | undefined {
  const listener = model.httpOwner(port.id, pattern);
  if (listener === undefined) return undefined;
  if (listener.hostname !== pattern && !model.hasHost(listener.id, pattern)) return undefined;
  return [...model.hostsCovering(listener.id, pattern)];
}

export function compileScope(
  model: Model,
  port: PortItem,
  pattern: string,
  content?: ScopeContent,
): CompiledScope | undefined {
  const listener = model.httpOwner(port.id, pattern);
  const hosts = content?.hosts ?? hostsOfScope(model, port, pattern);
  if (listener === undefined || hosts === undefined) return undefined;
  const rules = hosts.flatMap((host) => host.rules);
  const guards = new ScopeGuards(rules, (id) => model.get("guard", id));
  const compression = new ScopeCompression(rules);
  const common = [...guards.none.perFilter, ...compression.none];
  const name = content?.name ?? scopeName(port, pattern);
  const clusters = new Map<string, ClusterUse & { readonly backend: string }>();
  const dependsOn = new Set<string>();
  const routes: Message<proto.Route>[] =
    port.protocol === "tls"
      ? [misdirected(name, listener, { pattern, common }), ...unproven(listener, port, { pattern, common })]
      : [];
  for (const host of hosts) {
    for (const rule of host.rules) {
      for (const id of rule.guards ?? []) dependsOn.add(id);
      for (const each of ruleRoutes(rule, {
        port,
        scope: pattern,
        hostname: host.hostname,
        listener: listener.id,
        backend: (id) => model.get("backend", id),
        uses: (backend, { variant, isRetried }) => {
          const cluster = clusterName(port.gateway, backend, variant);
          const wasRetried = clusters.get(cluster)?.isRetried === true;
          clusters.set(cluster, { backend, variant, isRetried: isRetried || wasRetried });
        },
        dependsOn: (backend) => dependsOn.add(backend),
        guards,
        compression,
      }))
        routes.push(traced(each, model.routeTracing?.(listener, rule.origin)));
    }
  }
  routes.push(unmatched(listener, { pattern, common }));
  const encoded = scopedRoutes({
    name,
    routes,
    retry: defaultRetry,
    replayBytes: REPLAY_BYTES,
    removeHeaders: [SCOPE_HEADER, SNI_HEADER, CLIENTS_HEADER, "x-envoy-external-address"],
    perFilter: [
      [NORMAL_FILTER, filterOff()],
      [TENANCY_FILTER, filterOff()],
      ...guards.scope,
      ...compression.scope,
    ],
  });
  const needs = [...clusters].flatMap(([cluster, { backend }]): Reference[] =>
    // A backend that is not in the plan has no cluster to wait for, and is 503.
    model.get("backend", backend) === undefined
      ? []
      : [
          { kind: "cluster", name: cluster },
          { kind: "endpoints", name: endpointsName(port.gateway, backend) },
        ],
  );
  return { resource: resource("scope", name, encoded, { needs }), listener, clusters, dependsOn };
}

/** A field more: messages are joined by joining their bytes. */
function traced(
  route: Message<proto.Route>,
  tracing: Message<proto.RouteTracing> | undefined,
): Message<proto.Route> {
  if (tracing === undefined) return route;
  const more = message(nested(proto.Route.tracing, tracing));
  return Buffer.concat([route, more]) as Uint8Array as Message<proto.Route>;
}

interface ScopeParts {
  readonly pattern: string;
  /** What routes have that belong to no rule. */
  readonly common: FilterConfigs;
}

/**
 * Before everything else: a request whose connection was opened for another listener is 421. The
 * server name that equals the scope is the listener's own; whether another one is too, only a
 * listener with a wildcard leaves open, and the script finds out.
 */
function misdirected(
  name: string,
  listener: ListenerItem,
  { pattern, common }: ScopeParts,
): Message<proto.Route> {
  const askScript = pattern !== "" && !isWildcard(pattern) && listener.hostname !== pattern;
  return route({
    name: nameOf(listener, pattern, "misdirected"),
    match: routeMatch({
      path: { type: "any", value: "" },
      headers: [headerMatch({ name: SNI_HEADER, type: "exact", value: name, invert: true })],
      query: [],
    }),
    action: { type: "respond", status: 421 },
    perFilter: [...common, ...(askScript ? [[TENANCY_FILTER, luaOn()] as const] : [])],
  });
}

/**
 * Where client certificates are asked for, no connection from before the last change of the demand
 * gets through. A listener with a demand of its own is reached through its own filter chain alone:
 * not through the shared one, and not through that of another listener.
 */
function unproven(
  listener: ListenerItem,
  port: PortItem,
  { pattern, common }: ScopeParts,
): readonly Message<proto.Route>[] {
  const mark = clientsMark(listener, port);
  if (mark === undefined) return [];
  const unmarked = headerMatch({ name: CLIENTS_HEADER, type: "exact", value: mark, invert: true });
  return [
    route({
      name: nameOf(listener, pattern, "misdirected"),
      match: routeMatch({ path: { type: "any", value: "" }, headers: [unmarked], query: [] }),
      action: { type: "respond", status: 421 },
      perFilter: common,
    }),
  ];
}

/** What Envoy would say by itself, but with a name, so that logs know whose it was. */
function unmatched(listener: ListenerItem, { pattern, common }: ScopeParts): Message<proto.Route> {
  const match = routeMatch({ path: { type: "any", value: "" }, headers: [], query: [] });
  return route({
    name: nameOf(listener, pattern, "unmatched"),
    match,
    action: { type: "respond", status: 404 },
    perFilter: common,
  });
}

function nameOf(listener: ListenerItem, pattern: string, what: string): string {
  return [listenerWord(listener.gateway, listener.id), pattern === "" ? "*" : pattern, what].join(" ");
}
