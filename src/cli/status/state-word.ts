import type { ListenerState, ListenerView } from "../../view/merged-state.ts";
import type { Style, Terminal } from "../foundation/terminal.ts";

const STYLE: Readonly<Record<ListenerState, Style>> = {
  serving: "green",
  waiting: "yellow",
  failed: "red",
  conflicted: "red",
  refused: "red",
};

/** `serving`, or `conflicted (HostnameConflict)`. */
export function stateWord({ state, reason }: ListenerView, { style }: Terminal): string {
  return style(STYLE[state], reason === undefined ? state : `${state} (${reason})`);
}
