/**
 * Rules with one generated value each, for every field of a route that ends in Envoy's configuration. Values are odd on purpose: mostly pieces that a parser gives a meaning to,
 * put together at random.
 */

import * as fc from "fast-check";

export type Manifest = Readonly<Record<string, unknown>>;

/** One rule of one kind of route; `field` names what was generated. */
export interface ValueCase {
  readonly field: string;
  readonly kind: "HTTPRoute" | "GRPCRoute";
  readonly rule: Manifest;
}

const BACKEND = { name: "svc", port: 80 };

const pieces: readonly string[] = [
  ..."abzAZ019_-.~!@#$%^&*()+=[]{}|\\:;\"'<>,?/ \t\n\r\u0000\u0001\u007f\u0080\u00a0\u00ff\u0100\u2028\u{1f600}\ud800",
  ...["%", "%%", "%41", "%zz", "%00", "%2f", "%REQ(cookie)%", "%PROTOCOL%", "\\0", "\\1", "\\9", "\\\\"],
  ...["//", "/./", "/../", "/..", "?a=b", "#x", "*", "**", "a.b", "host:80", "[::1]", "xn--", "ä", "ﬀ"],
];

/** Text of pieces, between nothing and more than anybody means. */
function text(alphabet: readonly string[] = pieces): fc.Arbitrary<string> {
  return fc.oneof(
    {
      weight: 8,
      arbitrary: fc.array(fc.constantFrom(...alphabet), { maxLength: 6 }).map((all) => all.join("")),
    },
    { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
    { weight: 1, arbitrary: fc.string({ unit: "grapheme-ascii", maxLength: 200 }) },
  );
}

const classes = [
  ..."Any L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Co Cs Cn LC".split(
    " ",
  ),
  ..."Latin Greek Han Cyrillic Kawi Nag_Mundari Garay Todhri Common Inherited Emoji Letter Uppercase ASCII Script=Latin Lowercase_Letter".split(
    " ",
  ),
  ..."latin lu X Alphabetic ID_Start Unknown Zzzz Sunuwar Tulu_Tigalari".split(" "),
];
const expressions: readonly string[] = [
  ..."abz09./_- \\\n\t^$|()[]{}*+?ä\u{1f600}\u0000\ud800",
  ...[
    "\\d",
    "\\D",
    "\\w",
    "\\s",
    "\\b",
    "\\B",
    "\\A",
    "\\z",
    "\\Z",
    "\\C",
    "\\G",
    "\\R",
    "\\X",
    "\\h",
    "\\H",
    "\\v",
    "\\V",
    "\\N",
  ],
  ...[
    "\\Q",
    "\\E",
    "\\Q*\\E",
    "\\a",
    "\\f",
    "\\n",
    "\\r",
    "\\t",
    "\\e",
    "\\cA",
    "\\0",
    "\\07",
    "\\012",
    "\\123",
    "\\8",
    "\\377",
    "\\777",
    "\\1",
    "\\_",
    "\\ä",
    "\\-",
    "\\/",
    "\\%",
    "\\ ",
  ],
  ...[
    "\\x41",
    "\\x4",
    "\\x{41}",
    "\\x{10FFFF}",
    "\\x{110000}",
    "\\x{D800}",
    "\\x{}",
    "\\x{FFFE}",
    "\\xff",
    "\\u0041",
    "\\U0001f600",
    "\\x{E000}",
    "\\x{ffff}",
    "\\x{10000}",
  ],
  ...[
    "(?i)",
    "(?s)",
    "(?m)",
    "(?U)",
    "(?x)",
    "(?u)",
    "(?i:",
    "(?-i)",
    "(?i-s:",
    "(?ims)",
    "(?--)",
    "(?)",
    "(?:",
    "(?P<n>",
    "(?<n>",
    "(?'n'",
    "(?P=n)",
    "(?P>n)",
    "(?=",
    "(?!",
    "(?<=",
    "(?>",
    "(?#c)",
    "(?P<1>",
    "(?P<>",
    "(?P<ä>",
    "(?<n>a)(?<n>b)",
    "(?P<n>a)",
  ],
  ...[
    "*?",
    "+?",
    "??",
    "**",
    "*+",
    "++",
    "{2}",
    "{2,}",
    "{2,3}",
    "{3,2}",
    "{,3}",
    "{0}",
    "{0,0}",
    "{1000}",
    "{1001}",
    "{2}{3}",
    "{2}?",
    "{2}+",
    "{ 2}",
    "{a}",
    "x{0}*",
  ],
  ...[
    "[a-z]",
    "[^a]",
    "[]a]",
    "[^]a]",
    "[a-]",
    "[-a]",
    "[z-a]",
    "[[:alpha:]]",
    "[[:^alpha:]]",
    "[[:word:]]",
    "[[:foo:]]",
    "[:alpha:]",
    "[[=a=]]",
    "[[.a.]]",
    "[\\d\\w]",
    "[\\D]",
    "[a-\\d]",
    "[\\b]",
    "[a&&b]",
    "[a[b]]",
    "[]",
    "[^]",
    "[\\x{10FFFF}]",
    "[\\x{0}-\\x{10FFFF}]",
    "[^\\x{0}-\\x{10FFFF}]",
    "[^\\d\\D]",
    "[\\n]",
    "[\\Q]\\E]",
    "[\\pL]",
    "[^\\PL]",
    "[\\C]",
    "[\\A]",
    "[a\\-z]",
    "[ä-ü]",
    "[\\s-a]",
    "[a--b]",
  ],
  ...classes.flatMap((name) => [`\\p{${name}}`, `\\P{${name}}`, `\\p{^${name}}`, `[\\p{${name}}]`]),
  ...[
    "\\pL",
    "\\PL",
    "\\pX",
    "\\p",
    "\\p{",
    "\\p{}",
    "\\pN",
    "(a|b)*",
    "(|a)",
    "(a|)",
    "()",
    "(?:)",
    "a||b",
    "^*",
    "$+",
    "\\b*",
    "(?i)ſ",
    "(?i)K",
    "(a{10}){10}",
    "((a{100}){10}){10}",
    "((a{100}){100}){100}",
    "(a*)*",
    "(a+)+$",
    ".*",
    ".{0,255}",
  ],
];

const expression: fc.Arbitrary<string> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...expressions) },
  { weight: 6, arbitrary: text(expressions) },
  {
    weight: 1,
    arbitrary: fc
      .array(fc.constantFrom("(a", "b)", "[", "]", "|", "*", "{9}", "(?i)", "\\p{L}"), { maxLength: 40 })
      .map((all) => all.join("")),
  },
);

