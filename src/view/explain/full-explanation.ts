import type { Explanation } from "../../matching/explain/explanation.ts";
import type { EffectivePolicy } from "./effective-policy.ts";
import type { EliminatedCandidate } from "./refused-candidates.ts";

export type FullExplanation = Omit<Explanation, "eliminated" | "guards"> & {
  readonly eliminated: readonly EliminatedCandidate[];
  readonly policy: EffectivePolicy;
};
