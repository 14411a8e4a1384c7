/** Documents for tunnels without our proxy, read as cloudflared reads them. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { IngressRule } from "../../../src/dataplanes/tunnel/cloudflare/tunnel-configuration.ts";
import { ingressDocument, MAX_RULES } from "../../../src/dataplanes/tunnel/ingress-document.ts";
import type { BackendItem } from "../../../src/plan/backend.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import type { Action, Rule } from "../../../src/plan/rule.ts";
import {
  backend,
  forwardTo,
  gateway as GATEWAY,
  host,
  listener,
  port,
  rule,
} from "../support/plan-builder.ts";
import { configurationProblem, matchingRule } from "./support/ingress-rules.ts";
import * as random from "./support/random-plans.ts";
import { expectedAnswer } from "./support/reference-reading.ts";

const authorityOf = ({ service }: BackendItem): string =>
  `${service.name}.${service.namespace}.svc:${service.port}`;

function document(...items: readonly PlanItem[]): ReturnType<typeof ingressDocument> {
  return ingressDocument(items, GATEWAY, { authorityOf });
}

describe("property", () => {
  test("cloudflared takes every document, and serves a client as our proxy would", () => {
    const request = fc.tuple(fc.constantFrom(...random.NAMES), fc.constantFrom(...random.ASKED));
    fc.assert(
      fc.property(random.plans, request, (items, [name, path]) => {
        const { ingress } = ingressDocument(items, random.GATEWAY, { authorityOf });
        expect(configurationProblem({ ingress })).toBeUndefined();
        expect(statusOf(matchingRule(ingress, name, path))).toBe(expectedAnswer(items, name, path, "https"));
      }),
      { numRuns: 3_000 },
    );
  });
});

function statusOf(found: IngressRule | undefined): number {
  return Number(found?.service.replace("http_status:", ""));
}

const PORT = port(80);
const APP = backend("app", [1]);

/** The document of one listener for a.example.com with these rules. */
function of(...rules: readonly Rule[]): ReturnType<typeof ingressDocument> {
  const web = listener("web", PORT, "a.example.com");
  return document(PORT, web, host(web, "a.example.com", rules), APP);
}

test("a rule with a policy answers 500, and no wider rule serves what it guards", () => {
  const guarded = { ...rule({ path: "/stock", action: forwardTo("app") }), guards: ["guard:a"] };
  const { refusals, ingress } = of(guarded, rule({ action: forwardTo("app") }));
  expect(refusals).toEqual([
    { subject: guarded.origin, message: expect.stringContaining("cannot apply it") },
  ]);
  expect(matchingRule(ingress, "a.example.com", "/stock")?.service).toBe("http_status:500");
  expect(matchingRule(ingress, "a.example.com", "/other")?.service).toContain("app");
});

describe("paths", () => {
  const paths: readonly (readonly [
    string,
    NonNullable<Parameters<typeof rule>[0]["path"]>,
    string | undefined,
    string[],
    string[],
  ])[] = [
    ["a prefix", "/foo", "^/foo(?:/|$)", ["/foo", "/foo/", "/foo/bar"], ["/fo", "/foobar", "/zzz/foo"]],
    ["a prefix with a slash", "/foo/", "^/foo(?:/|$)", ["/foo", "/foo/x"], ["/foox"]],
    ["the whole", "/", undefined, ["/", "/anything"], []],
    [
      "an exact path",
      { type: "exact", value: "/a.b+c" },
      "^/a\\.b\\+c$",
      ["/a.b+c"],
      ["/axb+c", "/a.b+c/", "/x/a.b+c"],
    ],
    [
      "a regular expression",
      { type: "regex", value: "/v[12]|/w" },
      "^(?:/v[12]|/w)$",
      ["/v1", "/w"],
      ["/v1x", "/x/w"],
    ],
  ];
  test.each(paths)("%s", (_name, path, pattern, hits, misses) => {
    const { ingress, refusals } = of(rule({ path, action: forwardTo("app") }));
    expect(refusals).toEqual([]);
    expect(ingress[0]?.path).toBe(pattern);
    for (const hit of hits)
      expect(matchingRule(ingress, "a.example.com", hit)?.service).toBe("http://app.apps.svc:80");
    for (const miss of misses)
      expect(matchingRule(ingress, "a.example.com", miss)?.service).toBe("http_status:404");
  });

  test("a path with an escaped character is refused", () => {
    expect(of(rule({ path: "/a%2Fb", action: forwardTo("app") })).refusals[0]?.message).toContain(
      "escaped character",
    );
  });
});

