import { describe, expect, test } from "vitest";
import type { HttpRoute, HttpRouteRule, RouteFilter, SessionPersistence } from "../../../src/api/routes.ts";
import type { BackendTarget } from "../../../src/engine/foundation/item-ids.ts";
import { compileRules } from "../../../src/engine/rules/compile.ts";
import { Unservable } from "../../../src/engine/rules/compiled.ts";
import { compileFilters } from "../../../src/engine/rules/filters.ts";
import { checkedPersistence } from "../../../src/engine/rules/wire-text.ts";

/**
 * What the schema of the experimental channel refuses and that of the standard channel does not.
 */
describe("text that goes on the wire as it is written", () => {
  function compiled(filter: RouteFilter): unknown {
    const context = {
      resolve: () => undefined,
      features: new Set(["HTTPRouteResponseHeaderModification"]),
      unresolved: () => {},
    };
    const result = compileFilters([filter], context);
    return result instanceof Unservable ? result.failure : result.filters;
  }

  test.each(["a\r\nx-injected: yes", "a\nb", "a\u0000b", "\u007f", "\u560d\u560ax-injected: yes", "grüße"])(
    "a header with %j is refused",
    (value) => {
      const edit = { set: [], add: [{ name: "X-Odd", value }], remove: [] };
      const failure = {
        reason: "UnsupportedValue",
        message: expect.stringContaining(
          "the value of header X-Odd has a character that may not stand there",
        ),
      };
      expect(compiled({ type: "RequestHeaderModifier", requestHeaderModifier: edit })).toEqual(failure);
      expect(compiled({ type: "ResponseHeaderModifier", responseHeaderModifier: edit })).toEqual(failure);
    },
  );

  test.each(["a\tb", "two words", "100%", "%REQ(cookie)%"])("a header with %j is accepted", (value) => {
    const edit = { set: [{ name: "X-Odd", value }], add: [], remove: [] };
    expect(compiled({ type: "RequestHeaderModifier", requestHeaderModifier: edit })).toEqual({
      requestHeaders: [{ op: "set", name: "x-odd", value }],
    });
  });

  test.each([
    [{ cookie: { name: "a; domain=example.com" } }, "the name of the cookie"],
    [{ cookie: { name: "a", path: "/; domain=example.com" } }, "the path of the cookie"],
    [{ cookie: { name: "a", path: "/\r\n" } }, "the path of the cookie"],
    [{ header: { name: "a: b" } }, "the name of the session's header"],
  ])("a session by %j is refused", (session, what) => {
    expect(checkedPersistence(session as SessionPersistence)?.failure.message).toContain(what);
  });

  test("a cookie with punctuation in its path is accepted", () => {
    const cookie = { name: "mergeway-session", path: "/a=b,c" };
    expect(checkedPersistence({ cookie } as SessionPersistence)).toBeUndefined();
  });
});

test("a time limit of zero turns the limit off, unlike an absent one", () => {
  const features = new Set(["HTTPRouteRequestTimeout", "HTTPRouteBackendTimeout"]);
  const compiled = (timeouts: HttpRouteRule["timeouts"]): unknown => {
    const route = {
      kind: "HTTPRoute",
      metadata: { name: "patient", namespace: "team" },
      spec: { rules: [{ timeouts, backendRefs: [{ group: "", kind: "Service", name: "web", port: 80 }] }] },
    } as unknown as HttpRoute;
    const resolve = (): { readonly target: BackendTarget } => ({ target: {} as BackendTarget });
    const [rule] = compileRules(route, { features, resolve, idOf: () => "web", gateway: "infra/gw" }).rules;
    return rule?.action.type === "forward" ? rule.action.timeouts : undefined;
  };
  expect(compiled(undefined)).toEqual({});
  expect(compiled({})).toEqual({});
  expect(compiled({ request: "0s" })).toEqual({ unbounded: true });
  expect(compiled({ request: "0h0m0s0ms", backendRequest: "90s" })).toEqual({
    backendRequestMs: 90_000,
    unbounded: true,
  });
  expect(compiled({ request: "90s", backendRequest: "0s" })).toEqual({ requestMs: 90_000, unbounded: true });
  expect(compiled({ request: "90s" })).toEqual({ requestMs: 90_000 });
});

test.each([
  [
    { attempts: 1_000_000, backoff: "0s" },
    { attempts: 10, codes: [], backoffMs: 10 },
  ],
  [
    { attempts: 11, backoff: "1ms" },
    { attempts: 10, codes: [], backoffMs: 10 },
  ],
  [
    { attempts: 10, backoff: "2s", codes: [503] },
    { attempts: 10, codes: [503], backoffMs: 2_000 },
  ],
  [{ attempts: 0 }, { attempts: 0, codes: [] }],
  [{}, { attempts: 1, codes: [] }],
])("retries of %j are bounded to %j, whatever the data plane", (retry, granted) => {
  const route = {
    kind: "HTTPRoute",
    metadata: { name: "eager", namespace: "team" },
    spec: { rules: [{ retry, backendRefs: [{ group: "", kind: "Service", name: "web", port: 80 }] }] },
  } as unknown as HttpRoute;
  const { rules } = compileRules(route, {
    features: new Set(["HTTPRouteRetryCodes"]),
    resolve: () => ({ target: {} as BackendTarget }),
    idOf: () => "web",
    gateway: "infra/gw",
  });
  expect(rules).toMatchObject([{ action: { retry: granted } }]);
});

