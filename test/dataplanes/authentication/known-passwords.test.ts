import { expect, test } from "vitest";
import { KnownPasswords } from "../../../src/dataplanes/authentication/basic.ts";

test("one tenant's users do not push out another's, and those who come again stay", () => {
  const known = new KnownPasswords();
  known.add("a", "password", "hash");
  known.add("b", "often", "hash");
  known.add("b", "once", "hash");
  for (let user = 0; user < 4_095; user++) {
    expect(known.has("b", "often", "hash")).toBe(true);
    known.add("b", `password ${user}`, "hash");
  }
  expect(known.has("b", "once", "hash")).toBe(false);
  expect(known.has("a", "password", "hash")).toBe(true);
  expect(known.has("a", "password", "other hash")).toBe(false);
  expect(known.has("b", "password", "hash")).toBe(false);
});
