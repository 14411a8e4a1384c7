import type { HeaderEdit } from "../../../../plan/rule.ts";
import { headerOption } from "../../messages/core.ts";
import type { HeaderChanges } from "../../messages/route.ts";

/** Fields that frame a message or belong to one connection: no route may touch them. */
const framing: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

interface Outcome {
  replaces: boolean;
  values: string[];
}

/**
 * What a list of edits comes to. Envoy removes before it adds, so the edits of a rule and of its
 * backend are first put together name by name. The host is no header to Envoy: setting it is a
 * rewrite.
 */
export function headerChanges(...lists: readonly (readonly HeaderEdit[] | undefined)[]): {
  readonly changes: HeaderChanges | undefined;
  readonly host: string | undefined;
  /** Names of fields of which nothing stays that was there before. */
  readonly decided: readonly string[];
} {
  const outcomes = new Map<string, Outcome>();
  for (const { op, name, value = "" } of lists.flatMap((list) => list ?? [])) {
    if (framing.has(name)) continue;
    const outcome = outcomes.get(name) ?? { replaces: false, values: [] };
    outcomes.set(name, outcome);
    if (op === "add") outcome.values.push(value);
    else {
      outcome.replaces = true;
      outcome.values = op === "set" ? [value] : [];
    }
  }
  const host = outcomes.get("host")?.values.at(-1);
  outcomes.delete("host");
  if (outcomes.size === 0) return { changes: undefined, host, decided: [] };
  const remove: string[] = [];
  const options = [...outcomes].flatMap(([name, { replaces, values }]) => {
    if (replaces && values.length === 0) remove.push(name);
    return values.map((value, index) =>
      headerOption(name, escaped(value), replaces && index === 0 ? "overwrite" : "append"),
    );
  });
  const decided = [...outcomes].filter(([, { replaces }]) => replaces).map(([name]) => name);
  return { changes: { options, remove }, host, decided };
}

/** A percent sign begins a command in Envoy's header values. */
export function escaped(value: string): string {
  return value.replaceAll("%", "%%");
}