describe("values that Envoy would refuse, and all rules of their hostname with them", () => {
  const compiled = (rule: object): readonly string[] =>
    compileRules(
      {
        kind: "HTTPRoute",
        metadata: { name: "r", namespace: "n" },
        spec: { rules: [rule] },
      } as unknown as HttpRoute,
      {
        features: new Set(["HTTPRouteRetryCodes", "HTTPRouteRequestMirror", "HTTPRouteCORS"]),
        resolve: () => ({ failure: { reason: "BackendNotFound", message: "" } }),
        idOf: () => "",
        gateway: "infra/gw",
      },
    ).dropped.map(({ failure }) => `${failure.reason}: ${failure.message}`);
  const path = (type: string, value: string): object => ({ matches: [{ path: { type, value } }] });

  test.each([
    ["", "is empty"],
    ["\\p{Emoji}", "has a class that not every data plane knows: \\p{Emoji}"],
    ["/[\\P{^Garay}]", "has a class that not every data plane knows: \\P{^Garay}"],
    ["\\x{10FFFF}", "names a character that cannot stand in a request: \\x{10FFFF}"],
    ["\\777", "names a character that cannot stand in a request: \\777"],
  ])("the regular expression %j is refused", (value, why) => {
    const message = `UnsupportedValue: the regular expression for path ${why}`;
    expect(compiled(path("RegularExpression", value))).toEqual([message]);
  });

  test.each(["\\p{L}", "\\pN", "[\\P{Greek}]", "\\x{ff}\\377", "\\Q\\p{Emoji}\\E", "\\\\p{1}"])(
    "the regular expression %j is accepted",
    (value) => expect(compiled(path("RegularExpression", value))).toEqual([]),
  );

  test.each([
    ["a path with a fragment", path("PathPrefix", "/a#b")],
    ["a path with a query", path("Exact", "/a?b")],
    ["a path with an empty element", path("PathPrefix", "/a//b")],
    ["a path that does not begin with a slash", path("Exact", "a")],
    ["a header without a name", { matches: [{ headers: [{ type: "Exact", name: "", value: "1" }] }] }],
    [
      "a header's name with a line break",
      { matches: [{ headers: [{ type: "Exact", name: "a\n", value: "1" }] }] },
    ],
    [
      "a query parameter without a value",
      { matches: [{ queryParams: [{ type: "Exact", name: "a", value: "" }] }] },
    ],
    ["a status that no backend answers", { retry: { attempts: 1, codes: [-1] } }],
    ["a negative number of attempts", { retry: { attempts: -1 } }],
    [
      "a port below all",
      { filters: [{ type: "RequestRedirect", requestRedirect: { statusCode: 302, port: -1 } }] },
    ],
    [
      "a hostname with a line break",
      { filters: [{ type: "RequestRedirect", requestRedirect: { statusCode: 302, hostname: "a\r\nb" } }] },
    ],
    [
      "a negative fraction",
      {
        filters: [
          {
            type: "RequestMirror",
            requestMirror: { backendRef: { name: "s" }, fraction: { numerator: 1, denominator: -1 } },
          },
        ],
      },
    ],
    [
      "an origin with a line break",
      { filters: [{ type: "CORS", cors: { allowOrigins: ["https://a\r\nb"] } }] },
    ],
  ])("%s is refused", (_what, rule) => {
    expect(compiled(rule)).toEqual([expect.stringMatching(/^UnsupportedValue: /)]);
  });
});

test("a time limit of years becomes the longest that a timer can be set to", () => {
  const features = new Set(["HTTPRouteRequestTimeout", "HTTPRouteBackendTimeout"]);
  const timeouts = { request: "99999h99999h", backendRequest: "99999h" };
  const route = {
    kind: "HTTPRoute",
    metadata: { name: "patient", namespace: "team" },
    spec: { rules: [{ timeouts, backendRefs: [{ group: "", kind: "Service", name: "web", port: 80 }] }] },
  } as unknown as HttpRoute;
  const { rules, dropped } = compileRules(route, {
    features,
    resolve: () => ({ target: {} as BackendTarget }),
    idOf: () => "web",
    gateway: "infra/gw",
  });
  expect(dropped).toEqual([]);
  expect(rules).toMatchObject([
    { action: { timeouts: { requestMs: 2 ** 31 - 1, backendRequestMs: 2 ** 31 - 1 } } },
  ]);
});
