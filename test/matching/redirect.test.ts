import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type RedirectedRequest, redirectLocation } from "../../src/matching/redirect.ts";
import { editPath } from "../../src/matching/rewrite.ts";
import type { RedirectAction } from "../../src/plan/rule.ts";
import { exact, prefix } from "./plan-items.ts";

describe("HTTPPathModifier: ReplacePrefixMatch", () => {
  test.each([
    ["/foo/bar", "/foo", "/xyz", "/xyz/bar"],
    ["/foo/bar", "/foo", "/xyz/", "/xyz/bar"],
    ["/foo/bar", "/foo/", "/xyz", "/xyz/bar"],
    ["/foo/bar", "/foo/", "/xyz/", "/xyz/bar"],
    ["/foo", "/foo", "/xyz", "/xyz"],
    ["/foo/", "/foo", "/xyz", "/xyz/"],
    ["/foo/bar", "/foo", "", "/bar"],
    ["/foo/", "/foo", "", "/"],
    ["/foo", "/foo", "", "/"],
    ["/foo/", "/foo", "/", "/"],
    ["/foo", "/foo", "/", "/"],
    ["/bar", "/", "/xyz", "/xyz/bar"],
    ["/", "/", "/xyz", "/xyz/"],
    ["/", "/", "", "/"],
    ["/strip-prefix/three", "/strip-prefix", "/", "/three"],
    ["/foo/bar", "/foo", "xyz", "/xyz/bar"],
    ["/foo/%2F%zz", "/foo", "/a b?c#d\r\n", "/a%20b%3Fc%23d%0D%0A/%2F%zz"],
  ])("%s with prefix %s and replacement %j is %s", (path, matched, value, expected) => {
    expect(editPath(path, { type: "prefix", value }, prefix(matched))).toBe(expected);
  });

  test("a rule without path match stands for the prefix /", () => {
    expect(editPath("/a/b", { type: "prefix", value: "/x" }, undefined)).toBe("/x/a/b");
  });

  test("a prefix is not replaced beside another kind of match", () => {
    expect(editPath("/a", { type: "prefix", value: "/x" }, exact("/a"))).toBe("/a");
  });
});

describe("HTTPPathModifier: ReplaceFullPath", () => {
  test.each([
    ["/one", "/one"],
    ["", "/"],
    ["one", "/one"],
    ["/one/", "/one/"],
    ["/ü\ud800", "/%C3%BC%EF%BF%BD"],
  ])("%j gives %s", (value, expected) => {
    expect(editPath("/full/path", { type: "full", value }, prefix("/full"))).toBe(expected);
  });
});

const base: RedirectedRequest = {
  scheme: "http",
  authority: "example.org",
  path: "/x",
  query: "",
  listenerPort: 80,
  matched: prefix("/"),
};

function location(action: Partial<RedirectAction>, request: Partial<RedirectedRequest> = {}): string {
  return redirectLocation(
    { type: "redirect", statusCode: 302, filters: {}, ...action },
    { ...base, ...request },
  );
}

describe("HTTPRequestRedirectFilter: port and scheme", () => {
  const http80 = { listenerPort: 80 };
  const http8080 = { listenerPort: 8080 };
  const https443 = { scheme: "https", listenerPort: 443 };
  test.each([
    ["http on 80, nothing said", http80, {}, "http://example.org/x"],
    ["http on 80, port 80", http80, { port: 80 }, "http://example.org/x"],
    ["http on 80, port 8080", http80, { port: 8080 }, "http://example.org:8080/x"],
    ["http on 80, https", http80, { scheme: "https" }, "https://example.org/x"],
    ["http on 80, https and 443", http80, { scheme: "https", port: 443 }, "https://example.org/x"],
    ["http on 80, https and 8443", http80, { scheme: "https", port: 8443 }, "https://example.org:8443/x"],
    ["http on 8080, nothing said", http8080, {}, "http://example.org:8080/x"],
    ["http on 8080, port 80", http8080, { port: 80 }, "http://example.org/x"],
    ["http on 8080, https", http8080, { scheme: "https" }, "https://example.org/x"],
    ["http on 8080, http", http8080, { scheme: "http" }, "http://example.org/x"],
    ["https on 443, nothing said", https443, {}, "https://example.org/x"],
    ["https on 443, port 8443", https443, { port: 8443 }, "https://example.org:8443/x"],
    ["https on 443, http", https443, { scheme: "http" }, "http://example.org/x"],
    ["https on 443, http and 8080", https443, { scheme: "http", port: 8080 }, "http://example.org:8080/x"],
    ["http on 443 is not the default", { listenerPort: 443 }, {}, "http://example.org:443/x"],
    ["a scheme of no known port", http8080, { scheme: "gopher" }, "gopher://example.org:8080/x"],
  ])("%s", (_, request, action, expected) => {
    expect(location(action, request)).toBe(expected);
  });
});

describe("HTTPRequestRedirectFilter: hostname, path and query", () => {
  test.each([
    ["hostname of the filter", {}, { hostname: "example.com" }, "http://example.com/x"],
    [
      "the request's port is not the redirect's",
      { authority: "Example.ORG.:1234" },
      {},
      "http://example.org/x",
    ],
    ["an IPv6 literal keeps its brackets", { authority: "[::1]:8080" }, {}, "http://[::1]/x"],
    ["the query stays", { query: "a=b?&c" }, { scheme: "https" }, "https://example.org/x?a=b?&c"],
    ["full path", { query: "q" }, { path: { type: "full", value: "/y" } }, "http://example.org/y?q"],
    [
      "prefix",
      { path: "/original-prefix/lemon", matched: prefix("/original-prefix") },
      { path: { type: "prefix", value: "/replacement-prefix" } },
      "http://example.org/replacement-prefix/lemon",
    ],
    ["OPTIONS *", { path: "*" }, {}, "http://example.org/"],
    [
      "no host at all: never another host",
      { authority: "", path: "//evil.example/x" },
      {},
      "/evil.example/x",
    ],
  ] satisfies [string, Partial<RedirectedRequest>, Partial<RedirectAction>, string][])(
    "%s",
    (_, request, action, expected) => {
      expect(location(action, request)).toBe(expected);
    },
  );
});

test("property: an edited path is one absolute path, whatever the owner wrote", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary" }),
      fc.constantFrom("full", "prefix"),
      fc.constantFrom("/", "/a", "/a/"),
      (value, type, matched) => {
        const edited = editPath("/a/b", { type, value } as const, prefix(matched));
        expect(edited).toMatch(/^\/[\x21-\x7e]*$/);
        expect(edited).not.toMatch(/[?#]/);
      },
    ),
  );
});
