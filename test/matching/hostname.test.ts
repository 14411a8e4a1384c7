import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hostnameOf } from "../../src/matching/authority.ts";
import {
  compareSpecificity,
  coversPattern,
  intersectPatterns,
  matchesName,
  patternsOverlap,
} from "../../src/plan/hostname.ts";

test.each([
  ["example.com", "example.com"],
  ["Example.COM:8080", "example.com"],
  ["example.com.", "example.com"],
  ["example.com.:443", "example.com"],
  ["example.com:", "example.com"],
  ["[2001:DB8::1]", "[2001:db8::1]"],
  ["[2001:db8::1]:8443", "[2001:db8::1]"],
  ["[2001:db8::1", "[2001:db8::1"],
  ["10.0.0.1:80", "10.0.0.1"],
  ["", ""],
  [":80", ""],
  [".", ""],
])("the hostname of %j is %j", (authority, expected) => {
  expect(hostnameOf(authority)).toBe(expected);
});

describe("patterns", () => {
  test.each([
    ["*.example.com", "foo.example.com", "foo.example.com"],
    ["*.example.com", "a.b.example.com", "a.b.example.com"],
    ["*.example.com", "*.b.example.com", "*.b.example.com"],
    ["*.example.com", "*.example.com", "*.example.com"],
    ["", "*.example.com", "*.example.com"],
    ["", "", ""],
    ["*.example.com", "example.com", undefined],
    ["*.example.com", "*.example.org", undefined],
    ["*.a.example.com", "*.b.example.com", undefined],
    ["*.ample.com", "*.example.com", undefined],
    ["foo.example.com", "bar.example.com", undefined],
  ])("the intersection of %j and %j is %j", (a, b, expected) => {
    expect(intersectPatterns(a, b)).toBe(expected);
    expect(intersectPatterns(b, a)).toBe(expected);
  });

  test.each([
    ["*.example.com", "test.example.com", true],
    ["*.example.com", "foo.test.example.com", true],
    ["*.example.com", "example.com", false],
    ["*.example.com", ".example.com", false],
    ["*.example.com", "notexample.com", false],
    ["example.com", "www.example.com", false],
    ["", "example.com", true],
    ["", "", true],
  ])("the pattern %j matches the name %j: %s", (pattern, name, expected) => {
    expect(matchesName(pattern, name)).toBe(expected);
  });

  test("exact patterns come first, then wildcards by their dots, then the empty pattern", () => {
    const sorted = [
      "foo.example.com",
      "*.a.b.example.com",
      "*.foo.example.com",
      "*.example.com",
      "*.com",
      "",
    ];
    expect(sorted.toReversed().sort(compareSpecificity)).toEqual(sorted);
  });

  const label = fc.constantFrom("a", "b", "com");
  const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join("."));
  const pattern = fc.oneof(
    name,
    name.map((suffix) => `*.${suffix}`),
    fc.constant(""),
  );

  test("property: intersection, overlap, coverage and specificity follow from which names match", () => {
    fc.assert(
      fc.property(pattern, pattern, name, (a, b, asked) => {
        const both = matchesName(a, asked) && matchesName(b, asked);
        const common = intersectPatterns(a, b);
        expect(common !== undefined && matchesName(common, asked)).toBe(both);
        expect(patternsOverlap(a, b)).toBe(common !== undefined);
        if (coversPattern(a, b) && matchesName(b, asked)) expect(matchesName(a, asked)).toBe(true);
        if (coversPattern(a, b) && a !== b) expect(compareSpecificity(b, a)).toBeLessThan(0);
        if (both && a !== b) expect(compareSpecificity(a, b)).not.toBe(0);
      }),
      { numRuns: 2000 },
    );
  });
});
