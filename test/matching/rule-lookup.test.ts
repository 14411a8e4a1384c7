import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RequestFacts, type RequestView } from "../../src/matching/request.ts";
import { matchesRequest } from "../../src/matching/request-match.ts";
import { RoutingTable } from "../../src/matching/routing-table.ts";
import { matchesName } from "../../src/plan/hostname.ts";
import type { PlanItem } from "../../src/plan/plan.ts";
import type { RequestMatch, Rule } from "../../src/plan/rule.ts";
import { exact, host, listener, port, prefix, request, rule, tableOf } from "./plan-items.ts";
import { randomMatch, randomRequest } from "./random-requests.ts";

function holds(match: Partial<RequestMatch>, view: RequestView): boolean {
  return matchesRequest(rule("r", match).match, new RequestFacts(view));
}

describe("HTTPPathMatch", () => {
  test.each([
    [prefix("/abc"), "/abc", true],
    [prefix("/abc"), "/abc/", true],
    [prefix("/abc"), "/abc/def", true],
    [prefix("/abc"), "/abcd", false],
    [prefix("/abc"), "/ABC", false],
    [prefix("/abc"), "/ab", false],
    [prefix("/abc"), "/", false],
    [prefix("/abc/"), "/abc", true],
    [prefix("/abc/"), "/abc/def", true],
    [prefix("/abc/"), "/abcd", false],
    [prefix("/"), "/", true],
    [prefix("/"), "/anything", true],
    [prefix("/"), "*", false],
    [exact("/abc"), "/abc", true],
    [exact("/abc"), "/abc/", false],
    [exact("/abc"), "/abc/def", false],
    [{ type: "regex", value: "/a.c" } as const, "/abc", true],
    [{ type: "regex", value: "/a.c" } as const, "/abcd", false],
    [{ type: "regex", value: "/a|/ab" } as const, "/ab", true],
    [{ type: "regex", value: "a.c" } as const, "/abc", false],
    [{ type: "regex", value: "(" } as const, "(", false],
    [undefined, "/abc", true],
    [undefined, "*", true],
  ])("%j matches the path %s: %s", (path, asked, expected) => {
    expect(holds(path === undefined ? {} : { path }, request(asked))).toBe(expected);
  });
});

describe("method, headers and query", () => {
  const value = (name: string, text: string) => ({ type: "exact", name, value: text }) as const;
  const regex = (name: string, text: string) => ({ type: "regex", name, value: text }) as const;
  test.each([
    ["method", { method: "POST" }, request("/", { method: "POST" }), true],
    ["other method", { method: "POST" }, request("/"), false],
    ["header", { headers: [value("x-a", "1")] }, request("/", { headers: { "x-a": "1" } }), true],
    [
      "header value with case",
      { headers: [value("x-a", "v")] },
      request("/", { headers: { "x-a": "V" } }),
      false,
    ],
    ["header missing", { headers: [value("x-a", "")] }, request("/"), false],
    [
      "all headers",
      { headers: [value("a", "1"), value("b", "2")] },
      request("/", { headers: { a: "1" } }),
      false,
    ],
    ["whole header", { headers: [regex("a", "1+")] }, request("/", { headers: { a: "112" } }), false],
    ["header regex", { headers: [regex("a", "1+")] }, request("/", { headers: { a: "111" } }), true],
    ["header named __proto__", { headers: [value("__proto__", "x")] }, request("/"), false],
    ["query", { query: [value("a", "1")] }, request("/", { query: "b=2&a=1" }), true],
    ["first value counts", { query: [value("a", "1")] }, request("/", { query: "a=2&a=1" }), false],
    ["percent-decoded", { query: [value("a b", "ü&")] }, request("/", { query: "a%20b=%C3%BC%26" }), true],
    ["plus is a space", { query: [value("a b", "c d")] }, request("/", { query: "a+b=c+d" }), true],
    ["malformed escapes stay", { query: [value("a", "%zz%")] }, request("/", { query: "a=%zz%" }), true],
    ["a ? belongs to the name", { query: [value("a", "1")] }, request("/", { query: "?a=1" }), false],
    ["name without value", { query: [value("a", "")] }, request("/", { query: "a" }), true],
    ["missing parameter", { query: [value("a", "")] }, request("/", { query: "aa=" }), false],
    ["names with case", { query: [value("A", "1")] }, request("/", { query: "a=1" }), false],
    ["__proto__", { query: [value("__proto__", "")] }, request("/"), false],
  ] satisfies [string, Partial<RequestMatch>, RequestView, boolean][])("%s", (_, match, view, expected) => {
    expect(holds(match, view)).toBe(expected);
  });
});

