/**
 * What is different between two states, for whoever follows a cluster by its statuses. Costs what
 * exists, unlike state-changes.ts, which follows the engine.
 */
import type { BackendChange, ListenerChange, RouteChange, StateChange } from "../change.ts";
import {
  type ListenerView,
  listenerRefOf,
  type MergedState,
  type ObjectRef,
  refOf,
} from "../merged-state.ts";

export function stateDifference(before: MergedState, after: MergedState): readonly StateChange[] {
  const [was, is] = [contentOf(before), contentOf(after)];
  return [
    ...differences(was.listeners, is.listeners, (_key, old, now) => listenerChange(old, now)),
    ...differences(was.routes, is.routes, (key, _old, now) => routeChange(key, now)),
    ...differences(was.backends, is.backends, (_key, _old, now) => now),
  ];
}

type Problems = RouteChange["problems"];

interface Content {
  readonly listeners: ReadonlyMap<string, ListenerView>;
  readonly routes: ReadonlyMap<string, Problems>;
  readonly backends: ReadonlyMap<string, BackendChange>;
}

function contentOf({ gateways, orphans, strayRoutes }: MergedState): Content {
  const listeners = new Map<string, ListenerView>();
  const routes = new Map<string, Problems>(strayRoutes.map((route) => [keyOf(route), route.parents]));
  const backends = new Map<string, BackendChange>();
  for (const owner of [...gateways.flatMap(({ owners }) => owners), ...orphans]) {
    for (const listener of owner.listeners) {
      listeners.set(listener.key, listener);
      for (const route of listener.routes) {
        routes.set(keyOf(route), route.problems);
        for (const { namespace, name, port = 0, endpoints } of route.backends) {
          if (endpoints === undefined) continue;
          const service = { namespace, name, port };
          backends.set(`${namespace}/${name}:${port}`, { type: "backend", service, endpoints });
        }
      }
    }
  }
  return { listeners, routes, backends };
}

/** Calls for every key whose value says something else; what comes back is a change. */
function differences<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
  change: (key: string, old: T | undefined, now: T | undefined) => StateChange | undefined,
): readonly StateChange[] {
  const keys = new Set([...before.keys(), ...after.keys()]);
  return [...keys].flatMap((key) => {
    const [old, now] = [before.get(key), after.get(key)];
    if (old !== undefined && now !== undefined && signature(old) === signature(now)) return [];
    return change(key, old, now) ?? [];
  });
}

/** Routes and certificates of a listener are told by themselves. */
function signature(value: unknown): string {
  return JSON.stringify(value, (name, part: unknown) =>
    name === "routes" || name === "certificates" || name === "policies" ? undefined : part,
  );
}

function listenerChange(
  old: ListenerView | undefined,
  now: ListenerView | undefined,
): ListenerChange | undefined {
  const known = now ?? old;
  if (known === undefined || known.isUnread === true) return undefined;
  const { key, port, protocol, hostname } = known;
  const { reason, message, heldBy } = now ?? {};
  return {
    type: "listener",
    listener: listenerRefOf(key),
    ...(old === undefined ? {} : { before: old.state }),
    ...(now === undefined ? {} : { now: now.state }),
    port,
    protocol,
    hostname,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    ...(heldBy === undefined ? {} : { heldBy }),
  };
}

function routeChange(key: string, now: Problems | undefined): RouteChange {
  const problems = (now ?? []).map(({ reason, message }) => ({ reason, message }));
  return { type: "route", route: refOf(key), removed: now === undefined, problems };
}

function keyOf({ kind, namespace, name }: ObjectRef): string {
  return `${kind}/${namespace}/${name}`;
}
