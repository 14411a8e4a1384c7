/** What is shown to people while nothing fails, or little. */
import { test, vi } from "vitest";
import { expectNoFailure, NO_LIMIT } from "./failures.ts";
import { runCalmHistory, runStuckHistory } from "./history.ts";

vi.mock("node:timers/promises", () => import("./timers-promises.ts"));

const HISTORIES = 25;

test(
  "no status is untrue for more than two seconds where nothing fails",
  () => expectNoFailure(runCalmHistory, HISTORIES),
  NO_LIMIT,
);

test(
  "no set is untrue for more than two seconds when its data plane takes nothing or cannot open a port",
  () => expectNoFailure(runStuckHistory, HISTORIES),
  NO_LIMIT,
);
