/**
 * Which objects infrastructure may be written over: those that were made for the same Gateway, told
 * by who owns them or by what we have written on them. Anything else that bears a name of ours is
 * somebody's: it is left alone, and the Gateway says so until it is gone.
 */
import type { Gateway } from "../api/gateway.ts";
import { GATEWAY_NAME_ANNOTATION, MANAGED_BY } from "./objects/names.ts";

/** As much of an object as tells whose it is. */
export interface Found {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly { readonly kind: string; readonly uid: string }[];
}

/**
 * By name alone where a Gateway is gone. Written marks count as well: a Gateway that was made anew
 * takes on what was made for the one before.
 */
export function isMadeFor({ name, uid }: Pick<Gateway["metadata"], "name" | "uid">, found: Found): boolean {
  const { labels = {}, annotations = {}, ownerReferences = [] } = found;
  return (
    (labels["app.kubernetes.io/managed-by"] === MANAGED_BY &&
      annotations[GATEWAY_NAME_ANNOTATION] === name) ||
    ownerReferences.some((owner) => owner.kind === "Gateway" && owner.uid === uid)
  );
}

/** Of a Gateway's Programmed condition. */
export function nameTaken(objects: readonly { readonly kind: string; readonly name: string }[]): {
  readonly reason: string;
  readonly message: string;
} {
  const names = objects.map(({ kind, name }) => `${kind} ${name}`).join(", ");
  const message = `not made for this Gateway, and left alone: ${names}. Delete what has the name, or make it anew under another one; the Gateway is served as soon as the name is free`;
  return { reason: "NameTaken", message };
}
