import type { ListenerState, ListenerView, PolicyView } from "../../view/merged-state.ts";
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

/** `applied`, `waiting (Pending)`, `not applied (NoListeners)` or `not accepted (Conflicted)`. */
export function policyWord({ conditions }: PolicyView, { style }: Terminal): string {
  const wrong = conditions.find(({ status }) => status !== "True");
  if (wrong === undefined) return conditions.length === 0 ? "" : style("green", "applied");
  return wrong.type === "Accepted"
    ? style("red", `not accepted (${wrong.reason})`)
    : style("yellow", `${wrong.reason === "Pending" ? "waiting" : "not applied"} (${wrong.reason})`);
}
