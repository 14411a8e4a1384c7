/**
 * Rules with one generated value each, for every field of a route that ends in Envoy's
 * configuration.
 */

import * as fc from "fast-check";
import { expression, text, words } from "./odd-text.ts";
import type { Manifest } from "./unadmitted.ts";

/** One rule of one kind of route; `field` names what was generated. */
export interface ValueCase {
  readonly field: string;
  readonly kind: "HTTPRoute" | "GRPCRoute";
  readonly rule: Manifest;
}

const BACKEND = { name: "svc", port: 80 };

const durations = fc.oneof(
  fc.constantFrom(
    ...words("0s 0ms 1ms 0h0m0s0ms 1s 10s 99999h 99999h99999m99999s99999ms 1h1m 24h 2ms 596h 597h"),
  ),
  fc.tuple(fc.nat(99_999), fc.constantFrom("h", "m", "s", "ms")).map(([amount, unit]) => `${amount}${unit}`),
);
const EDGES =
  "0 1 2 99 100 199 200 400 418 499 500 599 600 999 65535 65536 1000000 2147483647 2147483648 4294967295 4294967296 -1";
const integer = fc.oneof(fc.constantFrom(...words(EDGES).map(Number)), fc.integer());
const headerName = fc.oneof(
  fc.constantFrom(
    ...words(`Host host :authority :path :method Connection content-length Transfer-Encoding te X-Envoy-Retry-On
    x-envoy-upstream-rq-timeout-ms x-mergeway-scope cookie Content-Type a_b !#$%&'*+-.^_\`|~`),
    "x".repeat(256),
  ),
  text([...words("a b z A Z 0 9 ! # $ % & ' * + - . ^ _ ` | ~ : ä ( /"), " ", "\u0000", "\r\n"]),
);
const path = fc.oneof(
  text().map((rest) => `/${rest}`),
  text([...words("/ . .. a %2F %2f % // ? # * {x} {x=*} {x=**} ä ; [ \\ ~ @"), " ", "\u0000"]).map(
    (rest) => `/${rest}`,
  ),
  fc.constantFrom(...words("/ // /a/ * a /** /a#b /a?b /% /%zz /[ /\\1"), "", `/${"a".repeat(1023)}`),
);
const hostnames = fc.oneof(
  fc.constantFrom(
    ...words("a.example *.example a a..b .a a. 1.2.3.4 a_b A.Example localhost xn--a"),
    `${"a".repeat(63)}.example`,
    `${"a.".repeat(126)}a`,
  ),
  text(words("a b 0 - . * _ A : ä")),
);
const origins = fc.oneof(
  fc.constantFrom(
    ...words(`* https://a.example https://*.example http://a:80 https://* http://*:8080 null https://a.example/
    https://( foo://bar https://a*b.example https://[::1]`),
  ),
  text(words("https:// http:// a * . : 80 [ ] ( ) \\ ä - + ?")),
);
const methods = fc.oneof(fc.constantFrom(...words("GET POST * get OPTIONS PROPFIND"), "G T", ""), text());