const durations = fc.oneof(
  fc.constantFrom(
    "0s",
    "0ms",
    "1ms",
    "0h0m0s0ms",
    "1s",
    "10s",
    "99999h",
    "99999h99999m99999s99999ms",
    "1h1m",
    "24h",
    "2ms",
    "596h",
    "597h",
  ),
  fc.tuple(fc.nat(99_999), fc.constantFrom("h", "m", "s", "ms")).map(([amount, unit]) => `${amount}${unit}`),
);
const integer = fc.oneof(
  fc.constantFrom(
    0,
    1,
    2,
    99,
    100,
    199,
    200,
    400,
    418,
    499,
    500,
    599,
    600,
    999,
    65_535,
    65_536,
    1_000_000,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 53 - 1,
    -1,
  ),
  fc.integer(),
);
const headerName = fc.oneof(
  fc.constantFrom(
    "Host",
    "host",
    ":authority",
    ":path",
    ":method",
    "Connection",
    "content-length",
    "Transfer-Encoding",
    "te",
    "X-Envoy-Retry-On",
    "x-envoy-upstream-rq-timeout-ms",
    "x-mergeway-scope",
    "cookie",
    "Content-Type",
    "x".repeat(256),
    "a_b",
    "!#$%&'*+-.^_`|~",
  ),
  text([..."abzAZ09!#$%&'*+-.^_`|~", ":", " ", "ä", "\u0000", "\r\n", "(", "/"]),
);
const path = fc.oneof(
  text().map((rest) => `/${rest}`),
  text([
    "/",
    ".",
    "..",
    "a",
    "%2F",
    "%2f",
    "%",
    "//",
    "?",
    "#",
    "*",
    "{x}",
    "{x=*}",
    "{x=**}",
    "ä",
    " ",
    "\u0000",
    ";",
    "[",
    "\\",
    "~",
    "@",
  ]).map((rest) => `/${rest}`),
  fc.constantFrom(
    "/",
    "//",
    "/a/",
    `/${"a".repeat(1023)}`,
    "*",
    "a",
    "",
    "/**",
    "/a#b",
    "/a?b",
    "/%",
    "/%zz",
    "/[",
    "/\\1",
  ),
);
const hostnames = fc.oneof(
  fc.constantFrom(
    "a.example",
    "*.example",
    "a",
    "a..b",
    ".a",
    "a.",
    "1.2.3.4",
    `${"a".repeat(63)}.example`,
    `${"a.".repeat(126)}a`,
    "a_b",
    "A.Example",
    "localhost",
    "xn--a",
  ),
  text([..."ab0-.*_A:", "ä"]),
);
const origins = fc.oneof(
  fc.constantFrom(
    "*",
    "https://a.example",
    "https://*.example",
    "http://a:80",
    "https://*",
    "http://*:8080",
    "null",
    "https://a.example/",
    "https://(",
    "foo://bar",
    "https://a*b.example",
    "https://[::1]",
  ),
  text(["https://", "http://", "a", "*", ".", ":", "80", "[", "]", "(", ")", "\\", "ä", "-", "+", "?"]),
);
const methods = fc.oneof(
  fc.constantFrom("GET", "POST", "*", "get", "OPTIONS", "PROPFIND", "G T", ""),
  text(),
);

