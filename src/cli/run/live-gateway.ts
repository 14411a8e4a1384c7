/**
 * The flow of the standalone mode: source → engine → data plane, and the data plane's reports back
 * into the engine. Everything that shows or writes the state follows `onStep`.
 */

import type { Key } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { DataPlane } from "../../dataplanes/dataplane.ts";
import { Engine, type EngineDelta } from "../../engine/engine.ts";
import type { InfrastructureFact } from "../../engine/foundation/inputs.ts";
import { gatewayOfItem } from "../../engine/foundation/item-ids.ts";
import type { EngineSettings } from "../../engine/foundation/settings.ts";
import type { ObjectVerdict } from "../../engine/verdicts/verdicts.ts";
import { RoutingTable } from "../../matching/routing-table.ts";
import type { ItemReport } from "../../plan/item-report.ts";
import type { PlanDelta, PlanItem } from "../../plan/plan.ts";
import type { ResourceChange } from "../../sources/source.ts";
import { buildState } from "../../view/build-state.ts";
import type { StateChange } from "../../view/change.ts";
import type { MergedState } from "../../view/merged-state.ts";
import { ChangeTracker } from "../../view/state-changes.ts";
import { standaloneSettings } from "../workspace/engine-settings.ts";
import { LagWatch } from "./lag-watch.ts";

/** One step of the flow, after the data plane was given its part. */
export interface Step {
  readonly cause: "resources" | "reports";
  readonly verdicts: EngineDelta["verdicts"];
  readonly changes: readonly StateChange[];
}

export class LiveGateway {
  readonly engine: Engine;
  readonly table: RoutingTable = new RoutingTable();
  readonly resources: Map<Key, Resource> = new Map();
  readonly #dataPlane: DataPlane;
  readonly #lag: LagWatch;
  readonly #earlier: (key: Key) => unknown;
  readonly #infrastructureOf: (gateway: Key) => InfrastructureFact;
  readonly #tracker: ChangeTracker = new ChangeTracker();
  readonly #handlers: Set<(step: Step) => void> = new Set();
  /** Ports and listeners whose fate the data plane has not told yet. */
  readonly #untold: Set<string> = new Set();
  readonly #loaded: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #settled: PromiseWithResolvers<void> = Promise.withResolvers();
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
    this.#earlier = earlier;
    this.#dataPlane = dataPlane;
    this.#infrastructureOf = infrastructureOf;
    this.engine = new Engine(
      standaloneSettings({
        features: dataPlane.features,
        assumeProgrammed: false,
        ...(refusedEndpoint === undefined ? {} : { refusedEndpoint }),
      }),
    );
    this.#lag = new LagWatch({ dataPlane, onLag: (...lag) => this.#learnLag(...lag) });
    dataPlane.onReport((reports) => this.#learn(reports));
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
  take(brought: readonly ResourceChange[]): void {
    const changes = brought.map((change) => this.#withPorts(change));
    for (const { key, resource } of changes) {
      if (resource === undefined) this.resources.delete(key);
      else this.resources.set(key, resource);
    }
    this.#isLoaded = true;
    this.#loaded.resolve();
    this.#step("resources", [this.#infrastructure(changes), this.engine.apply(changes)]);
  }

  /** What is known of how a Gateway is reached has changed. */
  takeInfrastructure(gateway: Key): void {
    if (!this.resources.has(gateway)) return;
    const fact = this.#infrastructureOf(gateway);
    this.#step("reports", [this.engine.learn({ infrastructure: new Map([[gateway, fact]]) })]);
  }

  /** Computed when somebody looks, kept until something changes. */
  state(): MergedState {
    this.#state ??= buildState(this);
    return this.#state;
  }

  /** The status is the memory of assigned ports; files have none, so it is kept here. */
  #withPorts({ key, resource }: ResourceChange): ResourceChange {
    if (resource?.kind !== "XListenerSet" || resource.status?.listeners !== undefined)
      return { key, resource };
    const status = (portsOf(this.engine.verdict(key)) ?? this.#earlier(key)) as typeof resource.status;
    return { key, resource: status === undefined ? resource : { ...resource, status } };
  }

  /** Once shown, a port stays, whoever else comes later. */
  #rememberPorts(verdicts: EngineDelta["verdicts"]): EngineDelta[] {
    const deltas: EngineDelta[] = [];
    for (const [key, verdict] of verdicts) {
      const resource = this.resources.get(key);
      const status = resource?.kind === "XListenerSet" ? portsOf(verdict) : undefined;
      if (resource === undefined || status === undefined) continue;
      const remembered = { ...resource, status } as unknown as Resource;
      this.resources.set(key, remembered);
      deltas.push(this.engine.apply([{ key, resource: remembered }]));
    }
    return deltas;
  }

  #learn(reports: readonly ItemReport[]): void {
    // A report may still be under way when its item has gone.
    const known = reports.filter(({ id }) => this.#isPlanned(id));
    for (const { id } of known) this.#untold.delete(id);
    this.#step("reports", [this.engine.learn({ reports: known })]);
  }

  #learnLag(gateway: string, isLagging: boolean): void {
    const fact = isLagging ? { replicas: 1, lagging: ["the data plane of this process"] } : undefined;
    this.#step("reports", [this.engine.learn({ replicas: new Map([[`Gateway/${gateway}`, fact]]) })]);
  }

