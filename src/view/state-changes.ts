/**
 * What one step changed, in the words of the merged state. Costs what the step changed, not what
 * exists.
 */
import type { Listener } from "../api/gateway.ts";
import type { Key } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import type { EngineDelta } from "../engine/engine.ts";
import { listenerKey } from "../engine/listeners/listeners.ts";
import type { ObjectVerdict } from "../engine/verdicts/verdicts.ts";
import type { RoutingTable } from "../matching/routing-table.ts";
import type { PlanItem } from "../plan/plan.ts";
import { stateOf } from "./build-listener.ts";
import type { ListenerChange, RouteChange, StateChange } from "./change.ts";
import { type ListenerRef, type ListenerState, listenerRefOf, refOf } from "./merged-state.ts";

interface Shown {
  readonly state: ListenerState;
  readonly port: number;
  readonly protocol: string;
  readonly hostname: string;
  readonly signature: string;
}

export class ChangeTracker {
  readonly #listeners: Map<Key, ReadonlyMap<string, Shown>> = new Map();
  readonly #routes: Map<Key, string> = new Map();

  /** `table` is the plan before the step. */
  changes(delta: EngineDelta, table: RoutingTable, resources: ReadonlyMap<Key, Resource>): StateChange[] {
    const found: StateChange[] = [];
    for (const [key, verdict] of delta.verdicts) {
      if (isOwner(key)) found.push(...this.#listenerChanges(key, verdict, resources.get(key)));
      else if (verdict?.type === "route" || this.#routes.has(key))
        found.push(...this.#routeChanges(key, verdict));
    }
    for (const item of delta.plan.upserts) found.push(...itemChanges(item, table));
    const removed = new Set(delta.plan.removes);
    for (const id of removed) {
      const host = table.get("host", id);
      // Whoever removes a listener removes its hosts: that is one change, not many.
      if (host === undefined || removed.has(host.listener)) continue;
      found.push({ type: "host", listener: listenerOf(host.listener), hostname: host.hostname, rules: 0 });
    }
    return found;
  }

  #listenerChanges(
    key: Key,
    verdict: ObjectVerdict | undefined,
    resource: Resource | undefined,
  ): ListenerChange[] {
    const before = this.#listeners.get(key) ?? new Map<string, Shown>();
    const after = new Map<string, Shown>();
    const changes: ListenerChange[] = [];
    const specs = listenersOf(resource);
    const verdicts = verdict?.type === "gateway" || verdict?.type === "set" ? verdict.listeners : [];
    for (const { name, port, conditions, heldBy } of verdicts) {
      const spec = specs.find((candidate) => candidate.name === name);
      const { state, reason, message } = stateOf(conditions);
      const shown = { state, port, protocol: spec?.protocol ?? "", hostname: spec?.hostname ?? "" };
      const signature = JSON.stringify([shown, reason, message, heldBy]);
      after.set(name, { ...shown, signature });
      const was = before.get(name);
      if (was?.signature === signature) continue;
      changes.push({
        type: "listener",
        listener: listenerRefOf(listenerKey(key, name)),
        ...(was === undefined ? {} : { before: was.state }),
        now: state,
        port,
        protocol: shown.protocol,
        hostname: shown.hostname,
        ...(reason === undefined ? {} : { reason }),
        ...(message === undefined ? {} : { message }),
        ...(heldBy === undefined ? {} : { heldBy: listenerRefOf(heldBy) }),
      });
    }
    for (const [name, { state, port, protocol, hostname }] of before) {
      if (after.has(name)) continue;
      const listener = listenerRefOf(listenerKey(key, name));
      changes.push({ type: "listener", listener, before: state, port, protocol, hostname });
    }
    if (after.size === 0) this.#listeners.delete(key);
    else this.#listeners.set(key, after);
    return changes;
  }

  #routeChanges(key: Key, verdict: ObjectVerdict | undefined): RouteChange[] {
    const route = refOf(key);
    if (verdict?.type !== "route") {
      this.#routes.delete(key);
      return [{ type: "route", route, removed: true, problems: [] }];
    }
    const problems = verdict.parents.flatMap(({ conditions }) =>
      conditions
        .filter(({ type, status }) => (type === "PartiallyInvalid" ? status === "True" : status === "False"))
        .map(({ reason, message }) => ({ reason, message })),
    );
    const signature = JSON.stringify(problems);
    if (this.#routes.get(key) === signature) return [];
    this.#routes.set(key, signature);
    return [{ type: "route", route, removed: false, problems }];
  }
}

function itemChanges(item: PlanItem, before: RoutingTable): StateChange[] {
  switch (item.type) {
    case "host":
      return [
        {
          type: "host",
          listener: listenerOf(item.listener),
          hostname: item.hostname,
          rules: item.rules.length,
        },
      ];
    case "certificate":
      return before.get("certificate", item.id) === undefined
        ? []
        : [{ type: "certificate", secret: item.id.split(":").at(-1) ?? "", names: item.names }];
    case "backend":
      return before.get("backend", item.id) === undefined
        ? []
        : [{ type: "backend", service: item.service, endpoints: item.endpoints.length }];
    default:
      return [];
  }
}

function isOwner(key: Key): boolean {
  return key.startsWith("Gateway/") || key.startsWith("ListenerSet/") || key.startsWith("XListenerSet/");
}

function listenersOf(resource: Resource | undefined): readonly Listener[] {
  switch (resource?.kind) {
    case "Gateway":
    case "ListenerSet":
    case "XListenerSet":
      return resource.spec.listeners ?? [];
    default:
      return [];
  }
}

function listenerOf(id: string): ListenerRef {
  return listenerRefOf(id.slice(id.lastIndexOf(":") + 1));
}
