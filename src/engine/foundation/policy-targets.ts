import type { Key } from "../../api/key.ts";

/** An object, or a section of it: `key|section`, the section empty for the whole object. */
export type TargetKey = string;

export function targetKey(object: Key, section: string | undefined): TargetKey {
  return `${object}|${section ?? ""}`;
}

export function targetParts(target: TargetKey): {
  readonly object: Key;
  readonly section: string | undefined;
} {
  const bar = target.lastIndexOf("|");
  const section = target.slice(bar + 1);
  return { object: target.slice(0, bar), section: section === "" ? undefined : section };
}
