/**
 * The loop that `run` and the controller share: source → engine → data plane, and back into the
 * engine nothing but facts: what is programmed, which addresses Gateways have, which replicas lag.
 *
 * One step is one result of the engine. What a step causes may be facts for the next one; they wait
 * until it is done.
 */
import type { Key } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import type { DataPlane } from "../dataplanes/dataplane.ts";
import type { Engine, EngineDelta } from "../engine/engine.ts";
import type { ClaimFact, InfrastructureFact, ReplicaFact } from "../engine/foundation/inputs.ts";
import type { ResourceChange } from "../sources/source.ts";
import type { AssignedPorts } from "./assigned-ports.ts";
import { changesPlan, isSomething, joined } from "./joined-deltas.ts";

export interface FlowParts {
  readonly engine: Engine;
  readonly dataPlane: Pick<DataPlane, "apply" | "onReport">;
  /** Where the source has no memory of assigned ports. */
  readonly assignedPorts?: AssignedPorts;
  /** Called with every result of the engine, before the data plane is given its part. */
  readonly onResult?: (delta: EngineDelta) => void;
  /** Called after the data plane was given its part. */
  readonly onStep: (delta: EngineDelta, step: FlowStep) => void;
  /** Called when nothing is left to do. */
  readonly onIdle?: () => void;
  /** Wraps every computation of the engine, to measure it. */
  readonly timed?: <T>(advance: () => T) => T;
}

export interface FlowStep {
  /** What caused it: resources of the source, or facts. */
  readonly cause: "resources" | "reports";
  /** See `Flow.since`. */
  readonly since: number | undefined;
}

interface QueuedStep extends FlowStep {
  readonly advance: () => EngineDelta;
  /** Caused by the step before it; of no interest when nothing comes of it. */
  readonly isFollowUp: boolean;
}

export class Flow {
  readonly resources: Map<Key, Resource> = new Map();
  readonly #parts: FlowParts;
  readonly #queued: QueuedStep[] = [];
  #isRunning = false;
  #since: number | undefined;

  constructor(parts: FlowParts) {
    this.#parts = parts;
    parts.dataPlane.onReport((reports) => this.#learn({ reports }));
  }

  /**
   * When the first of the changes that are being dealt with was seen (as `performance.now()`
   * counts); undefined when it is none that was watched.
   */
  get since(): number | undefined {
    return this.#since;
  }

  /** What the source brings, and in the same step what is known of the Gateways among it. */
  take(
    brought: readonly ResourceChange[],
    {
      since,
      infrastructure,
    }: {
      readonly since?: number | undefined;
      readonly infrastructure?: ReadonlyMap<Key, InfrastructureFact | undefined>;
    } = {},
  ): void {
    const { engine, assignedPorts } = this.#parts;
    const changes =
      assignedPorts === undefined
        ? brought
        : brought.map((change) => assignedPorts.complete(change, engine.verdict(change.key)));
    for (const { key, resource } of changes) {
      if (resource === undefined) this.resources.delete(key);
      else this.resources.set(key, resource);
    }
    const advance = (): EngineDelta =>
      infrastructure === undefined
        ? engine.apply(changes)
        : joined([engine.learn({ infrastructure }), engine.apply(changes)]);
    this.#step({ advance, cause: "resources", since, isFollowUp: false });
  }

  learnAddresses(gateway: Key, fact: InfrastructureFact | undefined): void {
    this.#learn({ infrastructure: new Map([[gateway, fact]]) });
  }

  /** Undefined: no replica lags. */
  learnReplicas(gateway: Key, fact: ReplicaFact | undefined): void {
    this.#learn({ replicas: new Map([[gateway, fact]]) });
  }

  learnClaims(gateway: Key, fact: ClaimFact): void {
    this.#learn({ claims: new Map([[gateway, fact]]) });
  }

  #learn(facts: Parameters<Engine["learn"]>[0]): void {
    const advance = (): EngineDelta => this.#parts.engine.learn(facts);
    this.#step({ advance, cause: "reports", since: undefined, isFollowUp: false });
  }

  #step(step: QueuedStep): void {
    this.#queued.push(step);
    if (this.#isRunning) return;
    this.#isRunning = true;
    const { timed = (advance) => advance() } = this.#parts;
    try {
      for (let next = this.#queued.shift(); next !== undefined; next = this.#queued.shift()) {
        this.#since = next.since;
        const delta = timed(next.advance);
        if (!next.isFollowUp || isSomething(delta)) this.#publish(delta, next);
      }
    } finally {
      this.#since = undefined;
      this.#isRunning = false;
    }
    this.#parts.onIdle?.();
  }

  #publish(delta: EngineDelta, step: QueuedStep): void {
    const { dataPlane, onResult, onStep, assignedPorts } = this.#parts;
    onResult?.(delta);
    if (changesPlan(delta)) dataPlane.apply(delta.plan);
    onStep(delta, step);
    if (!changesPlan(delta) && assignedPorts === undefined) return;
    const advance = (): EngineDelta => this.#followUp(delta);
    this.#queued.push({ advance, cause: step.cause, since: undefined, isFollowUp: true });
  }

  /** The engine forgets reports of removed items, and remembers the ports that it assigned. */
  #followUp({ plan, verdicts }: EngineDelta): EngineDelta {
    const { engine, assignedPorts } = this.#parts;
    const remembered = assignedPorts?.remembered(verdicts, this.resources) ?? [];
    for (const { key, resource } of remembered) if (resource !== undefined) this.resources.set(key, resource);
    return joined([
      engine.learn({ forgotten: plan.removes }),
      ...remembered.map((change) => engine.apply([change])),
    ]);
  }
}
