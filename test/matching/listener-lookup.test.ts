import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import type { ListenerAdmission } from "../../src/matching/routing-table.ts";
import { compareSpecificity, matchesName } from "../../src/plan/hostname.ts";
import { listener, port, tableOf } from "./plan-items.ts";

function admitted(admission: ListenerAdmission): string | number {
  return "listener" in admission ? admission.listener.id : admission.status;
}

describe("Gateway.spec.listeners, Listeners that are distinct only by Hostname", () => {
  const table = tableOf(
    port("80"),
    listener("exact", "80", "foo.example.com"),
    listener("deep", "80", "*.bar.example.com"),
    listener("wild", "80", "*.example.com"),
    listener("fallback", "80", ""),
  );
  test.each([
    ["exact before wildcard", "foo.example.com", "exact"],
    ["wildcard before fallback", "baz.example.com", "wild"],
    ["more dots right of the wildcard first", "a.bar.example.com", "deep"],
    ["a wildcard takes any number of labels", "a.b.c.bar.example.com", "deep"],
    ["a wildcard takes names below an exact one", "x.foo.example.com", "wild"],
    ["a wildcard does not match its own suffix", "bar.example.com", "wild"],
    ["nor at the top", "example.com", "fallback"],
    ["nor without the dot", "notexample.com", "fallback"],
    ["nor with an empty label", ".example.com", "fallback"],
    ["an empty first label hides no other", ".x.example.com", "wild"],
    ["upper case", "FOO.Example.COM", "exact"],
    ["trailing dot", "foo.example.com.", "exact"],
    ["a name that spells a pattern is just a name", "*.bar.example.com", "deep"],
    ["the empty name", "", "fallback"],
    ["no name", undefined, "fallback"],
  ])("%s", (_, name, expected) => {
    expect(table.listenerFor("80", name)?.id).toBe(expected);
  });

  test("without a fallback, no name finds no listener", () => {
    const named = tableOf(port("80"), listener("wild", "80", "*.example.com"));
    expect(named.listenerFor("80", undefined)).toBeUndefined();
    expect(named.listenerFor("80", "")).toBeUndefined();
    expect(named.listenerFor("80", "example.org")).toBeUndefined();
  });
});

describe("Gateway.spec.listeners.hostname: isolation, 404 and 421", () => {
  const https = { protocol: "HTTPS" } as const;
  const table = tableOf(
    port("80"),
    listener("h-foo", "80", "foo.example.com"),
    listener("h-wild", "80", "*.example.com"),
    port("443", "tls"),
    listener("s-foo", "443", "foo.example.com", https),
    listener("s-wild", "443", "*.example.com", https),
    listener("s-org", "443", "*.example.org", https),
    listener("t-net", "443", "tls.example.com", { protocol: "TLS" }),
    port("8443", "tls"),
    listener("other-port", "8443", "*.example.net", https),
  );
  test.each([
    ["foo.example.com", "h-foo"],
    ["foo.example.com:80", "h-foo"],
    ["bar.example.com", "h-wild"],
    ["example.org", 404],
    ["[::1]:80", 404],
    ["", 404],
  ])("cleartext %j is admitted as %s", (authority, expected) => {
    expect(admitted(table.admitHttp("80", authority))).toBe(expected);
  });

  test.each([
    ["the listener of the SNI", "s-foo", "foo.example.com:443", "s-foo"],
    ["SNI and Host need not be equal", "s-wild", "b.example.com", "s-wild"],
    ["another listener has an exact match", "s-wild", "foo.example.com", 421],
    ["the current one does not match, another does", "s-foo", "bar.example.com", 421],
    ["another domain on the port", "s-wild", "a.example.org", 421],
    ["no listener matches", "s-wild", "example.net", 404],
    ["a listener of another port does not count", "s-wild", "a.example.net", 404],
    ["a TLS listener is another protocol", "s-wild", "tls.example.com", "s-wild"],
    ["the listener went away after the handshake", "gone", "foo.example.com", 421],
  ])("HTTPS: %s", (_, connection, authority, expected) => {
    expect(admitted(table.admitHttps(connection, authority))).toBe(expected);
  });
});

const label = fc.constantFrom("a", "b", "c", "com");
const name = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join("."));
const pattern = fc.oneof(
  name,
  name.map((suffix) => `*.${suffix}`),
  fc.constant(""),
);

test("property: the listener found is the most specific of those that match", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(pattern, { maxLength: 12 }),
      fc.option(name, { nil: undefined }),
      (patterns, asked) => {
        const table = tableOf(port("p"), ...patterns.map((each, at) => listener(`l${at}`, "p", each)));
        const naive = patterns
          .filter((each) => (asked === undefined ? each === "" : matchesName(each, asked)))
          .sort(compareSpecificity)[0];
        expect(table.listenerFor("p", asked)?.hostname).toBe(naive);
      },
    ),
    { numRuns: 1000 },
  );
});

describe("hostile names", () => {
  const table = tableOf(port("p"), listener("wild", "p", "*.example.com"), listener("any", "p", ""));

  test.each([
    ["many labels", `${"a.".repeat(10_000)}example.com`, "wild"],
    ["many labels of nothing", "a.".repeat(10_000), "any"],
    ["dots only", ".".repeat(10_000), "any"],
    ["one long label", `${"x".repeat(1_000_000)}.example.com`, "wild"],
    ["a long label at the end", `example.${"x".repeat(1_000_000)}`, "any"],
  ])("%s: lookups follow the longest pattern, not the name", (_, name, expected) => {
    const lookups = vi.spyOn(Map.prototype, "get");
    const found = table.listenerFor("p", name);
    const count = lookups.mock.calls.length;
    lookups.mockRestore();
    expect(found?.id).toBe(expected);
    // The port, the exact name, and at most the two suffixes that `example.com` has labels for.
    expect(count).toBeLessThanOrEqual(4);
  });

  test.each(["__proto__", "constructor", "\u0000", "İ.example.org", "%2e", "[", "[::1", ":", "::", "@", " "])(
    "%j is served by the listener for every name",
    (authority) => {
      expect(table.admitHttp("p", authority)).toMatchObject({ listener: { id: "any" } });
    },
  );
});
