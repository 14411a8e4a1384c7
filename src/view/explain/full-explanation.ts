import type { Explanation } from "../../matching/explain/explanation.ts";
import type { EliminatedCandidate } from "./refused-candidates.ts";

/** What the routing table says, and beside it whoever never got into the table. */
export type FullExplanation = Omit<Explanation, "eliminated"> & {
  readonly eliminated: readonly EliminatedCandidate[];
};
