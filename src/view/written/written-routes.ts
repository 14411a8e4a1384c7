/**
 * Routes at the listeners that have taken them, as their statuses say. A status names the parent,
 * not its listeners: those are the ones that the route and the listener agree on.
 */
import type { Gateway, Listener, ListenerSet } from "../../api/gateway.ts";
import { type Key, keyFor } from "../../api/key.ts";
import type { ParentReference } from "../../api/references.ts";
import type { Resource } from "../../api/resource.ts";
import type { Route } from "../../api/routes.ts";
import type { Verdict } from "../../engine/foundation/verdict.ts";
import { listenerKey } from "../../engine/listeners/listeners.ts";
import { intersectPatterns } from "../../plan/hostname.ts";
import { isRoute } from "../is-route.ts";
import { type RouteView, refOf, type StrayRoute } from "../merged-state.ts";
import { currentVerdicts } from "./current-verdicts.ts";
import { BackendIndex } from "./written-backends.ts";
import type { PolicyIndex } from "./written-policies.ts";

export type RoutesByListener = ReadonlyMap<string, readonly RouteView[]>;

interface RouteSources {
  readonly resources: ReadonlyMap<Key, Resource>;
  readonly controllerName: string;
}

interface PlacedRoutes {
  readonly routes: RoutesByListener;
  readonly stray: readonly StrayRoute[];
}

export function placeRoutes(
  owners: readonly (Gateway | ListenerSet)[],
  { resources, controllerName }: RouteSources,
  policies: PolicyIndex,
): PlacedRoutes {
  const backends = new BackendIndex(resources);
  const byKey = new Map(
    owners.map((owner) => [keyFor(owner.kind, owner.metadata.namespace ?? "", owner.metadata.name), owner]),
  );
  const routes = new Map<string, RouteView[]>();
  const stray: StrayRoute[] = [];
  for (const [key, route] of resources) {
    if (!isRoute(route)) continue;
    const parents = (route.spec.parentRefs ?? []).map((reference) => ({
      reference,
      verdicts: verdictsAt(route, reference, controllerName),
    }));
    const accepted = parents.filter(({ verdicts }) => isAccepted(verdicts));
    if (accepted.length === 0)
      stray.push({
        ...refOf(key),
        hostnames: hostnamesOf(route),
        parents: parents.map((each) => refusalOf(route, each)),
      });
    for (const { reference, verdicts } of accepted) {
      for (const [listener, hostnames] of listenersOf(route, reference, byKey)) {
        const view: RouteView = {
          ...refOf(key),
          hostnames,
          rules: route.spec.rules?.length ?? 0,
          problems: problemsIn(verdicts),
          policies: policies.all(key),
          backends: backends.of(route),
        };
        const present = routes.get(listener);
        if (present === undefined) routes.set(listener, [view]);
        // Two parentRefs may lead to one listener.
        else if (!isSame(present.at(-1), view)) present.push(view);
      }
    }
  }
  return { routes, stray };
}

function isSame(before: RouteView | undefined, { kind, namespace, name }: RouteView): boolean {
  return before?.kind === kind && before.namespace === namespace && before.name === name;
}

/** Gateways and sets that routes are attached to, and that may not be read themselves. */
export function unreadParents(
  routes: RoutesByListener,
  resources: ReadonlyMap<Key, Resource>,
): readonly Key[] {
  const parents = new Set(Array.from(routes.keys(), (listener) => listener.slice(0, listener.indexOf("#"))));
  return [...parents].filter((key) => !resources.has(key));
}

interface JudgedParent {
  readonly reference: ParentReference;
  readonly verdicts: readonly Verdict[];
}

function verdictsAt(
  { metadata, status }: Route,
  { kind, name, namespace, sectionName, port }: ParentReference,
  controllerName: string,
): readonly Verdict[] {
  const own = metadata.namespace;
  const entry = (status?.parents ?? []).find(
    ({ parentRef, controllerName: writer }) =>
      writer === controllerName &&
      parentRef.kind === kind &&
      parentRef.name === name &&
      (parentRef.namespace ?? own) === (namespace ?? own) &&
      parentRef.sectionName === sectionName &&
      parentRef.port === port,
  );
  return currentVerdicts(metadata, entry?.conditions);
}

function isAccepted(verdicts: readonly Verdict[]): boolean {
  return verdicts.some(({ type, status }) => type === "Accepted" && status === "True");
}

function problemsIn(verdicts: readonly Verdict[]): RouteView["problems"] {
  return verdicts
    .filter(({ type, status }) => (type === "PartiallyInvalid" ? status === "True" : status === "False"))
    .map(({ reason, message }) => ({ reason, message }));
}

function refusalOf(route: Route, { reference, verdicts }: JudgedParent): StrayRoute["parents"][number] {
  const refused = verdicts.find(({ type }) => type === "Accepted");
  return {
    parent: {
      kind: reference.kind,
      namespace: reference.namespace ?? route.metadata.namespace ?? "",
      name: reference.name,
      section: reference.sectionName ?? "",
    },
    reason: refused?.reason ?? "Pending",
    message: refused?.message ?? "no controller has written that it serves the route here",
  };
}

/** Listeners of the parent that suit the route, with the hostnames that it has there. */
function listenersOf(
  route: Route,
  { kind, namespace = route.metadata.namespace ?? "", name, sectionName, port }: ParentReference,
  owners: ReadonlyMap<Key, Gateway | ListenerSet>,
): readonly (readonly [listener: string, hostnames: readonly string[]])[] {
  const key = keyFor(kind as Resource["kind"], namespace, name);
  const owner = owners.get(key);
  if (owner === undefined) return [[listenerKey(key, sectionName ?? ""), hostnamesOf(route)]];
  return (owner.spec.listeners ?? []).flatMap((listener) => {
    const status = owner.status?.listeners?.find((each) => each.name === listener.name);
    const isMeant =
      (sectionName === undefined || sectionName === listener.name) &&
      (port === undefined || port === (listener.port || status?.port));
    const isSupported = status?.supportedKinds.some((each) => each.kind === route.kind) === true;
    if (!isMeant || !isSupported || !letsIn(listener, namespace, route)) return [];
    const hostnames = hostnamesAt(route, listener.hostname ?? "");
    return hostnames.length === 0 ? [] : [[listenerKey(key, listener.name), hostnames] as const];
  });
}

/** A selector cannot be judged without the namespaces' labels: the status of the route counts. */
function letsIn({ allowedRoutes }: Listener, namespace: string, { metadata }: Route): boolean {
  const from = allowedRoutes?.namespaces?.from ?? "Same";
  return from === "Same" ? metadata.namespace === namespace : from !== "None";
}

function hostnamesAt(route: Route, listener: string): readonly string[] {
  const own = hostnamesOf(route);
  if (own.length === 0) return [listener];
  return own.flatMap((hostname) => intersectPatterns(listener, hostname) ?? []);
}

function hostnamesOf({ spec }: Route): readonly string[] {
  return "hostnames" in spec ? (spec.hostnames ?? []) : [];
}