describe("refused with a reason", () => {
  const match = { headers: [], query: [] };
  const value = { type: "exact", name: "n", value: "v" } as const;
  const filters = {
    RequestHeaderModifier: { requestHeaders: [{ op: "set", name: "a", value: "b" }] },
    ResponseHeaderModifier: { responseHeaders: [{ op: "remove", name: "a" }] },
    URLRewrite: { rewrite: { hostname: "x" } },
    RequestMirror: { mirrors: [{ backend: "app", numerator: 1, denominator: 1 }] },
  } as const;
  const redirect: Action = { type: "redirect", statusCode: 302, filters: {} };
  const cases: readonly (readonly [string, Rule])[] = [
    ["method", { ...rule({ action: forwardTo("app") }), match: { ...match, method: "GET" } }],
    ["headers", { ...rule({ action: forwardTo("app") }), match: { ...match, headers: [value] } }],
    ["query", { ...rule({ action: forwardTo("app") }), match: { ...match, query: [value] } }],
    ["redirect", rule({ action: redirect })],
    [
      "weighted",
      rule({
        action: forwardTo([
          { backend: "app", weight: 1, filters: {} },
          { backend: "app", weight: 1, filters: {} },
        ]),
      }),
    ],
    ["timeout", rule({ action: forwardTo("app", { timeouts: { requestMs: 1 } }) })],
    ["retries", rule({ action: forwardTo("app", { retry: { attempts: 1, codes: [] } }) })],
    [
      "compression",
      rule({
        action: forwardTo("app", {
          compression: { algorithms: ["gzip"], minBytes: 1, contentTypes: ["text/html"] },
        }),
      }),
    ],
    ["gRPC", rule({ action: forwardTo("app"), kind: "GRPCRoute" })],
    ...Object.entries(filters).map(
      ([name, filter]) => [name, rule({ action: forwardTo("app", { filters: filter }) })] as const,
    ),
    [
      "RequestHeaderModifier",
      rule({ action: forwardTo([{ backend: "app", weight: 1, filters: filters.RequestHeaderModifier }]) }),
    ],
  ];
  test.each(cases)("%s", (word, refused) => {
    const { refusals, ingress } = of(refused, rule({ path: "/next", action: forwardTo("app") }));
    expect(refusals).toEqual([{ subject: refused.origin, message: expect.stringContaining(word) }]);
    expect(ingress.map(({ path }) => path)).toEqual(["^/next(?:/|$)", undefined, undefined]);
  });

  test("streams, client certificates and names that another has are refused", () => {
    const tcp = port(5432, "tcp");
    const guarded = port(443, "tls", { clientValidation: { authorities: [], mode: "AllowValidOnly" } });
    const stream = listener("stream", tcp, "", { protocol: "TCP" });
    const mutual = listener("mutual", guarded, "m.example.com");
    const first = listener("first", PORT, "a.example.com", { rank: "1" });
    const later = listener("later", port(8080), "a.example.com", { rank: "2" });
    const { refusals } = document(PORT, tcp, guarded, stream, mutual, first, later);
    expect(refusals.map(({ subject }) => subject)).toEqual([
      { listener: "stream" },
      { listener: "mutual" },
      { listener: "later" },
    ]);
  });

  test("a document of too many rules is refused", () => {
    const listeners = Array.from({ length: MAX_RULES }, (_, index) =>
      listener(`l${index}`, PORT, `h${index}.example.com`),
    );
    expect(document(PORT, ...listeners).refusals).toEqual([
      { subject: "document", message: expect.stringContaining("1001 rules") },
    ]);
    expect(document(PORT, ...listeners.slice(1)).refusals).toEqual([]);
  });

  test("each rule is refused once, however many hostnames it stands under", () => {
    const web = listener("web", PORT, "*.example.com");
    const bad = { ...rule({ action: redirect }) };
    const hosts = ["a", "b", "c"].map((name) => host(web, `${name}.example.com`, [bad]));
    expect(document(PORT, web, ...hosts).refusals).toHaveLength(1);
  });
});

