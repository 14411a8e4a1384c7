/** Cases that fail through a data plane and may: each with the reason why it stays so. */

import type { KnownDifference } from "./judge.ts";

export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [];
