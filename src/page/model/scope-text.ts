import type { ReadingScope } from "../../view/written/reading-scope.ts";

/** Whose view it is, for people who do not see everything. */
export function scopeText(
  scope: ReadingScope | undefined,
): { readonly short: string; readonly long: string } | undefined {
  if (scope === undefined || scope.sees === "all") return undefined;
  const { sees, namespaces, unread } = scope;
  const missing = unread.length === 0 ? "" : ` You may not read ${unread.join(", ")}.`;
  if (sees === "merge") {
    return {
      short: "from statuses",
      long: `Who holds what is computed, the rest is from statuses.${missing}`,
    };
  }
  const where = namespaces.length === 0 ? "what you may read" : namespaces.join(", ");
  return {
    short: `your view: ${where}`,
    long: `Only what you may read, from the statuses of your objects.${missing}`,
  };
}

/** A conflict with somebody whom the reader may not see. */
export function isHeldByOthers(
  { state, heldBy }: { readonly state: string; readonly heldBy?: unknown },
  scope: ReadingScope | undefined,
): boolean {
  return scope?.sees === "part" && state === "conflicted" && heldBy === undefined;
}
