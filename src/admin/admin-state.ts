import type { RoutingTable } from "../matching/routing-table.ts";
import type { StateChange } from "../view/change.ts";
import type { MergedState } from "../view/merged-state.ts";

/** What the admin server shows. */
export interface AdminState {
  readonly version: string;
  readonly table: RoutingTable;
  state(): MergedState;
  /** Everything known at the start is served or has failed, and the process is not stopping. */
  isReady(): boolean;
  /** Returns a function that unsubscribes. */
  onChanges(handler: (changes: readonly StateChange[]) => void): () => void;
}
