import fc from "fast-check";
import type { RequestView } from "../../src/matching/request.ts";
import type { PathMatch, RequestMatch, ValueMatch } from "../../src/plan/rule.ts";
import { request } from "./plan-items.ts";

/** Few distinct words, so that requests meet rules often. */
const element = fc.constantFrom("a", "b", "ab", "");
const pathText = fc.array(element, { maxLength: 4 }).map((elements) => `/${elements.join("/")}`);
const method = fc.constantFrom("GET", "POST");
const name = fc.constantFrom("x", "y", "__proto__", "constructor");
const text = fc.constantFrom("1", "2", "");

const path: fc.Arbitrary<PathMatch> = fc.oneof(
  fc.record({ type: fc.constantFrom("exact" as const, "prefix" as const), value: pathText }),
  fc.record({
    type: fc.constant("regex" as const),
    value: fc.constantFrom("/a.*", "/(a|b)+", "/a/?", ".*", "["),
  }),
);

const values: fc.Arbitrary<ValueMatch[]> = fc.uniqueArray(
  fc.oneof(
    fc.record({ type: fc.constant("exact" as const), name, value: text }),
    fc.record({ type: fc.constant("regex" as const), name, value: fc.constantFrom("[12]", ".*", "1") }),
  ),
  { maxLength: 2, selector: (match) => match.name },
);

/** Mostly path alone, as routes are. */
export const randomMatch: fc.Arbitrary<RequestMatch> = fc
  .record({
    path: fc.option(path, { nil: undefined, freq: 6 }),
    method: fc.option(method, { nil: undefined, freq: 1 }),
    headers: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, values),
    query: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, values),
  })
  .map((match) => ({
    headers: match.headers,
    query: match.query,
    ...(match.path === undefined ? {} : { path: match.path }),
    ...(match.method === undefined ? {} : { method: match.method }),
  }));

export const randomRequest: fc.Arbitrary<RequestView> = fc
  .record({
    path: fc.oneof(pathText, fc.constant("*")),
    method,
    query: fc
      .array(fc.tuple(name, text), { maxLength: 3 })
      .map((all) => all.map((each) => each.join("=")).join("&")),
    headers: fc.uniqueArray(fc.tuple(name, text), { maxLength: 3, selector: ([each]) => each }),
  })
  // Object.fromEntries, unlike a literal, makes an own property of __proto__.
  .map((all) => request(all.path, { ...all, headers: Object.fromEntries(all.headers) }));
