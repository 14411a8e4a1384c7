import type { ForwardAction, WeightedBackend } from "../../plan/rule.ts";
import type { RoutingTable } from "../routing-table.ts";
import type { BackendShare } from "./explanation.ts";

/**
 * What a chosen backend's requests are answered with instead of being forwarded: an invalid
 * reference or a policy that cannot be applied is 500, a Service without ready endpoints 503.
 * Undefined: they are forwarded.
 */
export function backendFailure(table: RoutingTable, { backend: id }: WeightedBackend): 500 | 503 | undefined {
  if (id === undefined) return 500;
  const backend = table.get("backend", id);
  if (backend?.refused !== undefined) return 500;
  return backend === undefined || backend.endpoints.length === 0 ? 503 : undefined;
}

/**
 * Where the requests of a rule go: the status is set if none is forwarded, whatever backend is
 * chosen. Without any weight every request is 500, and so it is with several kinds of failure,
 * since each alone may be chosen.
 */
export function sharesOf(
  table: RoutingTable,
  action: ForwardAction,
): { readonly backends: readonly BackendShare[]; readonly status: 500 | 503 | undefined } {
  const sum = action.backends.reduce((total, { weight }) => total + weight, 0);
  const backends = action.backends.map((weighted): BackendShare => {
    const item = weighted.backend === undefined ? undefined : table.get("backend", weighted.backend);
    const status = backendFailure(table, weighted);
    return {
      ...item?.service,
      weight: weighted.weight,
      share: sum === 0 ? 0 : weighted.weight / sum,
      endpoints: item?.endpoints ?? [],
      ...(status === undefined ? {} : { status }),
    };
  });
  const chosen = backends.filter(({ weight }) => weight > 0);
  if (chosen.some(({ status }) => status === undefined)) return { backends, status: undefined };
  return { backends, status: chosen.length > 0 && chosen.every(({ status }) => status === 503) ? 503 : 500 };
}