describe("hosts of one listener", () => {
  const table = tableOf(
    port("p"),
    listener("l", "p", "*.example.com"),
    host("h1", "l", "a.example.com", [rule("a-foo", { path: prefix("/foo") })]),
    host("h2", "l", "*.example.com", [rule("wild-bar", { path: prefix("/bar") }), rule("wild-any")]),
    host("h3", "l", "*.b.example.com", [rule("b", { method: "PUT" })]),
  );
  test.each([
    ["a.example.com", "/foo", "a-foo"],
    ["A.example.com.:8080", "/foo", "a-foo"],
    ["a.example.com", "/bar", "wild-bar"],
    ["a.example.com", "/", "wild-any"],
    ["x.b.example.com", "/", "wild-any"],
    ["b.example.com", "/bar", "wild-bar"],
    ["example.com", "/", undefined],
  ])("%s%s is served by %s", (authority, path, expected) => {
    expect(table.matchRule("l", authority, request(path))?.origin.name).toBe(expected);
  });
});

describe("streams", () => {
  const table = tableOf(
    port("p", "tls"),
    listener("tls", "p", "", { protocol: "TLS" }),
    host("h1", "tls", "a.example.com", [rule("exact")]),
    host("h2", "tls", "*.example.com", [rule("wild")]),
    host("h3", "tls", "empty.example.com", []),
    listener("tcp", "q", "", { protocol: "TCP" }),
    host("h4", "tcp", "", [rule("tcp")]),
  );
  test.each([
    ["tls", "a.example.com", "exact"],
    ["tls", "A.Example.com.", "exact"],
    ["tls", "b.example.com", "wild"],
    ["tls", "empty.example.com", "wild"],
    ["tls", "example.org", undefined],
    ["tls", undefined, undefined],
    ["tcp", undefined, "tcp"],
    ["tcp", "a.example.com", "tcp"],
    ["none", undefined, undefined],
  ])("at %s, the server name %s is served by %s", (id, name, expected) => {
    expect(table.streamRule(id, name)?.origin.name).toBe(expected);
  });
});

test("property: the indexed lookup of a large host finds what a scan of its rules finds", () => {
  const rules = fc.array(randomMatch, { minLength: 17, maxLength: 60 });
  fc.assert(
    fc.property(rules, fc.array(randomRequest, { minLength: 1, maxLength: 10 }), (matches, requests) => {
      const all = matches.map((match, at) => rule(`r${at}`, match));
      const table = tableOf(port("p"), listener("l", "p", ""), host("h", "l", "", all));
      for (const view of requests) {
        const naive = all.find((each) => matchesRequest(each.match, new RequestFacts(view)));
        expect(table.matchRule("l", "any", view)?.origin.name).toBe(naive?.origin.name);
      }
    }),
    { numRuns: 500 },
  );
});

const names = ["", "a.com", "b.com", "*.com", "*.a.com", "x.a.com", "*.x.a.com"];

/** What a table holds, asked in the plainest way. */
function naiveRule(items: readonly PlanItem[], name: string, view: RequestView): Rule | undefined {
  const hosts = items
    .filter((item) => item.type === "host")
    .filter((item) => matchesName(item.hostname, name));
  hosts.sort(
    (a, b) =>
      Number(b.hostname === name) - Number(a.hostname === name) || b.hostname.length - a.hostname.length,
  );
  return hosts
    .flatMap((item) => item.rules)
    .find((each) => matchesRequest(each.match, new RequestFacts(view)));
}

