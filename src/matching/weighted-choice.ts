/**
 * Chooses one of a rule's backends by weight: the one implementation for HTTP, TLS, TCP and UDP.
 *
 *  - Weights are relative; the share of a backend is its weight over the sum.
 *  - Weight 0 never serves. A sum of 0 (or no backend at all) chooses nothing: undefined.
 *  - An invalid reference keeps its share: the chosen entry then has no `backend`, and the caller
 *    refuses (500 for HTTP, a reset for TLS and TCP, silence for UDP).
 *
 * Pure: `random` gives numbers in [0, 1) and is the only source of chance.
 */

import type { WeightedBackend } from "../plan/rule.ts";

export function chooseWeighted(
  backends: readonly WeightedBackend[],
  random: () => number,
): WeightedBackend | undefined {
  let sum = 0;
  let last: WeightedBackend | undefined;
  for (const entry of backends) {
    if (entry.weight > 0) {
      sum += entry.weight;
      last = entry;
    }
  }
  if (last === undefined || backends.length === 1) return last;
  let rest = random() * sum;
  for (const entry of backends) {
    rest -= entry.weight;
    if (rest < 0) return entry;
  }
  // Rounding can leave a rest of 0 at the very end of the range.
  return last;
}
