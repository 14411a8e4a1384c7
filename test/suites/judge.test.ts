import { expect, test } from "vitest";
import { explanation, judge, type KnownDifference } from "../../suites/judge.ts";
import type { Case } from "../../suites/suite.ts";

const passed = (name: string, part = "cleartext"): Case => ({ part, name, outcome: "passed" });
const failed = (name: string, part = "cleartext"): Case => ({ part, name, outcome: "failed", reason: "no" });
const known = (name: string | RegExp, part?: string): KnownDifference => ({
  suite: "s",
  contestant: "envoy",
  name,
  reason: "Envoy decides so",
  ...(part === undefined ? {} : { part }),
});

test("a suite that passes through both data planes has no errors", () => {
  const { rows, errors, failures } = judge("s", { embedded: [passed("a")], envoy: [passed("a")] }, []);
  expect({ errors, failures }).toEqual({ errors: [], failures: [] });
  expect(rows).toEqual([
    {
      part: "cleartext",
      cases: 1,
      passed: { embedded: 1, envoy: 1 },
      skipped: { embedded: 0, envoy: 0 },
    },
  ]);
});

test("a case that fails through a data plane is an error, also where it fails without a gateway", () => {
  const { errors } = judge("s", { embedded: [failed("a")], direct: [failed("a")] }, []);
  expect(errors).toEqual(["s, embedded: cleartext: a: no"]);
});

test("a case that fails without a gateway only is shown and no error", () => {
  const { errors, failures } = judge("s", { embedded: [passed("a")], direct: [failed("a")] }, []);
  expect(errors).toEqual([]);
  expect(failures).toEqual([{ contestant: "direct", part: "cleartext", name: "a", reason: "no" }]);
});

test("a known difference explains a failure of its own data plane, part and case only", () => {
  const cases = [failed("a"), failed("a", "TLS"), failed("b")];
  const entries = [known("a", "TLS")];
  const { errors, failures } = judge("s", { embedded: cases, envoy: cases }, entries);
  expect(failures.filter((failure) => explanation(failure, entries) === "Envoy decides so")).toEqual([
    { contestant: "envoy", part: "TLS", name: "a", reason: "no" },
  ]);
  expect(errors).toHaveLength(5);
});

test("a known difference that no longer occurs is an error", () => {
  const { errors } = judge("s", { envoy: [passed("a1"), failed("a2")] }, [known(/^a\d$/)]);
  expect(errors).toEqual(["s, envoy: cleartext: a1 passes by now: take it from suites/known-differences.ts"]);
});

test("a known difference that is a race may pass and may fail", () => {
  const race: KnownDifference = { ...known("a"), racy: true };
  expect(judge("s", { envoy: [passed("a")] }, [race]).errors).toEqual([]);
  expect(judge("s", { envoy: [failed("a")] }, [race]).errors).toEqual([]);
});

test("a known difference is no error where its case, or its data plane, did not run", () => {
  expect(judge("s", { embedded: [passed("a")] }, [known("a")]).errors).toEqual([]);
  expect(judge("s", { envoy: [passed("b")] }, [known("a")]).errors).toEqual([]);
});

test("a case that others have and a data plane has not counts as failed", () => {
  const { errors } = judge("s", { embedded: [passed("a")], envoy: [passed("a"), passed("b")] }, []);
  expect(errors).toEqual(["s, embedded: cleartext: b: the suite gave no result"]);
});

test("a skipped case is neither a success nor an error", () => {
  const skipped: Case = { part: "cleartext", name: "a", outcome: "skipped" };
  const { errors, rows } = judge("s", { embedded: [skipped] }, []);
  expect(errors).toEqual([]);
  expect(rows[0]).toMatchObject({ passed: { embedded: 0 }, skipped: { embedded: 1 } });
});