function http(field: string, of: fc.Arbitrary<Manifest>): fc.Arbitrary<ValueCase> {
  return of.map((rule) => ({ field, kind: "HTTPRoute", rule: { backendRefs: [BACKEND], ...rule } }));
}

function match(field: string, of: fc.Arbitrary<Manifest>): fc.Arbitrary<ValueCase> {
  return http(
    `matches.${field}`,
    of.map((each) => ({ matches: [each] })),
  );
}

function filter(field: string, type: string, of: fc.Arbitrary<Manifest>): fc.Arbitrary<ValueCase> {
  const property =
    type === "CORS"
      ? "cors"
      : type === "URLRewrite"
        ? "urlRewrite"
        : `${type.charAt(0).toLowerCase()}${type.slice(1)}`;
  return fc.tuple(of, fc.constantFrom("rule", "backendRef"), path).map(([value, at, prefix]) => {
    const filters = [{ type, [property]: value }];
    const matches = [{ path: { type: "PathPrefix", value: prefix } }];
    const usable = /^\/[a-z/]*$/.test(prefix) && !prefix.includes("//") ? { matches } : {};
    if (type === "RequestRedirect")
      return { field: `${type}.${field}`, kind: "HTTPRoute" as const, rule: { filters, ...usable } };
    const rule =
      at === "rule" || type === "CORS"
        ? { filters, backendRefs: [BACKEND] }
        : { backendRefs: [{ ...BACKEND, filters }] };
    return { field: `${at}.${type}.${field}`, kind: "HTTPRoute" as const, rule: { ...rule, ...usable } };
  });
}

const pathEdit = path.chain((value) =>
  fc.constantFrom(
    { type: "ReplaceFullPath", replaceFullPath: value },
    { type: "ReplacePrefixMatch", replacePrefixMatch: value },
  ),
);
const headerEdits = (value: fc.Arbitrary<string>): fc.Arbitrary<Manifest> =>
  fc
    .tuple(headerName, value, fc.constantFrom("set", "add", "remove"))
    .map(([name, content, op]) =>
      op === "remove" ? { remove: [name] } : { [op]: [{ name, value: content }] },
    );

