import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { explainRequest } from "../../../src/matching/explain/explain.ts";
import type { ExplainedRequest, Explanation } from "../../../src/matching/explain/explanation.ts";
import { RequestFacts } from "../../../src/matching/request.ts";
import { matchesRequest } from "../../../src/matching/request-match.ts";
import { PrivateKey } from "../../../src/plan/certificate.ts";
import { compareSpecificity, matchesName } from "../../../src/plan/hostname.ts";
import type { ListenerTlsPlan, PlanItem } from "../../../src/plan/plan.ts";
import type { ForwardAction } from "../../../src/plan/rule.ts";
import { backend, exact, forwardTo, host, listener, port, prefix, rule, tableOf } from "../plan-items.ts";
import { randomMatch, randomRequest } from "../random-requests.ts";

const tls: ListenerTlsPlan = { mode: "Terminate", certificates: ["cert"] };
const https = { protocol: "HTTPS", tls } as const;
const passthrough = { protocol: "TLS", tls: { mode: "Passthrough", certificates: [] } } as const;
const forward = forwardTo("web");
const weighted = (backends: ForwardAction["backends"]): ForwardAction => ({ ...forward, backends });

const plan: readonly PlanItem[] = [
  port("80", "http", { port: 80 }),
  listener("foo", "80", "foo.example.com"),
  listener("wild", "80", "*.example.com"),
  host("80-foo", "foo", "foo.example.com", [
    rule("exact", { path: exact("/a") }, forward),
    rule("long", { path: prefix("/a/b") }, forward),
    rule("post", { path: prefix("/a"), method: "POST" }, forward),
    rule("header", { path: prefix("/a"), headers: [{ type: "exact", name: "x-a", value: "1" }] }, forward),
    rule("query", { path: prefix("/a"), query: [{ type: "regex", name: "q", value: "[0-9]+" }] }, forward),
    rule("short", { path: prefix("/a") }, forward),
    rule(
      "moved",
      { path: prefix("/old") },
      {
        type: "redirect",
        statusCode: 301,
        scheme: "https",
        path: { type: "prefix", value: "/new" },
        filters: {},
      },
    ),
    rule("broken", { path: prefix("/broken") }, { type: "respond", status: 500, reason: "unknown filter" }),
    rule("idle", { path: prefix("/idle") }, forwardTo("idle")),
    rule("refused", { path: prefix("/refused") }, forwardTo("refused")),
    rule("invalid", { path: prefix("/invalid") }, weighted([{ weight: 1, filters: {} }])),
    rule("zero", { path: prefix("/zero") }, weighted([{ backend: "web", weight: 0, filters: {} }])),
    rule(
      "split",
      { path: prefix("/split") },
      weighted([
        { backend: "web", weight: 3, filters: {} },
        { weight: 1, filters: {} },
        { backend: "idle", weight: 0, filters: {} },
      ]),
    ),
    rule(
      "down",
      { path: prefix("/down") },
      weighted([
        { weight: 1, filters: {} },
        { backend: "idle", weight: 1, filters: {} },
      ]),
    ),
  ]),
  host("80-wild", "wild", "*.example.com", [rule("wild", {}, forward)]),
  port("443", "tls", { port: 443 }),
  { type: "certificate", id: "cert", gateway: "infra/gw", chain: "", key: new PrivateKey(""), names: [] },
  listener("s-foo", "443", "foo.example.com", https),
  listener("s-wild", "443", "*.example.com", https),
  listener("s-bare", "443", "bare.example.com", {
    ...https,
    tls: { mode: "Terminate", certificates: ["lost"] },
  }),
  listener("pass", "443", "pass.example.com", passthrough),
  listener("pass-none", "443", "pass-none.example.com", passthrough),
  host("443-foo", "s-foo", "foo.example.com", [rule("s-foo", {}, forward)]),
  host("443-wild", "s-wild", "*.example.com", [rule("s-wild", {}, forward)]),
  host("443-pass", "pass", "pass.example.com", [rule("pass", {}, forward)]),
  port("8443", "tls", { port: 8443, clientValidation: { mode: "AllowValidOnly", authorities: ["pem"] } }),
  listener("m-foo", "8443", "", https),
  host("8443-foo", "m-foo", "", [rule("m", {}, forward)]),
  port("9443", "tls", { port: 9443, clientValidation: { mode: "AllowValidOnly", authorities: [] } }),
  listener("n-foo", "9443", "", https),
  port("7443", "tls", {
    port: 7443,
    clientValidation: { mode: "AllowInsecureFallback", authorities: ["pem"] },
  }),
  listener("i-foo", "7443", "", https),
  host("7443-foo", "i-foo", "", [rule("i", {}, forward)]),
  port("5432", "tcp", { port: 5432 }),
  listener("tcp", "5432", "", { protocol: "TCP" }),
  host("5432-any", "tcp", "", [rule("tcp", {}, forward)]),
  port("53", "udp", { port: 53 }),
  listener("udp", "53", "", { protocol: "UDP" }),
  host("53-any", "udp", "", [rule("udp", {}, forwardTo("idle"))]),
  backend("web"),
  backend("idle", { endpoints: [] }),
  backend("refused", { refused: "the policy's authorities cannot be resolved" }),
];
const table = tableOf(...plan);

