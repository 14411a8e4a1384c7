/**
 * Finds the rejected ones among many by bisection. A generator: it yields what to try, and is
 * resumed with whether Envoy accepted it.
 */

/** The most tries. */
export class Budget {
  #left: number;

  constructor(tries: number) {
    this.#left = tries;
  }

  spend(): boolean {
    return this.#left-- > 0;
  }
}

/** Of `all`, which are rejected together, those that are rejected alone. */
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
    // If the first half is accepted, the cause is in the second one.
    const isGood: boolean = at === 1 && allGoodSoFar ? false : yield trialOf(half);
    if (isGood) continue;
    allGoodSoFar = false;
    for (const each of yield* bisect(half, trialOf, budget)) refused.push(each);
  }
  return refused;
}
