import { afterEach, expect, test, vi } from "vitest";
import { expectNoFailure, firstFailure, NO_LIMIT } from "./failures.ts";
import { runHistory } from "./history.ts";
import { forgetEarlyReports, loseReportsAtControllers, loseReportsAtPlanes } from "./lost-reports.ts";

vi.mock("node:timers/promises", () => import("./timers-promises.ts"));

const HISTORIES = 50;
/** Among so many of the logic of before, several fail. */
const OLD_HISTORIES = 200;

afterEach(() => vi.restoreAllMocks());

test(
  "a controller that forgets reports of items that it does not have yet is found out",
  async () => {
    forgetEarlyReports();
    const like = /^not true after [\s\S]* says Programmed=False [\s\S]* the truth is Programmed=True/;
    expect(await firstFailure(runHistory, { first: 1, count: OLD_HISTORIES, like })).toBeDefined();
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
    await expectNoFailure(runHistory, HISTORIES);
  },
  NO_LIMIT,
);
