/**
 * Which listeners a route attaches to, per parentRef (GEP-1713, Summary of Attachments): the direct
 * parent's own listeners, never those of its sets or of its parent; `sectionName` and `port` narrow
 * them; then kind and namespace (allowedRoutes) and hostname must fit. A route that uses default
 * Gateways (spec.useDefaultGateways) has every Gateway with spec.defaultScope All as a parent, too.
 * A route may attach to a conflicted listener: it serves as soon as the conflict is over.
 */
import type { AllowedRoutes, Gateway } from "../../api/gateway.ts";
import { type Key, keyFor, partsOf } from "../../api/key.ts";
import type { ParentReference } from "../../api/references.ts";
import { GATEWAY_GROUP, GROUP_OF_KIND, type Kind } from "../../api/resource.ts";
import type { Route } from "../../api/routes.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import { intersectPatterns, isPattern } from "../../plan/hostname.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { ageRank } from "../foundation/precedence.ts";
import { allowsNamespace } from "../foundation/selectors.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { Attachment } from "../listeners/attachment.ts";
import type { EvaluatedListener, ListenerKey } from "../listeners/listeners.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";
import { hostnameProblem, listenerProblem, routeKindProblem } from "../tenancy/tenant-rights.ts";
import { deriveRouteQuota, type RouteQuota } from "./route-quota.ts";

/** A route at one listener. */
export interface RouteBinding {
  readonly listener: ListenerKey;
  readonly gateway: Key;
  readonly hostnames: readonly BoundHostname[];
}

export interface BoundHostname {
  /** What is served: the intersection of the listener's pattern and the route's. */
  readonly pattern: string;
  /**
   * What the route itself asked for: its specificity decides between routes
   * (HTTPRoute.spec.hostnames).
   */
  readonly asked: string;
}

export interface ParentOutcome {
  readonly ref: ParentReference;
  readonly bindings: readonly RouteBinding[];
  readonly refused?: Failure;
  /** The Gateway whose TenantPolicy is violated; also where that is not enforced. */
  readonly violation?: Key;
}

export interface RouteAttachment {
  readonly route: Key;
  readonly parents: readonly ParentOutcome[];
}

const PARENT_KINDS: readonly string[] = ["Gateway", "ListenerSet", "XListenerSet"];

export interface RouteSources {
  readonly attachments: ReadonlyCollection<Attachment>;
  readonly listenersOfOwner: Index<EvaluatedListener>;
  readonly tenancy: Tenancy;
}

export function deriveRouteAttachments(
  graph: Graph,
  inputs: Inputs,
  sources: RouteSources,
): { readonly routes: ReadonlyCollection<RouteAttachment>; readonly routeQuota: RouteQuota } {
  const defaultGateways = graph.index("default gateways", inputs.gateways, (_key, { spec }) =>
    spec.defaultScope === "All" ? [{ at: "All" }] : [],
  );
  const evaluated = graph.derive<Route, RouteAttachment>(
    "route attachments",
    inputs.routes,
    (key, route, lookup) => {
      const named = route.spec.parentRefs ?? [];
      const byDefault =
        route.spec.useDefaultGateways === "All" ? lookup.all(defaultGateways, "All").map(referenceTo) : [];
      const unnamed = byDefault.filter((ref) => !named.some((other) => isSameParent(other, ref, route)));
      const parents = [...named, ...unnamed].flatMap(
        (ref) => attach(route, ref, lookup, inputs, sources) ?? [],
      );
      return parents.length === 0 ? undefined : { route: key, parents: exact(parents) };
    },
  );
  const routeQuota = deriveRouteQuota(graph, inputs, { evaluated, tenancy: sources.tenancy });
  return { routes: settleRivalries(graph, inputs, evaluated, routeQuota), routeQuota };
}

function referenceTo({ metadata }: Gateway): ParentReference {
  return { group: GATEWAY_GROUP, kind: "Gateway", namespace: metadata.namespace ?? "", name: metadata.name };
}

/** A Gateway that the route names itself is its parent as named, with section and port. */
function isSameParent(named: ParentReference, other: ParentReference, route: Route): boolean {
  return (
    named.kind === other.kind &&
    named.name === other.name &&
    (named.namespace ?? route.metadata.namespace) === other.namespace
  );
}

