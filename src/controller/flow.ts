/**
 * The controller's flow: source → engine → { plan server, statuses, infrastructure }, and back into
 * the engine nothing but facts: what pods have programmed and which addresses Gateways have.
 */
import type { Key } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import type { DataPlane } from "../dataplanes/dataplane.ts";
import type { Engine, EngineDelta } from "../engine/engine.ts";
import type { InfrastructureFact, ReplicaFact } from "../engine/foundation/inputs.ts";
import type { InfrastructureReconciler } from "../infra/reconciler.ts";
import type { PlanDelta, PlanItem, PortItem } from "../plan/plan.ts";
import type { ResourceChange } from "../sources/source.ts";

export interface FlowParts {
  readonly engine: Engine;
  readonly dataPlane: DataPlane;
  /** Called with every part of the plan, after the data plane was given it. */
  readonly onPlan?: (plan: PlanDelta) => void;
  /**
   * Called with every verdict that changed, after the data plane was given its part, and with the
   * time of the change that caused it (see `since`).
   */
  readonly onVerdicts: (verdicts: EngineDelta["verdicts"], since: number | undefined) => void;
  /** Wraps every step of the engine, to measure it. */
  readonly timed: <T>(step: () => T) => T;
}

interface Step {
  readonly advance: () => EngineDelta;
  readonly since: number | undefined;
}

export class ControllerFlow {
  readonly resources: Map<Key, Resource> = new Map();
  readonly #parts: FlowParts;
  readonly #served: ServedGateways = new ServedGateways();
  #infrastructure: InfrastructureReconciler | undefined;
  #queued: Step[] = [];
  #running = false;
  #since: number | undefined;

  constructor(parts: FlowParts) {
    this.#parts = parts;
    parts.dataPlane.onReport((reports) => this.#step(() => parts.engine.learn({ reports })));
  }

  /**
   * When the first of the changes that are being dealt with was seen (as `performance.now()`
   * counts); undefined when it is none that was watched.
   */
  get since(): number | undefined {
    return this.#since;
  }

  /** The reconciler needs the flow's resources, and the flow the reconciler. */
  connect(infrastructure: InfrastructureReconciler): void {
    this.#infrastructure = infrastructure;
  }

  take(changes: readonly ResourceChange[], since?: number): void {
    for (const { key, resource } of changes) {
      if (resource === undefined) this.resources.delete(key);
      else this.resources.set(key, resource);
    }
    this.#step(() => this.#parts.engine.apply(changes), since);
    for (const { key, resource } of changes) this.#infrastructure?.notice(key, resource);
  }

  learnAddresses(gateway: Key, fact: InfrastructureFact | undefined): void {
    this.#step(() => this.#parts.engine.learn({ infrastructure: new Map([[gateway, fact]]) }));
  }

  learnReplicas(gateway: Key, fact: ReplicaFact): void {
    const known = fact.lagging.length === 0 ? undefined : fact;
    this.#step(() => this.#parts.engine.learn({ replicas: new Map([[gateway, known]]) }));
  }

  /** What a step causes may be facts for the next one; they wait until it is done. */
  #step(advance: () => EngineDelta, since?: number): void {
    this.#queued.push({ advance, since });
    if (this.#running) return;
    this.#running = true;
    try {
      for (let next = this.#queued.shift(); next !== undefined; next = this.#queued.shift()) {
        this.#since = next.since;
        this.#publish(this.#parts.timed(next.advance));
      }
    } finally {
      this.#since = undefined;
      this.#running = false;
    }
  }

  #publish({ plan, verdicts }: EngineDelta): void {
    if (plan.upserts.length > 0 || plan.removes.length > 0) {
      this.#parts.dataPlane.apply(plan);
      this.#parts.onPlan?.(plan);
      this.#queued.push({
        advance: () => this.#parts.engine.learn({ forgotten: plan.removes }),
        since: undefined,
      });
      for (const gateway of this.#served.follow(plan))
        this.#infrastructure?.serve(gateway, this.#served.portsOf(gateway));
    }
    if (verdicts.size > 0) this.#parts.onVerdicts(verdicts, this.#since);
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