  #isPlanned(id: string): boolean {
    return (["port", "listener", "certificate", "host", "backend"] as const).some(
      (type) => this.table.get(type, id) !== undefined,
    );
  }

  #infrastructure(changes: readonly ResourceChange[]): EngineDelta {
    const facts = changes
      .filter(({ key }) => key.startsWith("Gateway/"))
      .map(({ key, resource }) => [key, resource && this.#infrastructureOf(key)] as const);
    return this.engine.learn({ infrastructure: new Map(facts) });
  }

  #step(cause: Step["cause"], deltas: readonly EngineDelta[]): void {
    const delta = joined(deltas);
    this.#state = undefined;
    this.#follow(delta.plan);
    const changes = this.#tracker.changes(delta, this.table, this.resources);
    if (delta.plan.upserts.length > 0 || delta.plan.removes.length > 0) {
      this.table.apply(delta.plan);
      this.#dataPlane.apply(delta.plan);
      this.#lag.applied(gatewaysOf(delta.plan));
    }
    for (const handler of this.#handlers) handler({ cause, verdicts: delta.verdicts, changes });
    const followUps = [
      this.engine.learn({ forgotten: delta.plan.removes }),
      ...this.#rememberPorts(delta.verdicts),
    ];
    const further = followUps.filter(isSomething);
    if (further.length > 0) this.#step(cause, further);
    if (!this.#isLoaded || this.#untold.size > 0) return;
    this.#isSettled = true;
    this.#settled.resolve();
  }

  #follow({ upserts, removes }: PlanDelta): void {
    for (const id of removes) this.#untold.delete(id);
    for (const { type, id } of upserts) {
      if ((type === "port" || type === "listener") && this.table.get(type, id) === undefined)
        this.#untold.add(id);
    }
  }
}

function gatewaysOf({ upserts, removes }: PlanDelta): ReadonlySet<string> {
  return new Set([...upserts.map(({ gateway }) => gateway), ...removes.map(gatewayOfItem)]);
}

function isSomething({ plan, verdicts }: EngineDelta): boolean {
  return plan.upserts.length > 0 || plan.removes.length > 0 || verdicts.size > 0;
}

/** Later deltas overrule earlier ones. */
function joined(deltas: readonly EngineDelta[]): EngineDelta {
  const upserts = new Map<string, PlanItem>();
  const removes = new Set<string>();
  for (const { plan } of deltas) {
    for (const id of plan.removes) {
      upserts.delete(id);
      removes.add(id);
    }
    for (const item of plan.upserts) {
      removes.delete(item.id);
      upserts.set(item.id, item);
    }
  }
  return {
    plan: { upserts: [...upserts.values()], removes: [...removes] },
    verdicts: new Map(deltas.flatMap(({ verdicts }) => [...verdicts])),
  };
}

function portsOf(verdict: ObjectVerdict | undefined): { readonly listeners: readonly unknown[] } | undefined {
  if (verdict?.type !== "set") return undefined;
  const shown = verdict.listeners.filter(({ port }) => port > 0);
  if (shown.length === 0) return undefined;
  return {
    listeners: shown.map(({ name, port }) => ({
      name,
      port,
      supportedKinds: [],
      attachedRoutes: 0,
      conditions: [],
    })),
  };
}
