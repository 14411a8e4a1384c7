/**
 * Controllers, pods and an API server in one process, under a clock and a chance of their own
 * (docs/reference/messages.md). A history that fails is told in plain words, and can be told again
 * by its number: `SIMULATION_FIRST=<number> SIMULATIONS=1 npx vitest run test/simulation`.
 */
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Outcome, runCalmHistory, runHistory, runStuckHistory, told } from "./history.ts";
import { forgetEarlyReports, loseReportsAtControllers, loseReportsAtPlanes } from "./lost-reports.ts";

vi.mock("node:timers/promises", () => import("./timers-promises.ts"));

const HISTORIES = Number(process.env["SIMULATIONS"] ?? 1_000);
const FIRST = Number(process.env["SIMULATION_FIRST"] ?? 1);
const CALM_HISTORIES = 25;
const LOSSY_HISTORIES = 50;
/** Of the logic of before, so many are enough. */
const MOST_OLD_HISTORIES = 200;
const NO_LIMIT = 24 * 3_600_000;

afterEach(() => vi.restoreAllMocks());

async function firstFailure(
  run: (seed: number) => Promise<Outcome>,
  { first, count }: { readonly first: number; readonly count: number },
): Promise<Outcome | undefined> {
  for (let seed = first; seed < first + count; seed++) {
    const outcome = await run(seed);
    if (outcome.failure !== undefined) return outcome;
  }
  return undefined;
}

describe("the simulation", () => {
  test(
    `statuses are true and every pod serves the newest plan after each of ${HISTORIES} histories of faults`,
    async () => {
      const failed = await firstFailure(runHistory, { first: FIRST, count: HISTORIES });
      if (failed !== undefined) expect.fail(told(failed));
    },
    NO_LIMIT,
  );

  test(
    "no status is untrue for more than two seconds where nothing fails",
    async () => {
      const failed = await firstFailure(runCalmHistory, { first: FIRST, count: CALM_HISTORIES });
      if (failed !== undefined) expect.fail(told(failed));
    },
    NO_LIMIT,
  );

  test(
    "no set is untrue for more than two seconds when its data plane takes nothing or cannot open a port",
    async () => {
      const failed = await firstFailure(runStuckHistory, { first: FIRST, count: CALM_HISTORIES });
      if (failed !== undefined) expect.fail(told(failed));
    },
    NO_LIMIT,
  );

  test(
    "a controller that forgets reports of items that it does not have yet is found out",
    async () => {
      forgetEarlyReports();
      const failed = await firstFailure(runHistory, { first: 1, count: MOST_OLD_HISTORIES });
      expect(failed?.failure).toMatch(
        /^not true after [\s\S]* says Programmed=False [\s\S]* the truth is Programmed=True/,
      );
    },
    NO_LIMIT,
  );

  test.each([
    ["a controller that loses reports", loseReportsAtControllers],
    ["a data plane that does not report everything", loseReportsAtPlanes],
  ])(
    "%s does not matter in the end",
    async (_who, lose) => {
      lose();
      const failed = await firstFailure(runHistory, { first: FIRST, count: LOSSY_HISTORIES });
      if (failed !== undefined) expect.fail(told(failed));
    },
    NO_LIMIT,
  );

  test("a history is the same whenever it is told", async () => {
    const [once, again] = [await runHistory(18), await runHistory(18)];
    expect(again).toEqual(once);
    expect(once.story.length).toBeGreaterThan(20);
  });
});