test("property: after any deltas, in any order within each, the table matches its items", () => {
  const edit = fc.record({
    slot: fc.nat(5),
    hostname: fc.option(fc.nat(names.length - 1), { nil: undefined, freq: 3 }),
    match: randomMatch,
  });
  const history = fc.array(fc.array(edit, { maxLength: 6 }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(history, randomRequest, fc.boolean(), (deltas, view, reverse) => {
      const table = new RoutingTable();
      const base: PlanItem[] = [port("p"), listener("l", "p", "")];
      const expected = new Map<string, PlanItem>();
      for (const [step, delta] of deltas.entries()) {
        const upserts = new Map<string, PlanItem>();
        const removes = new Set<string>();
        for (const { slot, hostname, match } of delta) {
          const id = `h${slot}`;
          removes.delete(id);
          upserts.delete(id);
          // Patterns are distinct within a plan; a slot may take over a pattern that another gives
          // up in the same delta.
          const taken = new Set(
            [...expected].filter(([other]) => !removes.has(other)).map(([, item]) => nameOf(item)),
          );
          for (const item of upserts.values()) taken.add(nameOf(item));
          const wanted = hostname === undefined ? undefined : names[(slot + hostname) % names.length];
          if (wanted === undefined || taken.has(wanted)) removes.add(id);
          else upserts.set(id, host(id, "l", wanted, [rule(`${id}-${step}`, match)]));
        }
        for (const id of removes) expected.delete(id);
        for (const [id, item] of upserts) expected.set(id, item);
        const items = [...upserts.values(), ...(step === deltas.length - 1 ? base : [])];
        table.apply({ upserts: reverse ? items.reverse() : items, removes: [...removes] });
      }
      for (const name of ["a.com", "b.com", "x.a.com", "y.x.a.com", "org"]) {
        const naive = naiveRule([...expected.values()], name, view);
        expect(table.matchRule("l", name, view)?.origin.name).toBe(naive?.origin.name);
      }
      expect([...table.items()].length).toBe(expected.size + base.length);
    }),
    { numRuns: 1000 },
  );
});

function nameOf(item: PlanItem): string | undefined {
  return item.type === "host" ? item.hostname : undefined;
}

describe("deltas", () => {
  test("two listeners swap their hostnames at once", () => {
    const table = tableOf(port("p"), listener("x", "p", "x.com"), listener("y", "p", "y.com"));
    table.apply({ upserts: [listener("x", "p", "y.com"), listener("y", "p", "x.com")], removes: [] });
    expect(table.listenerFor("p", "x.com")?.id).toBe("y");
    expect(table.listenerFor("p", "y.com")?.id).toBe("x");
  });

  test("the next owner takes over in the step that removes the first", () => {
    const table = tableOf(port("p"), listener("old", "p", "x.com"));
    table.apply({ upserts: [listener("new", "p", "x.com")], removes: ["old"] });
    expect(table.listenerFor("p", "x.com")?.id).toBe("new");
    expect([...table.listenersOf("p")].map((each) => each.id)).toEqual(["new"]);
  });

  test("what refers to missing items is not reachable, and becomes so when they arrive", () => {
    const table = tableOf(listener("l", "p", ""), host("h", "l", "", [rule("r")]));
    expect(table.listenerFor("p", "x")).toBeUndefined();
    expect(table.admitHttp("p", "x")).toEqual({ status: 404 });
    table.apply({ upserts: [port("p")], removes: [] });
    expect(table.listenerFor("p", "x")?.id).toBe("l");
    table.apply({ upserts: [], removes: ["l"] });
    expect(table.matchRule("l", "x", request("/"))).toBeUndefined();
    table.apply({ upserts: [listener("l", "p", "")], removes: [] });
    expect(table.matchRule("l", "x", request("/"))?.origin.name).toBe("r");
  });

  test("a changed host is matched by its new rules, also when they are many", () => {
    const many = (name: string) =>
      Array.from({ length: 40 }, (_, at) => rule(`${name}${at}`, { path: exact(`/${at}`) }));
    const table = tableOf(port("p"), listener("l", "p", ""), host("h", "l", "", many("old")));
    expect(table.matchRule("l", "x", request("/7"))?.origin.name).toBe("old7");
    table.apply({ upserts: [host("h", "l", "", many("new"))], removes: [] });
    expect(table.matchRule("l", "x", request("/7"))?.origin.name).toBe("new7");
  });

  test("an id that changes its type leaves nothing behind", () => {
    const table = tableOf(port("p"), listener("l", "p", ""), host("x", "l", "", [rule("r")]));
    table.apply({ upserts: [listener("x", "p", "x.com")], removes: [] });
    expect(table.matchRule("l", "x.com", request("/"))).toBeUndefined();
    expect(table.get("host", "x")).toBeUndefined();
    expect(table.get("listener", "x")?.hostname).toBe("x.com");
  });
});

test("more expressions than are kept compiled still match", () => {
  const expressions = Array.from({ length: 9_000 }, (_, at) => `/${at}x?`);
  for (const round of ["", "x"]) {
    const wrong = expressions.filter(
      (value, at) => !holds({ path: { type: "regex", value } }, request(`/${at}${round}`)),
    );
    expect(wrong).toEqual([]);
  }
  expect(holds({ path: { type: "regex", value: "/0x?" } }, request("/1"))).toBe(false);
});

test("hostile paths, queries and headers are matched without an error", () => {
  const regexes = Array.from({ length: 20 }, (_, at) =>
    rule(`r${at}`, { path: { type: "regex", value: `(/a+)+${at}` } }),
  );
  const deep = Array.from({ length: 40 }, (_, at) =>
    rule(`d${at}`, { path: prefix("/".padEnd(at + 1, "/")) }),
  );
  const asking = rule("q", { query: [{ type: "exact", name: "__proto__", value: "1" }] });
  const table = tableOf(port("p"), listener("l", "p", ""), host("h", "l", "", [...regexes, asking, ...deep]));
  const served = (view: RequestView) => table.matchRule("l", "x", view)?.origin.name;
  expect(served(request(`/${"a".repeat(100_000)}`))).toBe("d0");
  expect(served(request("/a".repeat(50_000)))).toBe("d0");
  expect(served(request("/".repeat(100_000)))).toBe("d0");
  expect(served(request(`/${"%2e%2F%00%zz".repeat(10_000)}`))).toBe("d0");
  expect(served(request("/", { query: "a&".repeat(100_000) }))).toBe("d0");
  expect(served(request("/", { query: `${"%".repeat(100_000)}&__proto__=1` }))).toBe("q");
  expect(served(request("*"))).toBeUndefined();
});