/** Any of the fields, each perhaps. */
function some(fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<Manifest> {
  return fc.record(fields, { requiredKeys: [] });
}

type Cases = fc.Arbitrary<ValueCase>;

function http(field: string, of: fc.Arbitrary<Manifest>): Cases {
  return of.map((rule) => ({ field, kind: "HTTPRoute", rule: { backendRefs: [BACKEND], ...rule } }));
}

function match(field: string, of: fc.Arbitrary<Manifest>): Cases {
  const name = `matches.${field}`;
  return http(
    name,
    of.map((each) => ({ matches: [each] })),
  );
}

function grpc(field: string, of: fc.Arbitrary<Manifest>): Cases {
  return of.map((each) => ({
    field: `grpc.${field}`,
    kind: "GRPCRoute",
    rule: { matches: [each], backendRefs: [BACKEND] },
  }));
}

const PROPERTY: Readonly<Record<string, string>> = { CORS: "cors", URLRewrite: "urlRewrite" };

/**
 * A filter of a rule or of a backendRef; what it does may depend on the prefix that was matched.
 */
function filter(type: string, of: fc.Arbitrary<Manifest>): Cases {
  const property = PROPERTY[type] ?? `${type.charAt(0).toLowerCase()}${type.slice(1)}`;
  const prefixes = fc.constantFrom("/", "/a", "/a/", "/a/b", `/${"a".repeat(500)}`);
  return fc.tuple(of, fc.boolean(), prefixes).map(([value, ofBackend, prefix]) => {
    const filters = [{ type, [property]: value }];
    const matches = [{ path: { type: "PathPrefix", value: prefix } }];
    const isOfBackend = ofBackend && type !== "CORS" && type !== "RequestRedirect";
    const backendRefs = isOfBackend ? [{ ...BACKEND, filters }] : [BACKEND];
    const rule = {
      matches,
      ...(isOfBackend ? {} : { filters }),
      ...(type === "RequestRedirect" ? {} : { backendRefs }),
    };
    return { field: `${isOfBackend ? "backendRef" : "rule"}.${type}`, kind: "HTTPRoute", rule };
  });
}

const pathEdit = path.chain((value) =>
  fc.constantFrom(
    { type: "ReplaceFullPath", replaceFullPath: value },
    { type: "ReplacePrefixMatch", replacePrefixMatch: value },
  ),
);
const headerEdits = fc
  .tuple(headerName, text(), fc.constantFrom("set", "add", "remove"))
  .map(([name, value, op]) => (op === "remove" ? { remove: [name] } : { [op]: [{ name, value }] }));
const mirrored = fc
  .oneof(
    fc.record({ percent: integer }),
    fc.record({ fraction: fc.record({ numerator: integer, denominator: integer }) }),
  )
  .map((share) => ({ backendRef: BACKEND, ...share }));
const timeouts = some({ request: durations, backendRequest: durations });
const regex = (field: string): fc.Arbitrary<Manifest> =>
  expression.map((value) => ({ [field]: [{ type: "RegularExpression", name: "x", value }] }));
const lists = (of: fc.Arbitrary<string>): fc.Arbitrary<readonly string[]> => fc.array(of, { maxLength: 3 });

const matches: readonly Cases[] = [
  match(
    "path",
    fc
      .tuple(path, fc.constantFrom("Exact", "PathPrefix"))
      .map(([value, type]) => ({ path: { type, value } })),
  ),
  match(
    "headers",
    fc.tuple(headerName, text()).map(([name, value]) => ({ headers: [{ name, value }] })),
  ),
  match(
    "queryParams",
    fc.tuple(text(), text()).map(([name, value]) => ({ queryParams: [{ name, value }] })),
  ),
  match(
    "method",
    methods.map((method) => ({ method })),
  ),
  grpc(
    "method",
    some({ service: text(), method: text() }).map((method) => ({ method: { type: "Exact", ...method } })),
  ),
];
const expressions: readonly Cases[] = [
  match(
    "path.regex",
    expression.map((value) => ({ path: { type: "RegularExpression", value } })),
  ),
  match("headers.regex", regex("headers")),
  match("queryParams.regex", regex("queryParams")),
  grpc("headers.regex", regex("headers")),
  grpc(
    "method.regex",
    fc
      .tuple(expression, expression)
      .map(([service, method]) => ({ method: { type: "RegularExpression", service, method } })),
  ),
];
const actions: readonly Cases[] = [
  filter("RequestHeaderModifier", headerEdits),
  filter("ResponseHeaderModifier", headerEdits),
  filter("URLRewrite", some({ path: pathEdit, hostname: hostnames })),
  filter(
    "RequestRedirect",
    some({
      path: pathEdit,
      hostname: hostnames,
      scheme: fc.constantFrom("http", "https", "HTTP", "ftp"),
      port: integer,
      statusCode: fc.constantFrom(301, 302, 303, 307, 308, 300, 304),
    }),
  ),
  filter("RequestMirror", mirrored),
  filter(
    "CORS",
    some({
      allowOrigins: lists(origins),
      allowMethods: lists(methods),
      allowHeaders: lists(headerName),
      exposeHeaders: lists(headerName),
      maxAge: integer,
      allowCredentials: fc.boolean(),
    }),
  ),
  http("timeouts", fc.record({ timeouts })),
  http(
    "retry",
    fc.record({
      retry: some({ codes: fc.array(integer, { maxLength: 3 }), attempts: integer, backoff: durations }),
      timeouts,
    }),
  ),
  http(
    "weights",
    fc
      .array(integer, { maxLength: 4 })
      .map((weights) => ({ backendRefs: weights.map((weight) => ({ ...BACKEND, weight })) })),
  ),
];

export const cases: Cases = fc.oneof(...matches, ...expressions, ...expressions, ...actions);
