/**
 * `cors` of a TrafficPolicy, in the shape of HTTPRoute's filter (HTTPCORSFilter). A default holds
 * for rules without a filter of their own. Two lists of origins have no common pattern in general,
 * so overrides are not combined: the farthest takes the place of whatever nearer levels say.
 */
import type { RouteFilter } from "../../../api/routes.ts";
import type { CorsPolicy, ForwardAction } from "../../../plan/rule.ts";
import { checkedCors, compiledCors } from "../../rules/filters.ts";

export interface CorsSetting {
  readonly type: "cors";
  readonly policy: CorsPolicy;
}

export function readCors(cors: NonNullable<RouteFilter["cors"]>): CorsSetting | { readonly problem: string } {
  const unfit = checkedCors({ cors });
  return unfit === undefined
    ? { type: "cors", policy: compiledCors({ cors }) }
    : { problem: unfit.failure.message };
}

/** Redirects have none: Envoy has no CORS for what it answers itself. */
export function withCors(action: ForwardAction, { policy }: CorsSetting, isOverride: boolean): ForwardAction {
  const { filters } = action;
  const set = { ...filters, cors: policy };
  if (!isOverride) return filters.cors === undefined ? { ...action, filters: set } : action;
  // What a backendRef says of itself would come before the rule's.
  const backends = action.backends.map((each) => {
    const { cors: _own, ...others } = each.filters;
    return { ...each, filters: others };
  });
  return { ...action, filters: set, backends };
}
