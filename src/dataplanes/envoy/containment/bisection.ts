/**
 * Finds by halving which of many are refused, by a conversation: it yields what is to be tried, and
 * is told whether it was taken.
 */

/** How many tries there may be. */
export class Budget {
  #left: number;

  constructor(tries: number) {
    this.#left = tries;
  }

  spend(): boolean {
    return this.#left-- > 0;
  }
}

/** Those of `all`, which are refused together, that are refused on their own. */
export function* bisect<T, Trial>(
  all: readonly T[],
  trialOf: (some: readonly T[]) => Trial,
  budget?: Budget,
): Generator<Trial, readonly T[], boolean> {
  if (all.length <= 1) return all;
  const middle = all.length >> 1;
  const refused: T[] = [];
  let allGoodSoFar = true;
  for (const [at, half] of [all.slice(0, middle), all.slice(middle)].entries()) {
    if (budget !== undefined && !budget.spend()) {
      refused.push(...half);
      continue;
    }
    // If the first half is good, it is the second one's fault.
    const isGood: boolean = at === 1 && allGoodSoFar ? false : yield trialOf(half);
    if (isGood) continue;
    allGoodSoFar = false;
    for (const each of yield* bisect(half, trialOf, budget)) refused.push(each);
  }
  return refused;
}
