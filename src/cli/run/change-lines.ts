/** Changes as lines for people, and as fields for machines. */

import type { ListenerChange, StateChange } from "../../view/change.ts";
import { describe, describeListener, type ListenerRef, nameOf } from "../../view/merged-state.ts";
import type { Fields, Logger } from "./logger.ts";

/** More lines than anybody reads at once. */
const MAX_LINES = 40;

export function logChanges(changes: readonly StateChange[], logger: Logger): void {
  const moved = new Set(
    changes.flatMap((change) => (change.type === "listener" ? [listenerText(change.listener)] : [])),
  );
  const worth = changes.filter((change) =>
    // Rules that come and go with their listener are no news of their own.
    change.type === "host" ? !moved.has(listenerText(change.listener)) : isWorthTelling(change),
  );
  for (const change of worth.slice(0, MAX_LINES)) {
    const level = isTrouble(change) ? "warn" : "info";
    logger[level](changeLine(change), fieldsOf(change));
  }
  const left = worth.length - MAX_LINES;
  if (left > 0) logger.info(`… and ${left} more changes`, { event: "more-changes", count: left });
}

/** What is only on its way to somewhere else says nothing. */
function isWorthTelling(change: StateChange): boolean {
  return change.type !== "listener" || change.now !== "waiting";
}

export function isTrouble(change: StateChange): boolean {
  if (change.type === "route") return change.problems.length > 0;
  return change.type === "listener" && change.now !== undefined && change.now !== "serving";
}

export function changeLine(change: StateChange): string {
  switch (change.type) {
    case "listener":
      return listenerLine(change);
    case "route": {
      const route = describe(change.route);
      if (change.removed) return `- ${route}`;
      const problems = change.problems.map(({ reason, message }) => `${reason}: ${message}`);
      return problems.length === 0 ? `~ ${route}: accepted` : `! ${route}: ${problems.join("; ")}`;
    }
    case "host": {
      const rules = change.rules === 1 ? "1 rule" : `${change.rules} rules`;
      return `~ ${change.hostname || "any hostname"} at ${describeListener(change.listener)}: ${rules}`;
    }
    case "certificate":
      return `~ certificate ${change.secret}: ${change.names.join(", ")}`;
    case "backend": {
      const { service, endpoints } = change;
      return `~ Service ${nameOf({ kind: "Service", ...service })}:${service.port}: ${endpoints} ready endpoints`;
    }
  }
}

function listenerLine(change: ListenerChange): string {
  const { before, now, protocol, port, hostname, reason, message, heldBy } = change;
  const what = `${protocol} :${port} ${hostname || "(any hostname)"}  ${describeListener(change.listener)}`;
  if (now === undefined) return `- ${what}`;
  if (now === "serving")
    return `${before === undefined || before === "waiting" ? "+" : "~"} ${what}: serving`;
  const holder = heldBy === undefined ? "" : ` (held by ${describeListener(heldBy)})`;
  return `! ${what}: ${now}, ${reason}: ${message}${holder}`;
}

function fieldsOf(change: StateChange): Fields {
  const { type, ...rest } = change;
  const shown = Object.entries(rest).map(([name, value]) => [
    name,
    isListener(value) ? listenerText(value) : value,
  ]);
  return { event: type, ...Object.fromEntries(shown) };
}

function isListener(value: unknown): value is ListenerRef {
  return typeof value === "object" && value !== null && "section" in value;
}

function listenerText({ kind, namespace, name, section }: ListenerRef): string {
  return `${kind}/${namespace}/${name}#${section}`;
}
