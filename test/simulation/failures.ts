import { expect } from "vitest";
import { type Outcome, told } from "./history.ts";

/** Histories take the time that they take, on whatever machine. */
export const NO_LIMIT: number = 24 * 3_600_000;
export const FIRST: number = Number(process.env["SIMULATION_FIRST"] ?? 1);

/** Who waits for an hour wants to see that it goes on. */
const PROGRESS = 1_000;

interface Search {
  readonly first: number;
  readonly count: number;
  /** Which failures are looked for; all without it. */
  readonly like?: RegExp;
}

export async function firstFailure(
  run: (seed: number) => Promise<Outcome>,
  { first, count, like = /./ }: Search,
): Promise<Outcome | undefined> {
  for (let seed = first; seed < first + count; seed++) {
    const outcome = await run(seed);
    if (outcome.failure !== undefined && like.test(outcome.failure)) return outcome;
    const done = seed - first + 1;
    if (done % PROGRESS === 0 && done < count) process.stderr.write(`${done} of ${count} histories\n`);
  }
  return undefined;
}

/** Fails with the story of the first history that does. */
export async function expectNoFailure(run: (seed: number) => Promise<Outcome>, count: number): Promise<void> {
  const failed = await firstFailure(run, { first: FIRST, count });
  if (failed !== undefined) expect.fail(told(failed));
}