/** Undefined when the parent is none of ours. */
function attach(
  route: Route,
  ref: ParentReference,
  lookup: Lookup,
  inputs: Inputs,
  { attachments, listenersOfOwner, tenancy }: RouteSources,
): ParentOutcome | undefined {
  if (!PARENT_KINDS.includes(ref.kind) || GROUP_OF_KIND[ref.kind as Kind] !== ref.group) return undefined;
  const home = route.metadata.namespace ?? "";
  const ownerKey = keyFor(ref.kind as Kind, ref.namespace ?? home, ref.name);
  const attachment = lookup.get(attachments, ownerKey);
  if (attachment === undefined || attachment.orphan) return undefined;
  if (attachment.gateway === undefined)
    return refuse(ref, "NoMatchingParent", `the ${ref.kind} is not accepted`);

  const named = lookup
    .all(listenersOfOwner, ownerKey)
    .filter(
      (listener) =>
        (ref.sectionName === undefined || ref.sectionName === listener.section) &&
        (ref.port === undefined || ref.port === listener.port),
    );
  if (named.length === 0)
    return refuse(ref, "NoMatchingParent", `the ${ref.kind} has no listener ${describe(ref)}`);

  const allowed = named.filter((listener) => allows(listener, route, lookup, inputs));
  if (allowed.length === 0) {
    const message = `no listener of the ${ref.kind} allows a ${route.kind} from namespace ${home}`;
    return refuse(ref, "NotAllowedByListeners", message);
  }
  const bindings = allowed.flatMap((listener) => bind(listener, route) ?? []);
  if (bindings.length === 0) {
    return refuse(
      ref,
      "NoMatchingListenerHostname",
      "no hostname of the route matches a hostname of the listeners",
    );
  }
  const tenant =
    kindProblem(route, attachment.gateway, lookup, tenancy) ??
    (isOfPlatform(attachment)
      ? tenantProblem({ namespace: home, bindings, listeners: allowed }, lookup, tenancy)
      : undefined);
  if (tenant === undefined) return { ref, bindings: exact(bindings) };
  const { problem, isEnforced } = tenant;
  const violation = attachment.gateway;
  return isEnforced
    ? { ref, bindings: [], refused: problem, violation }
    : { ref, bindings: exact(bindings), violation };
}

interface AttachedRoute {
  readonly namespace: string;
  readonly bindings: readonly RouteBinding[];
  readonly listeners: readonly EvaluatedListener[];
}

interface TenantProblem {
  readonly problem: Failure;
  readonly isEnforced: boolean;
}

/** Kinds are judged at every listener of the Gateway, also at the tenant's own. */
function kindProblem(
  { kind, metadata }: Route,
  gateway: Key,
  lookup: Lookup,
  { rightsAt }: Tenancy,
): TenantProblem | undefined {
  const found = rightsAt(gateway, metadata.namespace ?? "", lookup);
  const problem = found && routeKindProblem(kind, found.rights);
  return problem && { problem, isEnforced: found.isEnforced };
}

/** A Gateway's own listeners, and those of sets and children in its own namespace. */
function isOfPlatform({ owner, gateway }: Attachment): boolean {
  return gateway !== undefined && partsOf(gateway).namespace === owner.namespace;
}

/**
 * At a listener of the platform a route brings its own hostnames. At one of a tenant it has those
 * of the listener, which have been judged there.
 */
function tenantProblem(
  { namespace, bindings, listeners }: AttachedRoute,
  lookup: Lookup,
  { rightsAt }: Tenancy,
): TenantProblem | undefined {
  for (const { gateway, listener: key, hostnames } of bindings) {
    const found = rightsAt(gateway, namespace, lookup);
    if (found === undefined) return undefined;
    const { protocol, port } = listeners.find((each) => each.key === key) ?? {};
    if (protocol === "TCP" || protocol === "UDP") {
      // Without hostnames a route is asked for as the listener would be.
      const problem = listenerProblem({ hostname: "", port, protocol }, found.rights);
      if (problem !== undefined) return { problem, isEnforced: found.isEnforced };
      continue;
    }
    for (const { pattern, asked } of hostnames) {
      const shown = asked === "" ? "a route without hostnames" : `hostname ${asked}`;
      const problem = hostnameProblem(pattern, found.rights, shown);
      if (problem !== undefined) return { problem, isEnforced: found.isEnforced };
    }
  }
  return undefined;
}

/** The copy drops the spare room of an array that grew: attachments are kept for every route. */
function exact<T>(array: readonly T[]): readonly T[] {
  return array.slice();
}

function refuse(ref: ParentReference, reason: string, message: string): ParentOutcome {
  return { ref, bindings: [], refused: { reason, message } };
}

function describe({ sectionName, port }: ParentReference): string {
  const parts = [
    ...(sectionName === undefined ? [] : [`named ${sectionName}`]),
    ...(port === undefined ? [] : [`on port ${port}`]),
  ];
  return parts.length === 0 ? "at all" : parts.join(" ");
}

