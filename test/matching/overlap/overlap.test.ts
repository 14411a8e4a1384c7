import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { coversMatch } from "../../../src/matching/overlap/coverage.ts";
import { type OverlapReport, overlapsAt } from "../../../src/matching/overlap/overlap.ts";
import { overlapsWithin } from "../../../src/matching/overlap/shadow.ts";
import { RequestFacts } from "../../../src/matching/request.ts";
import { matchesRequest } from "../../../src/matching/request-match.ts";
import type { OwnerRef, PlanItem } from "../../../src/plan/plan.ts";
import type { RequestMatch, Rule, ValueMatch } from "../../../src/plan/rule.ts";
import { exact, host, listener, port, prefix, rule, tableOf } from "../plan-items.ts";
import { randomMatch, randomRequest } from "../random-requests.ts";

const regex = (value: string) => ({ type: "regex", value }) as const;
const value = (name: string, text: string): ValueMatch => ({ type: "exact", name, value: text });
const expression = (name: string, text: string): ValueMatch => ({ type: "regex", name, value: text });

describe("one match covers another", () => {
  test.each([
    ["identical", { path: prefix("/a") }, { path: prefix("/a") }, true],
    ["a trailing slash is nothing", { path: prefix("/a/") }, { path: prefix("/a") }, true],
    ["prefix over longer prefix", { path: prefix("/a") }, { path: prefix("/a/b") }, true],
    ["by whole elements", { path: prefix("/a") }, { path: prefix("/ab") }, false],
    ["not over a shorter one", { path: prefix("/a/b") }, { path: prefix("/a") }, false],
    ["prefix over exact", { path: prefix("/a") }, { path: exact("/a/b") }, true],
    ["exact not over prefix", { path: exact("/a") }, { path: prefix("/a") }, false],
    ["expression over exact", { path: regex("/a.") }, { path: exact("/ab") }, true],
    ["expression over another: cannot tell", { path: regex(".*") }, { path: regex("/a.*") }, false],
    ["expression over prefix: cannot tell", { path: regex(".*") }, { path: prefix("/a") }, false],
    ["/ over an expression", { path: prefix("/") }, { path: regex("/a.*") }, true],
    ["/ over an expression that takes *", { path: prefix("/") }, { path: regex(".*") }, false],
    ["no path over all", {}, { path: regex(".*") }, true],
    ["/ not over no path, which takes *", { path: prefix("/") }, {}, false],
    ["a method narrows", {}, { method: "GET" }, true],
    ["and does not widen", { method: "GET" }, {}, false],
    ["fewer headers", { headers: [value("a", "1")] }, { headers: [value("b", "2"), value("a", "1")] }, true],
    ["more headers", { headers: [value("a", "1"), value("b", "2")] }, { headers: [value("a", "1")] }, false],
    ["other value", { headers: [value("a", "1")] }, { headers: [value("a", "2")] }, false],
    ["expression over value", { headers: [expression("a", ".")] }, { headers: [value("a", "1")] }, true],
    ["value not over expression", { headers: [value("a", "1")] }, { headers: [expression("a", "1")] }, false],
    ["query", { query: [value("a", "1")] }, { query: [value("a", "1"), value("b", "1")] }, true],
    ["a header is no query parameter", { query: [value("a", "1")] }, { headers: [value("a", "1")] }, false],
  ] satisfies [string, Partial<RequestMatch>, Partial<RequestMatch>, boolean][])(
    "%s",
    (_, wide, narrow, expected) => {
      expect(coversMatch(rule("w", wide).match, rule("n", narrow).match)).toBe(expected);
    },
  );

  test("property: a covered match never holds where the covering one does not", () => {
    fc.assert(
      fc.property(
        randomMatch,
        randomMatch,
        fc.array(randomRequest, { minLength: 20, maxLength: 20 }),
        (wide, narrow, views) => {
          if (!coversMatch(wide, narrow)) return;
          for (const view of views) {
            const facts = new RequestFacts(view);
            if (matchesRequest(narrow, facts)) expect(matchesRequest(wide, facts)).toBe(true);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe("rules of one host", () => {
  const names = (rules: readonly { readonly rule: Rule; readonly by: Rule }[]) =>
    rules.map((each) => `${each.rule.origin.name} by ${each.by.origin.name}`);

  test("of two routes with the same match, the second is never reached", () => {
    const rules = [rule("first", { path: prefix("/a") }), rule("second", { path: prefix("/a/") })];
    const { shadowed } = overlapsWithin(host("h", "l", "", rules));
    expect(shadowed).toMatchObject([{ rule: rules[1], by: rules[0], identical: true }]);
  });

  test("conditions in another order are the same conditions", () => {
    const [a, b] = [value("a", "1"), value("b", "2")];
    const rules = [rule("first", { headers: [a, b] }), rule("second", { headers: [b, a] })];
    expect(overlapsWithin(host("h", "l", "", rules)).shadowed).toMatchObject([{ identical: true }]);
  });

  test("an expression shadows a later exact path that it matches", () => {
    const rules = [
      rule("any", { path: regex("/a.*") }),
      rule("exact", { path: exact("/ab") }),
      rule("free", { path: exact("/b") }),
    ];
    expect(names(overlapsWithin(host("h", "l", "", rules)).shadowed)).toEqual(["exact by any"]);
  });

  test("a stream is served by one rule, and the others are shadowed", () => {
    const rules = [rule("first"), rule("second"), rule("third")];
    expect(names(overlapsWithin(host("h", "l", "", rules)).shadowed)).toEqual([
      "second by first",
      "third by first",
    ]);
  });

  test("a rule with conditions shadows one with the same conditions and more", () => {
    const rules = [
      rule("post", { path: prefix("/a"), method: "POST" }),
      rule("post-x", { path: prefix("/a/b"), method: "POST", headers: [value("x", "1")] }),
      rule("get", { path: prefix("/a/b"), method: "GET" }),
    ];
    expect(names(overlapsWithin(host("h", "l", "", rules)).shadowed)).toEqual(["post-x by post"]);
  });

  test("a narrower rule is reported when it is of another namespace, not when it is of the same", () => {
    const of = (namespace: string, name: string, path: string): Rule => {
      const made = rule(name, { path: prefix(path) });
      return { ...made, origin: { ...made.origin, namespace } };
    };
    const rules = [of("b", "deep", "/a/b/c"), of("a", "own", "/a/b"), of("a", "all", "/")];
    const { shadowed, partlyTaken } = overlapsWithin(host("h", "l", "", rules));
    expect(shadowed).toEqual([]);
    expect(names(partlyTaken)).toEqual(["own by deep"]);
  });

  test("property: found are exactly the rules that an earlier one covers, and none of them ever serves", () => {
    fc.assert(
      fc.property(
        fc.array(randomMatch, { maxLength: 25 }),
        fc.array(randomRequest, { maxLength: 20 }),
        (matches, views) => {
          const rules = matches.map((match, at) => rule(`r${at}`, match));
          const found = overlapsWithin(host("h", "l", "", rules)).shadowed.map((each) => each.rule);
          const naive = rules.filter((each, at) =>
            rules.slice(0, at).some((earlier) => coversMatch(earlier.match, each.match)),
          );
          expect(found).toEqual(naive);
          const table = tableOf(port("p"), listener("l", "p", ""), host("h", "l", "", rules));
          for (const view of views) expect(found).not.toContain(table.matchRule("l", "x", view));
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe("listeners and hosts of one port", () => {
  const owner = (name: string): { readonly owner: OwnerRef } => ({
    owner: { kind: "ListenerSet", namespace: name, name },
  });
  const at = (...items: readonly PlanItem[]): OverlapReport => overlapsAt(tableOf(port("p"), ...items), "p");

  test("an exact listener of another owner takes a part of a wildcard", () => {
    const { listeners } = at(
      listener("any", "p", "", owner("a")),
      listener("wild", "p", "*.example.com", owner("a")),
      listener("exact", "p", "x.y.example.com", owner("b")),
      listener("own", "p", "z.example.com", owner("a")),
      listener("apart", "p", "example.org", owner("a")),
    );
    expect(listeners.map((each) => `${each.listener.id} by ${each.by.id}`)).toEqual(["wild by exact"]);
  });

  test("a route at a wildcard listener is unreachable by a name that another listener has", () => {
    const { unreachable } = at(
      listener("wild", "p", "*.example.com"),
      listener("exact", "p", "foo.example.com"),
      listener("deep", "p", "*.bar.example.com"),
      host("lost", "wild", "foo.example.com", [rule("lost")]),
      host("lost-too", "wild", "a.bar.example.com", [rule("lost-too")]),
      host("kept", "wild", "bar.example.com", [rule("kept")]),
      host("partly", "wild", "*.example.com", [rule("partly")]),
      host("own", "exact", "foo.example.com", [rule("own")]),
    );
    expect(unreachable.map((each) => `${each.host.id} by ${each.by.id}`).sort()).toEqual([
      "lost by exact",
      "lost-too by deep",
    ]);
  });

  test("beside HTTPS, a TLS listener takes nothing for certain", () => {
    const https = listener("wild", "p", "*.example.com", { protocol: "HTTPS" });
    const lost = host("h", "wild", "foo.example.com", [rule("r")]);
    const other = (protocol: "HTTPS" | "TLS") => listener("exact", "p", "foo.example.com", { protocol });
    expect(at(https, lost, other("TLS")).unreachable).toEqual([]);
    expect(at(https, lost, other("HTTPS")).unreachable.length).toBe(1);
  });

  test("a narrower host shadows nothing of a wider one, but is reported across namespaces", () => {
    const foreign = rule("foreign");
    const report = at(
      listener("l", "p", ""),
      host("wide", "l", "*.example.com", [rule("wide")]),
      host("narrow", "l", "foo.example.com", [
        { ...foreign, origin: { ...foreign.origin, namespace: "other" } },
      ]),
      host("own", "l", "bar.example.com", [rule("own")]),
    );
    expect(report.shadowed).toEqual([]);
    expect(report.hosts.map((each) => `${each.host.id} by ${each.by.id}`)).toEqual(["wide by narrow"]);
  });
});

test("40,000 rules, all on one host or spread over 2,500, are examined", () => {
  const many = (count: number, of: string) =>
    Array.from({ length: count }, (_, at) =>
      rule(`${of}${at}`, { path: prefix(`/${of}/${at}/${"d/".repeat(at % 30)}`) }),
    );
  const one = at40k([
    host("h", "l", "", [...many(39_999, "x"), rule("again", { path: prefix("/x/7/e") }), rule("all")]),
  ]);
  expect(one.shadowed.map((each) => each.rule.origin.name)).toEqual([]);
  const spread = Array.from({ length: 2_500 }, (_, at) =>
    host(`h${at}`, "l", `h${at}.example.com`, [...many(15, "x"), rule("twice", { path: prefix("/x/0/d") })]),
  );
  expect(at40k(spread).shadowed.length).toBe(2_500);

  function at40k(hosts: readonly PlanItem[]): OverlapReport {
    return overlapsAt(tableOf(port("p"), listener("l", "p", ""), ...hosts), "p");
  }
});
