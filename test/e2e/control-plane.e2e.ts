import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Bed } from "../../tools/cluster/bed.ts";

/**
 * Source, statuses, Events and leader election against a real API server; test/e2e/inside has the
 * tests themselves.
 */
let bed: Bed;

beforeAll(async () => {
  bed = await Bed.up("control-plane");
});

afterAll(async () => {
  await bed.down();
});

// All of test/e2e/inside is one test here.
test("the control plane's tests pass inside a cluster", { timeout: 1_200_000 }, async () => {
  const vitest = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));
  const config = fileURLToPath(new URL("inside/vitest.config.ts", import.meta.url));
  const { code, out, err } = await bed.run([process.execPath, vitest, "run", "--config", config]);
  expect(code, `${out}\n${err}`).toBe(0);
});