function ask(url: string, more: Partial<ExplainedRequest> = {}): Explanation {
  const { protocol, host: authority, port: given, pathname, search } = new URL(url);
  const scheme = protocol.slice(0, -1) as ExplainedRequest["scheme"];
  return explainRequest(table, {
    port: given === "" ? (scheme === "https" ? 443 : 80) : Number(given),
    scheme,
    authority,
    method: "GET",
    path: pathname === "" ? "/" : pathname,
    query: search.slice(1),
    headers: [],
    ...more,
  });
}

function summary({ outcome, status, listener: chosen, route }: Explanation): string {
  return [outcome, status, chosen?.name, route?.name].filter((part) => part !== undefined).join(" ");
}

describe("outcome", () => {
  test.each([
    ["http://foo.example.com/a", {}, "forward foo exact"],
    ["http://foo.example.com/a/b/c", {}, "forward foo long"],
    ["http://foo.example.com/a/x", {}, "forward foo short"],
    ["http://foo.example.com/a/x", { method: "POST" }, "forward foo post"],
    ["http://foo.example.com/a/x", { headers: [["X-A", "1"]] }, "forward foo header"],
    [
      "http://foo.example.com/a/x",
      {
        headers: [
          ["X-A", "1"],
          ["x-a", "2"],
        ],
      },
      "forward foo short",
    ],
    ["http://foo.example.com/a/x?q=12", {}, "forward foo query"],
    ["http://foo.example.com/else", {}, "respond 404 foo"],
    ["http://bar.example.com/else", {}, "forward wild wild"],
    ["http://example.com/", {}, "respond 404"],
    ["http://foo.example.com/old/x?y", {}, "respond 301 foo moved"],
    ["http://foo.example.com/broken", {}, "respond 500 foo broken"],
    ["http://foo.example.com/idle", {}, "respond 503 foo idle"],
    ["http://foo.example.com/refused", {}, "respond 500 foo refused"],
    ["http://foo.example.com/invalid", {}, "respond 500 foo invalid"],
    ["http://foo.example.com/zero", {}, "respond 500 foo zero"],
    ["http://foo.example.com/split", {}, "forward foo split"],
    ["http://foo.example.com/down", {}, "respond 500 foo down"],
    ["http://foo.example.com:81/", {}, "refuse"],
    ["https://foo.example.com:80/", { port: 80 }, "refuse"],
    ["http://foo.example.com:443/", {}, "refuse"],
    ["https://foo.example.com/", {}, "forward s-foo s-foo"],
    ["https://foo.example.com/", { sni: "bar.example.com" }, "respond 421 s-wild"],
    ["https://example.org/", { sni: "bar.example.com" }, "respond 404 s-wild"],
    ["https://x.example.com/", { sni: "bar.example.com" }, "forward s-wild s-wild"],
    ["https://example.org/", {}, "refuse"],
    ["https://foo.example.com/", { sni: "" }, "refuse"],
    ["https://10.0.0.1/", {}, "refuse"],
    ["https://bare.example.com/", {}, "refuse s-bare"],
    ["https://pass.example.com/", {}, "forward pass pass"],
    ["tls://pass.example.com:443", {}, "forward pass pass"],
    ["tls://pass-none.example.com:443", {}, "refuse pass-none"],
    ["tls://foo.example.com:443", {}, "refuse s-foo"],
    ["https://foo.example.com:8443/", {}, "refuse m-foo"],
    ["https://foo.example.com:8443/", { clientCertificate: true }, "forward m-foo m"],
    ["https://foo.example.com:9443/", { clientCertificate: true }, "refuse n-foo"],
    ["https://foo.example.com:7443/", {}, "forward i-foo i"],
    ["tcp://db:5432", {}, "forward tcp tcp"],
    ["udp://dns:53", {}, "refuse udp udp"],
    ["http://foo.example.com/a", { port: "80" }, "forward foo exact"],
    ["http://foo.example.com/a", { gateway: "infra/other" }, "refuse"],
  ] satisfies [string, Partial<ExplainedRequest>, string][])(
    "%s with %j has the outcome %s",
    (url, more, expected) => {
      expect(summary(ask(url, more))).toBe(expected);
    },
  );

  test("a redirect names its location", () => {
    expect(ask("http://foo.example.com/old/x?y").location).toBe("https://foo.example.com/new/x?y");
  });

  test("shares follow the weights, and an invalid reference keeps its share", () => {
    expect(ask("http://foo.example.com/split").backends).toEqual([
      {
        namespace: "team",
        name: "web",
        port: 8080,
        weight: 3,
        share: 0.75,
        endpoints: [{ address: "127.0.0.1", port: 9000 }],
      },
      { weight: 1, share: 0.25, endpoints: [], status: 500 },
      { namespace: "team", name: "idle", port: 8080, weight: 0, share: 0, endpoints: [], status: 503 },
    ]);
  });

  test("the steps are listed in order", () => {
    const order = (explanation: Explanation) => explanation.steps.map((step) => step.at);
    expect(order(ask("https://foo.example.com/"))).toEqual([
      "port",
      "sni",
      "listener",
      "authority",
      "host",
      "rule",
      "backend",
    ]);
    expect(order(ask("http://example.com/"))).toEqual(["port", "listener"]);
  });
});

