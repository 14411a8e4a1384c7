/**
 * The controller's flow: source → engine → { plan server, statuses, infrastructure }, and back into the engine nothing but facts: what pods have programmed and
 * which addresses Gateways have.
 */
import type { Key } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import type { DataPlane } from "../dataplanes/dataplane.ts";
import type { Engine, EngineDelta } from "../engine/engine.ts";
import type { InfrastructureFact } from "../engine/inputs.ts";
import type { InfrastructureReconciler } from "../infra/reconciler.ts";
import type { PlanDelta, PlanItem, PortItem } from "../plan/plan.ts";
import type { Change } from "../sources/source.ts";

export interface FlowParts {
  readonly engine: Engine;
  readonly dataPlane: DataPlane;
  /** Called with every verdict that changed, after the data plane was given its part. */
  readonly onVerdicts: (verdicts: EngineDelta["verdicts"]) => void;
  /** Wraps every step of the engine, to measure it. */
  readonly timed: <T>(step: () => T) => T;
}

export class ControllerFlow {
  readonly resources: Map<Key, Resource> = new Map();
  readonly #parts: FlowParts;
  readonly #served: ServedGateways = new ServedGateways();
  #infrastructure: InfrastructureReconciler | undefined;
  #queued: (() => EngineDelta)[] = [];
  #running = false;

  constructor(parts: FlowParts) {
    this.#parts = parts;
    parts.dataPlane.onReport((reports) => this.#step(() => parts.engine.learn({ reports })));
  }

  /** The reconciler needs the flow's resources, and the flow the reconciler. */
  connect(infrastructure: InfrastructureReconciler): void {
    this.#infrastructure = infrastructure;
  }

  take(changes: readonly Change[]): void {
    for (const { key, resource } of changes) {
      if (resource === undefined) this.resources.delete(key);
      else this.resources.set(key, resource);
    }
    this.#step(() => this.#parts.engine.apply(changes));
    for (const { key, resource } of changes) this.#infrastructure?.notice(key, resource);
  }

  learnAddresses(gateway: Key, fact: InfrastructureFact | undefined): void {
    this.#step(() => this.#parts.engine.learn({ infrastructure: new Map([[gateway, fact]]) }));
  }

  /** What a step causes may be facts for the next one; they wait until it is done. */
  #step(advance: () => EngineDelta): void {
    this.#queued.push(advance);
    if (this.#running) return;
    this.#running = true;
    try {
      for (let next = this.#queued.shift(); next !== undefined; next = this.#queued.shift())
        this.#publish(this.#parts.timed(next));
    } finally {
      this.#running = false;
    }
  }

  #publish({ plan, verdicts }: EngineDelta): void {
    if (plan.upserts.length > 0 || plan.removes.length > 0) {
      this.#parts.dataPlane.apply(plan);
      this.#queued.push(() => this.#parts.engine.learn({ forgotten: plan.removes }));
      for (const gateway of this.#served.follow(plan))
        this.#infrastructure?.serve(gateway, this.#served.portsOf(gateway));
    }
    if (verdicts.size > 0) this.#parts.onVerdicts(verdicts);
  }
}

/** Which Gateways are served on which ports, read off the plan. */
class ServedGateways {
  readonly #ports: Map<Key, Map<string, PortItem>> = new Map();
  readonly #gatewayOf: Map<string, Key> = new Map();

  /** Gateways whose ports changed, or that came or went. */
  follow({ upserts, removes }: PlanDelta): ReadonlySet<Key> {
    const changed = new Set<Key>();
    for (const item of upserts)
      if (item.type === "gateway" || item.type === "port") this.#enter(item, changed);
    for (const id of removes) {
      const gateway = this.#gatewayOf.get(id);
      if (gateway === undefined) continue;
      this.#gatewayOf.delete(id);
      if (id.startsWith("gateway:")) this.#ports.delete(gateway);
      else this.#ports.get(gateway)?.delete(id);
      changed.add(gateway);
    }
    return changed;
  }

  portsOf(gateway: Key): readonly PortItem[] | undefined {
    const ports = this.#ports.get(gateway);
    return ports === undefined ? undefined : [...ports.values()];
  }

  #enter(item: Extract<PlanItem, { type: "gateway" | "port" }>, changed: Set<Key>): void {
    const gateway: Key = `Gateway/${item.gateway}`;
    const ports = this.#ports.get(gateway) ?? new Map<string, PortItem>();
    this.#ports.set(gateway, ports);
    this.#gatewayOf.set(item.id, gateway);
    if (item.type === "port") ports.set(item.id, item);
    changed.add(gateway);
  }
}
