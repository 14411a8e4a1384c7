/**
 * Controllers, pods and an API server in one process, under a clock and a chance of their own
 * (docs/reference/messages.md). A history that fails is told in plain words, and can be told again
 * by its number: `SIMULATION_FIRST=<number> SIMULATIONS=1 npx vitest run test/simulation`.
 */
import { expect, test, vi } from "vitest";
import { expectNoFailure, NO_LIMIT } from "./failures.ts";
import { runHistory } from "./history.ts";

vi.mock("node:timers/promises", () => import("./timers-promises.ts"));

const HISTORIES = Number(process.env["SIMULATIONS"] ?? 1_000);

test(
  `statuses are true and every pod serves the newest plan after each of ${HISTORIES} histories of faults`,
  () => expectNoFailure(runHistory, HISTORIES),
  NO_LIMIT,
);

test("a history is the same whenever it is told", async () => {
  const [once, again] = [await runHistory(18), await runHistory(18)];
  expect(again).toEqual(once);
  expect(once.story.length).toBeGreaterThan(20);
});
