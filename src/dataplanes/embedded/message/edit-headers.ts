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

const otherSeparator = /[^-a-z0-9]/;
const otherSeparators = /[^-a-z0-9]/g;

/**
 * Takes away what a client says under a twin of a name that the route sets or removes (`X_User` for
 * `X-User`): a backend that turns names into variables could not tell the two apart.
 */
export function removeTwins(headers: HeaderFields, edits: readonly HeaderEdit[] | undefined): void {
  if (edits === undefined) return;
  headers.removeAll((name) => otherSeparator.test(name) && edits.some((edit) => isTwin(edit, name)));
}

/**
 * Whether the edit decides about a field of this name, or of one that a backend could take for it.
 */
export function touches(edit: HeaderEdit, name: string): boolean {
  return edit.op !== "add" && (edit.name === name || isTwin(edit, name));
}

function isTwin(edit: HeaderEdit, name: string): boolean {
  return edit.op !== "add" && edit.name !== name && fold(edit.name) === fold(name);
}

function fold(name: string): string {
  return name.replace(otherSeparators, "-");
}

export function applyEdits(headers: HeaderFields, edits: readonly HeaderEdit[] | undefined): void {
  if (edits === undefined) return;
  for (const { op, name, value } of edits) {
    if (framing.has(name)) continue;
    if (op === "remove") headers.remove(name);
    else if (op === "set") headers.set(name, value ?? "");
    else headers.add(name, value ?? "");
  }
}

/**
 * What guards have for the client stands in the place of what others say; cookies stand beside
 * theirs.
 */
export function addAnswerFields(
  headers: HeaderFields,
  fields: readonly (readonly [name: string, value: string])[],
): void {
  for (const [name] of fields) if (name !== "set-cookie") headers.remove(name);
  for (const [name, value] of fields) headers.add(name, value);
}