describe("why the others lost", () => {
  test.each([
    ["http://foo.example.com/a/x", "short", "exact", "path", "path /a/x is not /a"],
    ["http://foo.example.com/a/x", "short", "long", "path", "path /a/x is not under prefix /a/b"],
    ["http://foo.example.com/a/x", "short", "post", "method", "method is GET, not POST"],
    ["http://foo.example.com/a/x", "short", "header", "header", "header x-a is missing"],
    [
      "http://foo.example.com/a/x?q=z",
      "short",
      "query",
      "query",
      'query parameter q is "z", which does not match the expression "[0-9]+"',
    ],
    [
      "http://foo.example.com/a/b",
      "long",
      "short",
      "precedence",
      "lower precedence than HTTPRoute team/long rule 0, which matches the longer path",
    ],
    [
      "http://foo.example.com/a/x?q=1",
      "query",
      "short",
      "precedence",
      "lower precedence than HTTPRoute team/query rule 0, which matches more query parameters",
    ],
  ])("%s is served by %s, not by %s: %s", (url, served, loser, code, reason) => {
    const { route, eliminated } = ask(url);
    expect(route?.name).toBe(served);
    expect(eliminated.find((each) => each.route?.name === loser)).toMatchObject({ rule: code, reason });
  });

  test.each([
    [
      "http://foo.example.com/",
      {},
      "wild",
      "specificity",
      "*.example.com matches, but is less specific than foo.example.com",
    ],
    ["http://bar.example.com/", {}, "foo", "hostname", "foo.example.com does not match bar.example.com"],
    ["http://example.org/", {}, "wild", "hostname", "*.example.com does not match example.org"],
    [
      "https://foo.example.com/",
      { sni: "bar.example.com" },
      "s-foo",
      "misdirected",
      "421: host foo.example.com is its own",
    ],
    [
      "https://foo.example.com/",
      { sni: "" },
      "s-wild",
      "hostname",
      "does not match a client that names no host",
    ],
  ] satisfies [string, Partial<ExplainedRequest>, string, string, string][])(
    "at %s with %j, the listener %s lost by %s",
    (url, more, loser, code, reason) => {
      const lost = ask(url, more).eliminated.find(
        (each) => each.listener.name === loser && each.route === undefined,
      );
      expect(lost?.rule).toBe(code);
      expect(lost?.reason).toContain(reason);
    },
  );

  test("a wider host of the same listener lost because a narrower one comes first", () => {
    const local = tableOf(
      port("p"),
      listener("l", "p", ""),
      host("h1", "l", "a.com", [rule("narrow")]),
      host("h2", "l", "*.com", [rule("wide")]),
      host("h3", "l", "b.com", [rule("other")]),
    );
    const asked = {
      port: "p",
      scheme: "http",
      authority: "a.com",
      method: "GET",
      path: "/",
      query: "",
      headers: [],
    } as const;
    expect(explainRequest(local, asked).eliminated).toMatchObject([
      { route: { name: "wide" }, rule: "specificity" },
      { route: { name: "other" }, rule: "hostname", reason: "hostname b.com does not match a.com" },
    ]);
  });

  test("a listener of a Gateway that was not asked for lost because of its port", () => {
    const local = tableOf(
      port("p", "http", { gateway: "a/gw" }),
      listener("l", "p", "a.com"),
      port("q", "http", { gateway: "b/gw" }),
      listener("m", "q", "b.com"),
    );
    const asked = {
      port: 80,
      scheme: "http",
      authority: "b.com",
      method: "GET",
      path: "/",
      query: "",
      headers: [],
    } as const;
    expect(explainRequest(local, asked)).toMatchObject({
      listener: { name: "m" },
      eliminated: [{ listener: { name: "l" }, rule: "port" }],
    });
    expect(explainRequest(local, { ...asked, gateway: "a/gw" })).toMatchObject({ status: 404 });
  });

  test("a port may have more candidates than a call takes arguments", () => {
    const many = Array.from({ length: 150_000 }, (_, at) => listener(`l${at}`, "p", `h${at}.com`));
    const asked = {
      port: "p",
      scheme: "http",
      authority: "h7.com",
      method: "GET",
      path: "/",
      query: "",
      headers: [],
    } as const;
    const large = tableOf(port("p"));
    large.apply({ upserts: many, removes: [] });
    expect(explainRequest(large, asked).eliminated.length).toBe(many.length - 1);
  });

  test("a client's long text is not repeated in full", () => {
    const { eliminated } = ask(`http://foo.example.com/${"x".repeat(100_000)}`);
    expect(Math.max(...eliminated.map(({ reason }) => reason.length))).toBeLessThan(1000);
  });
});

