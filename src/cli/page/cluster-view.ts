/**
 * What a person sees of a cluster that they watch. The state is made anew after changes, at most
 * once a second and for at most a tenth of the time, however often somebody asks for it.
 */
import type { Key } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import { Engine } from "../../engine/engine.ts";
import type { EngineSettings } from "../../engine/foundation/settings.ts";
import { refusedInCluster } from "../../kubernetes/special-addresses.ts";
import { RoutingTable } from "../../matching/routing-table.ts";
import type { ResourceChange } from "../../sources/source.ts";
import type { BlastQuestion, BlastRadius } from "../../view/blast/blast-answer.ts";
import { blastRadius } from "../../view/blast/blast-radius.ts";
import type { StateChange } from "../../view/change.ts";
import type { MergedState } from "../../view/merged-state.ts";
import type { ReadingScope } from "../../view/written/reading-scope.ts";
import { stateDifference } from "../../view/written/state-difference.ts";
import { stateInScope } from "../../view/written/state-in-scope.ts";
import { withWrittenProgramming } from "../../view/written/written-programming.ts";
import { mayReadClasses } from "../workspace/read-cluster.ts";
import { settingsFor } from "../workspace/workspace.ts";

const SHORTEST_PAUSE_MS = 1_000;
const PAUSE_PER_MAKING = 9;

interface Known {
  readonly scope: ReadingScope;
  readonly settings: EngineSettings;
  readonly engine: Engine;
}

export class ClusterView {
  readonly table: RoutingTable = new RoutingTable();
  readonly #resources: Map<Key, Resource> = new Map();
  readonly #handlers: Set<(changes: readonly StateChange[]) => void> = new Set();
  readonly #scope: PromiseWithResolvers<ReadingScope> = Promise.withResolvers();
  #known: Known | undefined;
  #state: MergedState = NOTHING;
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = SHORTEST_PAUSE_MS;

  /** Resolves with the first look. */
  get scope(): Promise<ReadingScope> {
    return this.#scope.promise;
  }

  state(): MergedState {
    return this.#state;
  }

  /** What a change would do, or why that cannot be told. */
  blastRadius(question: BlastQuestion): BlastRadius | string {
    if (this.#known === undefined) return "nothing has been read yet";
    return blastRadius({ engine: this.#known.engine, resources: this.#resources }, question);
  }

  onChanges(handler: (changes: readonly StateChange[]) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  /** `scopeOf` is asked once, with the first changes. */
  take(changes: readonly ResourceChange[], scopeOf: () => ReadingScope): void {
    const isFirst = this.#known === undefined;
    this.#known ??= knownIn(scopeOf());
    for (const { key, resource } of changes) {
      if (resource === undefined) this.#resources.delete(key);
      else this.#resources.set(key, resource);
    }
    // A merge of a part of the facts would be wrong: it is not made.
    if (this.#known.scope.sees !== "part") this.table.apply(this.#known.engine.apply(changes).plan);
    if (isFirst) {
      this.#make();
      this.#scope.resolve(this.#known.scope);
    } else this.#timer ??= setTimeout(() => this.#make(), this.#pauseMs).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #make(): void {
    this.#timer = undefined;
    if (this.#known === undefined) return;
    const began = performance.now();
    const { scope, settings, engine } = this.#known;
    const { controllerName } = settings;
    const before = this.#state;
    const sources = { engine, resources: this.#resources, isLive: true, controllerName };
    const made = stateInScope(sources, scope);
    this.#state = scope.sees === "all" ? withWrittenProgramming(made, this.#resources) : made;
    const changes = stateDifference(before, this.#state);
    if (changes.length > 0) for (const handler of this.#handlers) handler(changes);
    this.#pauseMs = Math.max(SHORTEST_PAUSE_MS, (performance.now() - began) * PAUSE_PER_MAKING);
  }
}

function knownIn(scope: ReadingScope): Known {
  const settings = settingsFor(!mayReadClasses(scope), refusedInCluster);
  return { scope, settings, engine: new Engine(settings) };
}

const NOTHING: MergedState = { gateways: [], orphans: [], strayRoutes: [], strayPolicies: [], foreign: [] };
