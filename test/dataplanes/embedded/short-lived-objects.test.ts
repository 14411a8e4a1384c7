import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { FLAG } from "../../../src/dataplanes/embedded/short-lived-objects.ts";

/**
 * V8 passes over a flag that it does not know when it is set within a process; on the command line
 * it is an error.
 */
test.each([
  [FLAG, 0],
  [`${FLAG}-of-old`, 9],
])("node %s ends with %d", (flag, status) => {
  expect(spawnSync(process.execPath, [flag, "--eval", ""]).status).toBe(status);
});