test("property: explain, the routing table and a plain reading of the rules agree", () => {
  const name = fc.constantFrom("a.com", "x.a.com", "b.com", "y.x.a.com", "org");
  const hostname = fc.constantFrom("", "*.com", "*.a.com", "a.com", "x.a.com", "b.com");
  const hosts = fc.uniqueArray(fc.tuple(hostname, fc.array(randomMatch, { minLength: 1, maxLength: 20 })), {
    maxLength: 4,
    selector: ([each]) => each,
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(hostname, { maxLength: 4 }),
      hosts,
      name,
      randomRequest,
      fc.boolean(),
      (all, parts, asked, view, secure) => {
        const protocol = secure ? "HTTPS" : "HTTP";
        const listeners = all.map((each) => listener(`l-${each}`, "p", each, { protocol }));
        const items = listeners.flatMap(({ id }) =>
          parts.map(([each, matches]) =>
            host(
              `${id}|${each}`,
              id,
              each,
              matches.map((match, at) => rule(`${id}|${each}|${at}`, match, forward)),
            ),
          ),
        );
        const local = tableOf(port("p", secure ? "tls" : "http"), ...listeners, ...items, backend("web"));
        const { method, path, query } = view;
        const headers = ["x", "y", "__proto__", "constructor"].flatMap((key) => {
          const value = view.header(key);
          return value === undefined ? [] : [[key, value] as const];
        });
        const told = explainRequest(local, {
          port: "p",
          scheme: secure ? "https" : "http",
          authority: asked,
          method,
          path,
          query,
          headers,
        });

        const best = listeners
          .filter((each) => matchesName(each.hostname, asked))
          .sort((a, b) => compareSpecificity(a.hostname, b.hostname))[0];
        const matching = items
          .filter((each) => each.listener === best?.id && matchesName(each.hostname, asked))
          .sort((a, b) => compareSpecificity(a.hostname, b.hostname))
          .flatMap((each) => each.rules)
          .filter((each) => matchesRequest(each.match, new RequestFacts(view)));
        expect(told.listener?.name).toBe(best?.id);
        expect(told.route?.name).toBe(matching[0]?.origin.name);
        expect(told.outcome).toBe(matching[0] ? "forward" : best || !secure ? "respond" : "refuse");
        if (best !== undefined) {
          expect(local.matchRule(best.id, asked, view)?.origin.name).toBe(told.route?.name);
          expect(secure ? local.admitHttps(best.id, asked) : local.admitHttp("p", asked)).toEqual({
            listener: best,
          });
        }

        // Every other candidate is named once, and one that matches is never said not to.
        const lost = told.eliminated;
        const ownRules = items.filter((each) => each.listener === best?.id).flatMap((each) => each.rules);
        expect(lost.filter((each) => each.route === undefined).length).toBe(
          listeners.length - (best ? 1 : 0),
        );
        expect(new Set(lost.map((each) => each.route?.name).filter((each) => each !== undefined)).size).toBe(
          ownRules.length - (matching[0] ? 1 : 0),
        );
        const beaten = lost.filter(
          (each) => each.route && (each.rule === "precedence" || each.rule === "specificity"),
        );
        expect(beaten.map((each) => each.route?.name).sort()).toEqual(
          matching
            .slice(1)
            .map((each) => each.origin.name)
            .sort(),
        );
      },
    ),
    { numRuns: 500 },
  );
});

test("a rule that matches the Host header is compared with the authority", () => {
  const asked = { port: 80, scheme: "http", method: "GET", path: "/", query: "", headers: [] } as const;
  const hosts = tableOf(
    port("80"),
    listener("all", "80", ""),
    host("80-all", "all", "", [
      rule("named", { headers: [{ type: "exact", name: "host", value: "foo.example.com" }] }, forward),
    ]),
    backend("web"),
  );
  expect(explainRequest(hosts, { ...asked, authority: "foo.example.com" }).outcome).toBe("forward");
  expect(explainRequest(hosts, { ...asked, authority: "bar.example.com" }).status).toBe(404);
});

test("hostile requests are explained without an error", () => {
  for (const authority of ["", ":", "[", "a.".repeat(10_000), "\u0000", "__proto__"]) {
    for (const path of ["", "*", "/".repeat(10_000), "%", "/\ud800"]) {
      const asked = {
        port: 80,
        scheme: "http",
        authority,
        method: "__proto__",
        path,
        query: "%&=&",
        headers: [],
      } as const;
      expect(explainRequest(table, asked).outcome).toBe("respond");
      expect(explainRequest(table, { ...asked, port: 443, scheme: "https" }).outcome).toBe("refuse");
    }
  }
});
