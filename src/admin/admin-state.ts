import type { RoutingTable } from "../matching/routing-table.ts";
import type { StateExposition } from "../status/metrics/state-exposition.ts";
import type { BlastQuestion, BlastRadius } from "../view/blast/blast-answer.ts";
import type { StateChange } from "../view/change.ts";
import type { MergedState } from "../view/merged-state.ts";
import type { ReadingScope } from "../view/written/reading-scope.ts";

/** What the admin server shows. */
export interface AdminState {
  readonly version: string;
  readonly table: RoutingTable;
  /** How much of a cluster is shown; absent: all there is. */
  readonly scope?: ReadingScope;
  state(): MergedState;
  /** Metrics of the state; absent where it is not this process that decides on it. */
  readonly exposition?: StateExposition;
  /** Everything known at the start is served or has failed, and the process is not stopping. */
  isReady(): boolean;
  /** What a change would do, or why that cannot be told; absent where nothing is computed. */
  blastRadius?(question: BlastQuestion): BlastRadius | string;
  /** Returns a function that unsubscribes. */
  onChanges(handler: (changes: readonly StateChange[]) => void): () => void;
}
