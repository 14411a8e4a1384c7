/**
 * What replicas that lag mean for a Gateway's Programmed condition:
 *
 * - Some lag: True. The newest configuration is served somewhere; the message says how many
 *   replicas do not serve it yet.
 * - All lag: False, Pending. It is served nowhere (GatewayReasonPending).
 *
 * Only the Gateway says so. Its sets and children report their own entries, each of which was
 * confirmed or is pending by itself. One slow replica is not worth a status write for each of a
 * thousand tenants.
 */

import type { ReplicaFact } from "../foundation/inputs.ts";
import { fails, type Verdict } from "../foundation/verdict.ts";

const MOST_NAMES = 3;

export function withReplicas(
  conditions: readonly Verdict[],
  fact: ReplicaFact | undefined,
): readonly Verdict[] {
  if (fact === undefined || fact.lagging.length === 0) return conditions;
  const message = lagMessage(fact);
  return conditions.map((condition) => {
    if (condition.type !== "Programmed" || condition.status !== "True") return condition;
    if (fact.lagging.length < fact.replicas)
      return { ...condition, message: `${condition.message}; ${message}` };
    return fails("Programmed", { reason: "Pending", message });
  });
}

function lagMessage({ replicas, lagging }: ReplicaFact): string {
  const named = lagging.slice(0, MOST_NAMES).join(", ");
  const more = lagging.length > MOST_NAMES ? ` and ${lagging.length - MOST_NAMES} more` : "";
  const verb = lagging.length === 1 ? "has" : "have";
  return `${lagging.length} of ${replicas} replicas ${verb} not confirmed the newest configuration: ${named}${more}`;
}
