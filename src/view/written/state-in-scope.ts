import { buildState, type StateSources } from "../build-state.ts";
import type { MergedState } from "../merged-state.ts";
import { knownMerge } from "./known-merge.ts";
import type { ReadingScope } from "./reading-scope.ts";
import { knownQuotas } from "./written-quotas.ts";
import { writtenState } from "./written-state.ts";

/** What somebody sees who may read this much. */
export function stateInScope(
  sources: StateSources & { readonly controllerName: string },
  scope: ReadingScope | undefined,
): MergedState {
  const { engine, resources, controllerName } = sources;
  if (scope === undefined || scope.sees === "all") return buildState(sources);
  const quotas = knownQuotas(engine.quotaUses(), resources, scope);
  if (scope.sees === "part") return writtenState({ resources, controllerName, quotas });
  return writtenState({ resources, controllerName, quotas, merge: knownMerge(engine, resources) });
}
