import type { HeaderEdit } from "../../../plan/rule.ts";
import type { HeaderFields } from "./header-fields.ts";

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

export function applyEdits(headers: HeaderFields, edits: readonly HeaderEdit[] | undefined): void {
  if (edits === undefined) return;
  for (const { op, name, value } of edits) {
    if (framing.has(name)) continue;
    if (op === "remove") headers.remove(name);
    else if (op === "set") headers.set(name, value ?? "");
    else headers.add(name, value ?? "");
  }
}
