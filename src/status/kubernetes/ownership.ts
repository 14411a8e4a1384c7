/**
 * What of an object's status was last written by us, by the API server's own records. Needed where
 * we have nothing more to say of an object: another controller may be in charge of it now, and
 * whatever that one has written is not ours to clear.
 */
import type { ManagedFields } from "../../kubernetes/api-object.ts";

export interface OwnedStatus {
  readonly conditions: ReadonlySet<string>;
  readonly listeners: ReadonlySet<string>;
  /** Other fields of the status, such as `addresses`. */
  readonly fields: ReadonlySet<string>;
}

export function ownedStatus(managed: readonly ManagedFields[] | undefined, manager: string): OwnedStatus {
  const conditions = new Set<string>();
  const listeners = new Set<string>();
  const fields = new Set<string>();
  for (const entry of managed ?? []) {
    if (entry.manager !== manager || entry.subresource !== "status") continue;
    const status = (entry as { readonly fieldsV1?: FieldSet }).fieldsV1?.["f:status"];
    for (const [name, below] of Object.entries(status ?? {})) {
      if (name === "f:conditions") for (const key of keysIn(below, "type")) conditions.add(key);
      else if (name === "f:listeners") for (const key of keysIn(below, "name")) listeners.add(key);
      else if (name.startsWith("f:")) fields.add(name.slice(2));
    }
  }
  return { conditions, listeners, fields };
}

export function isNothing({ conditions, listeners, fields }: OwnedStatus): boolean {
  return conditions.size + listeners.size + fields.size === 0;
}

interface FieldSet {
  readonly [field: string]: FieldSet | undefined;
}

/** Elements of a list map are recorded as `k:{"type":"Accepted"}`. */
function keysIn(set: FieldSet | undefined, key: string): readonly string[] {
  return Object.keys(set ?? {}).flatMap((name) => {
    if (!name.startsWith("k:")) return [];
    const value = (JSON.parse(name.slice(2)) as Readonly<Record<string, unknown>>)[key];
    return typeof value === "string" ? [value] : [];
  });
}