describe("services", () => {
  const tls = { hostname: "app.internal", subjectAltNames: [], authorities: "system" } as const;
  function serviceFor(item: BackendItem, kind: "HTTPRoute" | "GRPCRoute" = "HTTPRoute"): unknown {
    const web = listener("web", PORT, "a.example.com");
    const { ingress, refusals } = document(
      PORT,
      web,
      host(web, "a.example.com", [rule({ action: forwardTo(item.id), kind })]),
      item,
    );
    return refusals[0]?.message ?? ingress[0];
  }

  test("TLS to a backend uses the system's authorities", () => {
    const originRequest = { originServerName: "app.internal" };
    expect(serviceFor(backend("app", [1], { tls }))).toMatchObject({
      service: "https://app.apps.svc:80",
      originRequest,
    });
  });

  test("gRPC over TLS speaks HTTP/2", () => {
    expect(serviceFor(backend("app", [1], { tls }), "GRPCRoute")).toMatchObject({
      originRequest: { http2Origin: true },
    });
  });

  test.each([
    ["h2c", backend("app", [1], { protocol: "h2c" }), "HTTP/2 or gRPC without TLS"],
    [
      "authorities of a policy",
      backend("app", [1], { tls: { ...tls, authorities: ["pem"] } }),
      "certificate authority",
    ],
    [
      "subjectAltNames",
      backend("app", [1], { tls: { ...tls, subjectAltNames: [{ type: "Hostname", value: "x" }] } }),
      "subjectAltNames",
    ],
  ])("%s is refused", (_name, item, word) => {
    expect(serviceFor(item)).toContain(word);
  });

  test("what cannot be served is 500, as with our proxy", () => {
    const services = [
      rule({ path: "/a", action: forwardTo([{ weight: 1, filters: {} }]) }),
      rule({ path: "/b", action: forwardTo([{ backend: "app", weight: 0, filters: {} }]) }),
      rule({ path: "/c", action: { type: "respond", status: 500, reason: "r" } }),
    ];
    expect(
      of(...services)
        .ingress.slice(0, 3)
        .map(({ service }) => service),
    ).toEqual(Array(3).fill("http_status:500"));
  });
});

test("the most specific hostname comes first, wildcards after exact names, everything last", () => {
  const listeners = ["", "*.com", "app.x.com", "*.x.com", "*.b.x.com", "a.x.com"].map((name, index) =>
    listener(`l${index}`, PORT, name),
  );
  expect(document(PORT, ...listeners).ingress.map(({ hostname }) => hostname)).toEqual([
    "a.x.com",
    "app.x.com",
    "*.b.x.com",
    "*.x.com",
    "*.com",
    undefined,
  ]);
});

test("an HTTP listener beside its owner's HTTPS one: shared routes pass, redirects to https are the zone's business", () => {
  const secure = port(443, "tls");
  const owner = { kind: "ListenerSet", namespace: "team", name: "own" } as const;
  const http = listener("http", PORT, "a.example.com", { owner });
  const https = listener("https", secure, "a.example.com", { owner });
  const shared = rule({ action: forwardTo("app") });
  const redirect = rule({ action: { type: "redirect", scheme: "https", statusCode: 301, filters: {} } });
  const named = { ...redirect, origin: { ...redirect.origin, name: "to-https" } };
  const { ingress, refusals } = document(
    PORT,
    secure,
    http,
    https,
    APP,
    host(http, "a.example.com", [named, shared]),
    host(https, "a.example.com", [shared]),
  );
  expect(ingress).toEqual([
    { hostname: "a.example.com", service: "http://app.apps.svc:80" },
    { service: "http_status:404" },
  ]);
  expect(refusals).toEqual([{ subject: named.origin, message: expect.stringContaining("Always Use HTTPS") }]);
});

test("a rule that a policy guards answers 500, and no wider rule takes its requests", () => {
  const guarded = {
    ...rule({ path: { type: "prefix", value: "/admin" }, action: forwardTo(APP.id) }),
    guards: ["guard:one"],
  };
  const { ingress, refusals } = of(guarded, rule({ action: forwardTo(APP.id) }));
  expect(matchingRule(ingress, "a.example.com", "/admin")).toMatchObject({ service: "http_status:500" });
  expect(matchingRule(ingress, "a.example.com", "/else")?.service).toContain("app");
  expect(refusals).toEqual([
    { subject: guarded.origin, message: expect.stringContaining("a TrafficPolicy") },
  ]);
});
