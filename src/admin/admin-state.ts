import type { RoutingTable } from "../matching/routing-table.ts";
import type { MergedState } from "../view/merged-state.ts";
import type { StateChange } from "../view/state-changes.ts";

/** What the admin server shows. */
export interface AdminState {
  readonly version: string;
  readonly table: RoutingTable;
  state(): MergedState;
  /**
   * Everything that was there at the start is served, or known not to be; and nobody has asked to
   * stop.
   */
  isReady(): boolean;
  /** Returns the way to unsubscribe. */
  onChanges(handler: (changes: readonly StateChange[]) => void): () => void;
}
