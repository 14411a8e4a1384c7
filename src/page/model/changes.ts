/** The timeline: changes as sentences, newest first, as many as anybody scrolls through. */

import type { ListenerChange, StateChange } from "../../view/change.ts";
import type { ListenerRef, ObjectRef } from "../../view/merged-state.ts";
import { hasWords, wordsOf } from "./filter.ts";
import { listenerNodeId } from "./tree.ts";

export type TimedChange = StateChange & {
  /** ISO 8601 */
  readonly at: string;
};

export interface ChangeRow {
  readonly id: number;
  readonly at: string;
  readonly tone: "good" | "bad" | "quiet";
  readonly mark: "+" | "−" | "~" | "!";
  readonly what: string;
  readonly text: string;
  /** A node of the tree. */
  readonly node: string | undefined;
}

export const KEPT_CHANGES = 1_000;

/**
 * A listener that waits for the data plane is only on its way to somewhere else: that is left out.
 * Returns a new list.
 */
export function withChange(
  rows: readonly ChangeRow[],
  id: number,
  change: TimedChange,
): readonly ChangeRow[] {
  if (change.type === "listener" && change.now === "waiting") return rows;
  return [rowOf(id, change), ...rows.slice(0, KEPT_CHANGES - 1)];
}

export function findChanges(rows: readonly ChangeRow[], search: string): readonly ChangeRow[] {
  const words = wordsOf(search);
  return words.length === 0 ? rows : rows.filter(({ what, text }) => hasWords(`${what} ${text}`, words));
}

function rowOf(id: number, change: TimedChange): ChangeRow {
  const base = { id, at: change.at };
  switch (change.type) {
    case "listener":
      return { ...base, ...listenerText(change), node: listenerNodeId(change.listener) };
    case "route": {
      const what = `${change.route.kind} ${nameOf(change.route)}`;
      if (change.removed)
        return { ...base, tone: "quiet", mark: "−", what, text: "removed", node: undefined };
      const problems = change.problems.map(({ reason, message }) => `${reason}: ${message}`);
      return problems.length === 0
        ? { ...base, tone: "good", mark: "~", what, text: "accepted", node: undefined }
        : { ...base, tone: "bad", mark: "!", what, text: problems.join("; "), node: undefined };
    }
    case "host": {
      const rules = change.rules === 1 ? "1 rule" : `${change.rules} rules`;
      const text = `${rules} at ${listenerName(change.listener)}`;
      const node = listenerNodeId(change.listener);
      return { ...base, tone: "quiet", mark: "~", what: change.hostname || "any hostname", text, node };
    }
    case "certificate": {
      const text = `now for ${change.names.join(", ")}`;
      return {
        ...base,
        tone: "quiet",
        mark: "~",
        what: `Certificate ${change.secret}`,
        text,
        node: undefined,
      };
    }
    case "backend": {
      const { service, endpoints } = change;
      const what = `Service ${service.namespace}/${service.name}:${service.port}`;
      const text = endpoints === 1 ? "1 ready endpoint" : `${endpoints} ready endpoints`;
      return { ...base, tone: endpoints === 0 ? "bad" : "quiet", mark: "~", what, text, node: undefined };
    }
  }
}

function listenerText(change: ListenerChange): Pick<ChangeRow, "tone" | "mark" | "what" | "text"> {
  const { before, now, port, hostname, protocol, reason, message, heldBy } = change;
  const what = `${hostname || "any hostname"} on ${protocol} ${port}`;
  const who = listenerName(change.listener);
  if (now === undefined) return { tone: "quiet", mark: "−", what, text: `${who} is gone` };
  if (now === "serving") {
    const mark = before === undefined || before === "waiting" ? "+" : "~";
    return { tone: "good", mark, what, text: `${who} serves it` };
  }
  const holder = heldBy === undefined ? "" : `; held by ${listenerName(heldBy)}`;
  return { tone: "bad", mark: "!", what, text: `${who} is ${now}: ${reason}: ${message}${holder}` };
}

function listenerName(ref: ListenerRef): string {
  return `${ref.kind} ${nameOf(ref)}, listener ${ref.section}`;
}

function nameOf({ namespace, name }: ObjectRef): string {
  return `${namespace}/${name}`;
}
