/**
 * The state of the standalone mode: the flow of `src/flow`, the routing table that the data plane
 * has, and what is known of whether it is served. Everything that shows or writes the state follows
 * `onStep`.
 */

import type { Key } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { DataPlane } from "../../dataplanes/dataplane.ts";
import { Engine, type EngineDelta } from "../../engine/engine.ts";
import type { InfrastructureFact } from "../../engine/foundation/inputs.ts";
import { gatewayOfItem } from "../../engine/foundation/item-ids.ts";
import type { EngineSettings } from "../../engine/foundation/settings.ts";
import { AssignedPorts } from "../../flow/assigned-ports.ts";
import { Flow, type FlowStep } from "../../flow/flow.ts";
import { RoutingTable } from "../../matching/routing-table.ts";
import type { ItemReport } from "../../plan/item-report.ts";
import type { PlanDelta } from "../../plan/plan.ts";
import type { ResourceChange } from "../../sources/source.ts";
import type { BlastQuestion, BlastRadius } from "../../view/blast/blast-answer.ts";
import { blastRadius } from "../../view/blast/blast-radius.ts";
import { buildState } from "../../view/build-state.ts";
import type { StateChange } from "../../view/change.ts";
import type { MergedState } from "../../view/merged-state.ts";
import { ChangeTracker } from "../../view/state-changes.ts";
import { standaloneSettings } from "../workspace/engine-settings.ts";
import { LagWatch } from "./lag-watch.ts";

/** One step of the flow, after the data plane was given its part. */
export interface Step extends Pick<FlowStep, "cause"> {
  readonly verdicts: EngineDelta["verdicts"];
  readonly changes: readonly StateChange[];
}

export class LiveGateway {
  readonly engine: Engine;
  readonly table: RoutingTable = new RoutingTable();
  readonly #flow: Flow;
  readonly #lag: LagWatch;
  readonly #infrastructureOf: (gateway: Key) => InfrastructureFact;
  readonly #tracker: ChangeTracker = new ChangeTracker();
  readonly #handlers: Set<(step: Step) => void> = new Set();
  /** Ports and listeners that the data plane has not reported on yet. */
  readonly #unreported: Set<string> = new Set();
  readonly #loaded: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #settled: PromiseWithResolvers<void> = Promise.withResolvers();
  /** Of the step under way. */
  #changes: readonly StateChange[] = [];
  #isLoaded = false;
  #isSettled = false;
  #state: MergedState | undefined;

  /**
   * `earlier` is the status that an object had when the process last ran, if anybody kept it;
   * `refusedEndpoint` is the engine's setting.
   */
  constructor(
    dataPlane: DataPlane,
    infrastructureOf: (gateway: Key) => InfrastructureFact,
    earlier: (key: Key) => unknown = () => undefined,
    refusedEndpoint?: EngineSettings["refusedEndpoint"],
  ) {
    this.#infrastructureOf = infrastructureOf;
    this.engine = new Engine(
      standaloneSettings({
        features: dataPlane.features,
        assumeProgrammed: false,
        ...(refusedEndpoint === undefined ? {} : { refusedEndpoint }),
      }),
    );
    this.#lag = new LagWatch({ dataPlane, onLag: (...lag) => this.#learnLag(...lag) });
    this.#flow = new Flow({
      engine: this.engine,
      dataPlane: {
        apply: (plan) => this.#apply(dataPlane, plan),
        onReport: (handler) => dataPlane.onReport((reports) => handler(this.#ofPlan(reports))),
      },
      assignedPorts: new AssignedPorts(earlier),
      onResult: (delta) => this.#follow(delta),
      onStep: ({ verdicts }, { cause }) => {
        for (const handler of this.#handlers) handler({ cause, verdicts, changes: this.#changes });
      },
      onIdle: () => this.#settle(),
    });
  }

  get resources(): ReadonlyMap<Key, Resource> {
    return this.#flow.resources;
  }

  /** Resolves when the source has brought everything that was there at the start. */
  get loaded(): Promise<void> {
    return this.#loaded.promise;
  }

  /** Resolves when everything that was there at the start is served, or known not to be. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  onStep(handler: (step: Step) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  onChanges(handler: (changes: readonly StateChange[]) => void): () => void {
    return this.onStep(({ changes }) => handler(changes));
  }

  /** What the source brings. */
  take(changes: readonly ResourceChange[]): void {
    this.#isLoaded = true;
    this.#loaded.resolve();
    const gateways = changes.filter(({ key }) => key.startsWith("Gateway/"));
    const infrastructure = new Map(
      gateways.map(({ key, resource }) => [key, resource && this.#infrastructureOf(key)] as const),
    );
    this.#flow.take(changes, { infrastructure });
  }

  /** What is known of how a Gateway is reached has changed. */
  takeInfrastructure(gateway: Key): void {
    if (this.resources.has(gateway)) this.#flow.learnAddresses(gateway, this.#infrastructureOf(gateway));
  }

  /** Computed when somebody looks, kept until something changes. */
  state(): MergedState {
    this.#state ??= buildState(this);
    return this.#state;
  }

  /** What a change would do, or why that cannot be told. Nothing of it reaches the data plane. */
  blastRadius(question: BlastQuestion): BlastRadius | string {
    return blastRadius(this, question);
  }

  /** A report may still be under way when its item has gone. */
  #ofPlan(reports: readonly ItemReport[]): readonly ItemReport[] {
    const known = reports.filter(({ id }) => this.#isPlanned(id));
    for (const { id } of known) this.#unreported.delete(id);
    return known;
  }

  #isPlanned(id: string): boolean {
    return (["port", "listener", "certificate", "host", "backend"] as const).some(
      (type) => this.table.get(type, id) !== undefined,
    );
  }

  #learnLag(gateway: string, isLagging: boolean): void {
    const fact = isLagging ? { replicas: 1, lagging: ["the data plane of this process"] } : undefined;
    this.#flow.learnReplicas(`Gateway/${gateway}`, fact);
  }

  #follow(delta: EngineDelta): void {
    this.#state = undefined;
    for (const id of delta.plan.removes) this.#unreported.delete(id);
    for (const { type, id } of delta.plan.upserts) {
      if ((type === "port" || type === "listener") && this.table.get(type, id) === undefined)
        this.#unreported.add(id);
    }
    this.#changes = this.#tracker.changes(delta, this.table, this.resources);
  }

  #apply(dataPlane: DataPlane, plan: PlanDelta): void {
    this.table.apply(plan);
    dataPlane.apply(plan);
    this.#lag.applied(gatewaysOf(plan));
  }

  #settle(): void {
    if (!this.#isLoaded || this.#unreported.size > 0) return;
    this.#isSettled = true;
    this.#settled.resolve();
  }
}

function gatewaysOf({ upserts, removes }: PlanDelta): ReadonlySet<string> {
  return new Set([...upserts.map(({ gateway }) => gateway), ...removes.map(gatewayOfItem)]);
}
