import { type Key, keyFor } from "../api/key.ts";
import type { ParentReference } from "../api/references.ts";
import type { Route } from "../api/routes.ts";
import type { Engine } from "../engine/engine.ts";
import { backendId, sharedBackendId } from "../engine/foundation/item-ids.ts";
import type { ParentOutcome } from "../engine/routes/route-attachment.ts";
import type { RouteVerdict } from "../engine/verdicts/verdicts.ts";
import { policiesOfRoute, policiesOfService } from "./build-policies.ts";
import type { StateSources } from "./build-state.ts";
import { isRoute } from "./is-route.ts";
import { type BackendView, type RouteView, refOf, type StrayRoute } from "./merged-state.ts";
import { heldRefusalAt } from "./pending-refusal.ts";

/** Routes by the key of each listener that they are attached to. */
export function indexRoutes({
  engine,
  resources,
  isLive,
}: StateSources): ReadonlyMap<string, readonly RouteView[]> {
  const endpoints = endpointCounts(engine);
  const found = new Map<string, RouteView[]>();
  for (const { route: key, parents } of engine.routeAttachments()) {
    const route = resources.get(key);
    if (route === undefined || !isRoute(route)) continue;
    for (const [listener, { gateway, hostnames, parent }] of bindingsOf(parents)) {
      const view: RouteView = {
        ...refOf(key),
        hostnames,
        rules: route.spec.rules?.length ?? 0,
        problems: [
          ...problemsAt(routeVerdict(engine, key), parent),
          ...(isLive === true ? heldAt(route, parents[parent]?.ref) : []),
        ],
        policies: policiesOfRoute(engine, { key, resource: route }, parents[parent]?.ref),
        backends: backendsOf(route, gateway, { engine, resources, endpoints }),
      };
      const present = found.get(listener);
      if (present === undefined) found.set(listener, [view]);
      else present.push(view);
    }
  }
  for (const routes of found.values()) {
    routes.sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1));
  }
  return found;
}

interface BoundAt {
  readonly gateway: Key;
  readonly hostnames: readonly string[];
  /** Index in the verdict's parents. */
  readonly parent: number;
}

/** Two parentRefs may lead to one listener. */
function bindingsOf(parents: readonly ParentOutcome[]): ReadonlyMap<string, BoundAt> {
  const found = new Map<string, BoundAt>();
  for (const [parent, { bindings }] of parents.entries()) {
    for (const { listener, gateway, hostnames } of bindings) {
      const before = found.get(listener)?.hostnames ?? [];
      const patterns = hostnames.map(({ pattern }) => pattern);
      found.set(listener, { gateway, parent, hostnames: [...new Set([...before, ...patterns])] });
    }
  }
  return found;
}

function problemsAt(verdict: RouteVerdict | undefined, parent: number): RouteView["problems"] {
  return (verdict?.parents[parent]?.conditions ?? [])
    .filter(({ type, status }) => (type === "PartiallyInvalid" ? status === "True" : status === "False"))
    .map(({ reason, message }) => ({ reason, message }));
}

function heldAt(route: Route, ref: ParentReference | undefined): RouteView["problems"] {
  const held = ref && heldRefusalAt(route, ref);
  return held === undefined ? [] : [{ reason: held.reason, message: held.message }];
}

/** Ready endpoints by the id of the backend as everybody reaches it. */
function endpointCounts(engine: Engine): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const item of engine.plan())
    if (item.type === "backend") counts.set(sharedBackendId(item.id), item.endpoints.length);
  return counts;
}

function backendsOf(
  route: Route,
  gateway: Key,
  {
    engine,
    resources,
    endpoints,
  }: Pick<StateSources, "engine" | "resources"> & { readonly endpoints: ReadonlyMap<string, number> },
): BackendView[] {
  const found = new Map<string, BackendView>();
  for (const { backendRefs } of route.spec.rules ?? []) {
    for (const { kind, namespace = route.metadata.namespace ?? "", name, port, weight } of backendRefs ??
      []) {
      const ready = endpoints.get(backendId(gateway, { namespace, name, port: port ?? 0 }));
      const service = resources.get(keyFor("Service", namespace, name));
      const policies =
        service?.kind === "Service" ? policiesOfService(engine, service, { gateway, port }) : [];
      const view: BackendView = {
        kind,
        namespace,
        name,
        ...(port === undefined ? {} : { port }),
        weight,
        ...(ready === undefined ? {} : { endpoints: ready }),
        ...(policies.length === 0 ? {} : { policies }),
      };
      found.set(`${keyFor("Service", namespace, name)}:${port}:${weight}`, view);
    }
  }
  return [...found.values()];
}

export function strayRoutes({ engine, resources }: StateSources): StrayRoute[] {
  const stray: StrayRoute[] = [];
  for (const [key, route] of resources) {
    if (!isRoute(route)) continue;
    const verdict = routeVerdict(engine, key);
    const accepted = verdict?.parents.some(({ conditions }) =>
      conditions.some(({ type, status }) => type === "Accepted" && status === "True"),
    );
    if (!accepted)
      stray.push({ ...refOf(key), hostnames: hostnamesOf(route), parents: refusals(route, verdict) });
  }
  return stray;
}

function hostnamesOf({ spec }: Route): readonly string[] {
  return "hostnames" in spec ? (spec.hostnames ?? []) : [];
}

/** A parent that the engine says nothing about is not there, or is another controller's. */
function refusals(route: Route, verdict: RouteVerdict | undefined): StrayRoute["parents"] {
  return (route.spec.parentRefs ?? []).map((reference) => {
    const judged = verdict?.parents.find(({ parentRef }) => parentRef === reference);
    const accepted = judged?.conditions.find(({ type }) => type === "Accepted");
    return {
      parent: {
        kind: reference.kind,
        namespace: reference.namespace ?? route.metadata.namespace ?? "",
        name: reference.name,
        section: reference.sectionName ?? "",
      },
      reason: accepted?.reason ?? "ParentNotFound",
      message: accepted?.message ?? `there is no ${reference.kind} of that name here that Mergeway serves`,
    };
  });
}

function routeVerdict(engine: Engine, key: Key): RouteVerdict | undefined {
  const verdict = engine.verdict(key);
  return verdict?.type === "route" ? verdict : undefined;
}