function allows(listener: EvaluatedListener, route: Route, lookup: Lookup, inputs: Inputs): boolean {
  if (!listener.supportedKinds.some(({ kind }) => kind === route.kind)) return false;
  const rules: AllowedRoutes = listener.spec.allowedRoutes ?? {};
  return allowsNamespace(
    rules.namespaces ?? { from: "Same" },
    listener.owner.namespace,
    route.metadata.namespace ?? "",
    (namespace) =>
      lookup.get(inputs.namespaces, keyFor("Namespace", "", namespace))?.metadata.labels ?? {
        "kubernetes.io/metadata.name": namespace,
      },
  );
}

function bind(listener: EvaluatedListener, route: Route): RouteBinding | undefined {
  const asked = "hostnames" in route.spec ? (route.spec.hostnames ?? []) : [];
  const wanted = asked.length === 0 ? [""] : asked;
  const hostnames = wanted.flatMap((hostname): BoundHostname[] => {
    const own = hostname.toLowerCase();
    if (own !== "" && !isPattern(own)) return [];
    const pattern = intersectPatterns(listener.hostname, own);
    return pattern === undefined ? [] : [{ pattern, asked: own }];
  });
  return hostnames.length === 0
    ? undefined
    : { listener: listener.key, gateway: listener.gateway, hostnames: exact(hostnames) };
}

/**
 * An HTTPRoute and a GRPCRoute on one listener must not share a hostname: the older one stays, the
 * other is not accepted there (GRPCRoute.spec.hostnames).
 */
function settleRivalries(
  graph: Graph,
  inputs: Inputs,
  evaluated: ReadonlyCollection<RouteAttachment>,
  quota: RouteQuota,
): ReadonlyCollection<RouteAttachment> {
  const grpcAt = graph.index("grpc routes by listener", evaluated, (key, attachment) =>
    key.startsWith("GRPCRoute/") ? listenersOf(attachment).map((at) => ({ at })) : [],
  );
  const httpAt = graph.index("routes by listener", evaluated, (key, attachment) =>
    key.startsWith("HTTPRoute/") || key.startsWith("GRPCRoute/")
      ? listenersOf(attachment).map((at) => ({ at }))
      : [],
  );
  const losers = graph.derive("losing routes", httpAt, (listener, entries, lookup) => {
    if (lookup.count(grpcAt, listener) === 0 || lookup.count(grpcAt, listener) === entries.length)
      return undefined;
    const byAge = [...entries]
      .map(({ key, value }) => {
        const route = lookup.get(inputs.routes, key);
        return {
          key,
          kind: route?.kind,
          rank: route ? ageRank(route.metadata) : "",
          patterns: patternsAt(value, listener),
          isExcess: quota.isExcess(key, listenerGateway(value, listener), lookup),
        };
      })
      .sort((a, b) => (a.rank < b.rank || (a.rank === b.rank && a.key < b.key) ? -1 : 1));
    const lost: string[] = [];
    const kept: typeof byAge = [];
    for (const candidate of byAge) {
      if (candidate.isExcess) continue;
      const rival = kept.some(
        (other) =>
          other.kind !== candidate.kind &&
          other.patterns.some((a) => candidate.patterns.some((b) => intersectPatterns(a, b) !== undefined)),
      );
      if (rival) lost.push(candidate.key);
      else kept.push(candidate);
    }
    return lost.length === 0 ? undefined : lost;
  });

  return graph.derive<RouteAttachment, RouteAttachment>(
    "settled route attachments",
    evaluated,
    (key, asked, lookup) => {
      const attachment = quota.within(asked, lookup);
      const loses = (binding: RouteBinding): boolean =>
        lookup.get(losers, binding.listener)?.includes(key) ?? false;
      if (!attachment.parents.some(({ bindings }) => bindings.some(loses))) return attachment;
      const parents = attachment.parents.map((parent) => {
        const bindings = parent.bindings.filter((binding) => !loses(binding));
        if (bindings.length === parent.bindings.length) return parent;
        return bindings.length > 0 ? { ...parent, bindings } : { ...parent, bindings, refused: RIVAL };
      });
      return { ...attachment, parents };
    },
  );
}

const RIVAL: Failure = {
  reason: "Conflicted",
  message:
    "an older route of the other kind (HTTPRoute or GRPCRoute) already serves this hostname at the listener",
};

function listenersOf(attachment: RouteAttachment): ListenerKey[] {
  return [...new Set(attachment.parents.flatMap(({ bindings }) => bindings.map(({ listener }) => listener)))];
}

function listenerGateway({ parents }: RouteAttachment, listener: ListenerKey): Key {
  const bindings = parents.flatMap((parent) => parent.bindings);
  return bindings.find((binding) => binding.listener === listener)?.gateway ?? "";
}

function patternsAt(attachment: RouteAttachment, listener: ListenerKey): string[] {
  return attachment.parents.flatMap(({ bindings }) =>
    bindings
      .filter((binding) => binding.listener === listener)
      .flatMap(({ hostnames }) => hostnames.map(({ pattern }) => pattern)),
  );
}