const grpc = (field: string, of: fc.Arbitrary<Manifest>): fc.Arbitrary<ValueCase> =>
  of.map((each) => ({
    field: `grpc.${field}`,
    kind: "GRPCRoute",
    rule: { matches: [each], backendRefs: [BACKEND] },
  }));

export const cases: fc.Arbitrary<ValueCase> = fc.oneof(
  {
    weight: 8,
    arbitrary: match(
      "path.regex",
      expression.map((value) => ({ path: { type: "RegularExpression", value } })),
    ),
  },
  {
    weight: 3,
    arbitrary: match(
      "header.regex",
      expression.map((value) => ({ headers: [{ type: "RegularExpression", name: "x", value }] })),
    ),
  },
  {
    weight: 3,
    arbitrary: match(
      "query.regex",
      expression.map((value) => ({ queryParams: [{ type: "RegularExpression", name: "x", value }] })),
    ),
  },
  {
    weight: 4,
    arbitrary: match(
      "path",
      fc
        .tuple(path, fc.constantFrom("Exact", "PathPrefix"))
        .map(([value, type]) => ({ path: { type, value } })),
    ),
  },
  {
    weight: 2,
    arbitrary: match(
      "header",
      fc.tuple(headerName, text()).map(([name, value]) => ({ headers: [{ name, value }] })),
    ),
  },
  {
    weight: 2,
    arbitrary: match(
      "query",
      fc.tuple(text(), text()).map(([name, value]) => ({ queryParams: [{ name, value }] })),
    ),
  },
  {
    weight: 1,
    arbitrary: match(
      "method",
      methods.map((method) => ({ method })),
    ),
  },
  { weight: 2, arbitrary: filter("edit", "RequestHeaderModifier", headerEdits(text())) },
  { weight: 2, arbitrary: filter("edit", "ResponseHeaderModifier", headerEdits(text())) },
  {
    weight: 3,
    arbitrary: filter(
      "path",
      "URLRewrite",
      pathEdit.map((value) => ({ path: value })),
    ),
  },
  {
    weight: 2,
    arbitrary: filter(
      "hostname",
      "URLRewrite",
      hostnames.map((hostname) => ({ hostname })),
    ),
  },
  {
    weight: 3,
    arbitrary: filter(
      "path",
      "RequestRedirect",
      pathEdit.map((value) => ({ path: value })),
    ),
  },
  {
    weight: 2,
    arbitrary: filter(
      "target",
      "RequestRedirect",
      fc.record(
        {
          hostname: hostnames,
          scheme: fc.constantFrom("http", "https", "HTTP", "ftp"),
          port: integer,
          statusCode: fc.constantFrom(301, 302, 303, 307, 308, 300, 304),
        },
        { requiredKeys: [] },
      ),
    ),
  },
  {
    weight: 1,
    arbitrary: filter(
      "share",
      "RequestMirror",
      fc
        .oneof(
          fc.record({ percent: integer }),
          fc.record({ fraction: fc.record({ numerator: integer, denominator: integer }) }),
        )
        .map((share) => ({ backendRef: BACKEND, ...share })),
    ),
  },
  {
    weight: 3,
    arbitrary: filter(
      "policy",
      "CORS",
      fc.record(
        {
          allowOrigins: fc.array(origins, { maxLength: 3 }),
          allowMethods: fc.array(methods, { maxLength: 2 }),
          allowHeaders: fc.array(headerName, { maxLength: 2 }),
          exposeHeaders: fc.array(headerName, { maxLength: 2 }),
          maxAge: integer,
          allowCredentials: fc.boolean(),
        },
        { requiredKeys: [] },
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: http(
      "timeouts",
      fc.record({
        timeouts: fc.record({ request: durations, backendRequest: durations }, { requiredKeys: [] }),
      }),
    ),
  },
  {
    weight: 3,
    arbitrary: http(
      "retry",
      fc.record(
        {
          retry: fc.record(
            { codes: fc.array(integer, { maxLength: 3 }), attempts: integer, backoff: durations },
            { requiredKeys: [] },
          ),
          timeouts: fc.record({ request: durations, backendRequest: durations }, { requiredKeys: [] }),
        },
        { requiredKeys: ["retry"] },
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: http(
      "weights",
      fc
        .array(integer, { maxLength: 4 })
        .map((weights) => ({ backendRefs: weights.map((weight) => ({ ...BACKEND, weight })) })),
    ),
  },
  {
    weight: 2,
    arbitrary: http(
      "sessionPersistence",
      fc
        .record(
          { sessionName: text(), type: fc.constantFrom("Cookie", "Header"), absoluteTimeout: durations },
          { requiredKeys: [] },
        )
        .map((sessionPersistence) => ({ sessionPersistence })),
    ),
  },
  {
    weight: 2,
    arbitrary: grpc(
      "method.regex",
      fc
        .tuple(expression, expression)
        .map(([service, method]) => ({ method: { type: "RegularExpression", service, method } })),
    ),
  },
  {
    weight: 2,
    arbitrary: grpc(
      "method",
      fc
        .record({ service: text(), method: text() }, { requiredKeys: [] })
        .map((method) => ({ method: { type: "Exact", ...method } })),
    ),
  },
  {
    weight: 1,
    arbitrary: grpc(
      "header",
      fc
        .tuple(headerName, expression)
        .map(([name, value]) => ({ headers: [{ type: "RegularExpression", name, value }] })),
    ),
  },
);

/**
 * A route as no schema has seen it, with what an API server fills in: which values arrive depends on the version of the API that is installed, and
 * Envoy must never meet one that it refuses.
 */
export function unadmitted({ spec, ...route }: RouteManifest): Manifest {
  const [rule = {}] = spec.rules;
  const { matches, filters, backendRefs } = rule as Parts;
  return {
    ...route,
    spec: {
      ...spec,
      parentRefs: spec.parentRefs.map((ref) => ({
        group: "gateway.networking.k8s.io",
        kind: "Gateway",
        ...ref,
      })),
      rules: [
        {
          ...rule,
          ...(backendRefs === undefined ? {} : { backendRefs: backendRefs.map(toService) }),
          ...(filters === undefined ? {} : { filters: filters.map(defaulted) }),
          ...(matches === undefined ? {} : { matches: matches.map(exactly) }),
        },
      ],
    },
  };
}

export interface RouteManifest extends Manifest {
  readonly spec: Manifest & {
    readonly parentRefs: readonly Manifest[];
    readonly rules: readonly Manifest[];
  };
}

interface Parts {
  readonly matches?: readonly Readonly<Record<string, readonly Manifest[]>>[];
  readonly filters?: readonly Readonly<Record<string, Manifest>>[];
  readonly backendRefs?: readonly Manifest[];
}

function toService(ref: unknown): Manifest {
  return { group: "", kind: "Service", weight: 1, ...(ref as Manifest) };
}

function defaulted({
  requestMirror,
  requestRedirect,
  ...filter
}: Readonly<Record<string, Manifest>>): Manifest {
  return {
    ...filter,
    ...(requestMirror && {
      requestMirror: { ...requestMirror, backendRef: toService(requestMirror["backendRef"]) },
    }),
    ...(requestRedirect && { requestRedirect: { statusCode: 302, ...requestRedirect } }),
  };
}

function exactly({
  headers,
  queryParams,
  ...match
}: Readonly<Record<string, readonly Manifest[]>>): Manifest {
  const typed = (each: Manifest): Manifest => ({ type: "Exact", ...each });
  return {
    ...match,
    ...(headers && { headers: headers.map(typed) }),
    ...(queryParams && { queryParams: queryParams.map(typed) }),
  };
}
