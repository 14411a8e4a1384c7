/** Random resources as a user would write them: admission still has to read them. */

import * as fc from "fast-check";
import { HTTP_PORTS, PATTERNS, PLATFORM, SERVICE_PORT, SERVICES, TEAMS, TLS_PORTS, WIRE } from "./names.ts";

export type Manifest = Readonly<Record<string, unknown>>;

const API = "gateway.networking.k8s.io/v1";
const GATEWAY = { kind: "Gateway", name: "edge", namespace: PLATFORM } as const;
const SETS = ["set-one", "set-two"] as const;

/** One of many, the first ones more often. */
function mostly<T>(times: number, usual: T, ...others: readonly T[]): fc.Arbitrary<T> {
  return fc.constantFrom(...Array<T>(times).fill(usual), ...others);
}

/** None in two of three cases. */
function seldom<T>(arbitrary: fc.Arbitrary<T>, maxLength: number): fc.Arbitrary<readonly T[]> {
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    fc.array(arbitrary, { minLength: 1, maxLength }),
  );
}

const hostname: fc.Arbitrary<string | undefined> = fc.constantFrom<string | undefined>(
  ...PATTERNS,
  undefined,
);
const namespaces = mostly(4, { from: "All" }, { from: "Same" });
const certificate = mostly(8, "both", "only-a", "only-a", "broken", "absent");

const socket: fc.Arbitrary<Manifest> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ protocol: fc.constant("HTTP"), port: fc.constantFrom(...HTTP_PORTS) }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      protocol: fc.constant("HTTPS"),
      port: fc.constantFrom(...TLS_PORTS),
      tls: fc.array(certificate, { minLength: 1, maxLength: 2 }).map((names) => ({
        mode: "Terminate",
        certificateRefs: [...new Set(names)].map((name) => ({ name })),
      })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      protocol: fc.constant("TLS"),
      port: fc.constantFrom(...TLS_PORTS),
      tls: fc.constant({ mode: "Passthrough" }),
    }),
  },
  // Against the others' protocols on the same port.
  fc.constantFrom({ protocol: "HTTP", port: 443 }, { protocol: "TCP", port: 80 }),
);

function listeners(minLength: number): fc.Arbitrary<readonly Manifest[]> {
  const listener = fc
    .record({ hostname, socket, namespaces })
    .map(({ hostname: name, socket: at, namespaces: from }) => ({
      ...at,
      ...(name === undefined || at["protocol"] === "TCP" ? {} : { hostname: name }),
      allowedRoutes: { namespaces: from },
    }));
  return fc
    .array(listener, { minLength, maxLength: 3 })
    .map((list) => list.map((one, at) => ({ name: `l${at}`, ...one })));
}

const clientValidation = mostly(10, undefined, "AllowValidOnly", "AllowInsecureFallback");

const gateway: fc.Arbitrary<Manifest> = fc
  .record({
    listeners: listeners(1),
    allowed: mostly(8, { from: "All" }, { from: "None" }),
    clients: clientValidation,
  })
  .map(({ listeners: own, allowed, clients }) => ({
    apiVersion: API,
    kind: "Gateway",
    metadata: { name: GATEWAY.name, namespace: PLATFORM },
    spec: {
      gatewayClassName: "mergeway",
      allowedListeners: { namespaces: allowed },
      listeners: own,
      ...(clients === undefined
        ? {}
        : { tls: { frontend: { default: { validation: validation(clients) } } } }),
    },
  }));

function validation(mode: string): Manifest {
  return { mode, caCertificateRefs: [{ group: "", kind: "ConfigMap", name: "authority" }] };
}

const created = fc.constantFrom("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");

const set: fc.Arbitrary<Manifest> = fc
  .record({
    namespace: fc.constantFrom(...TEAMS),
    name: fc.constantFrom(...SETS),
    created,
    listeners: listeners(1),
  })
  .map(({ namespace, name, created: creationTimestamp, listeners: own }) => ({
    apiVersion: API,
    kind: "ListenerSet",
    metadata: { name, namespace, creationTimestamp },
    spec: { parentRef: GATEWAY, listeners: own },
  }));

const parent: fc.Arbitrary<Manifest> = fc.oneof(
  fc
    .record({ sectionName: mostly(5, undefined, "l0"), port: mostly(9, undefined, 80) })
    .map((more) => ({ ...GATEWAY, ...defined(more) })),
  fc
    .record({
      namespace: fc.constantFrom(...TEAMS),
      name: fc.constantFrom(...SETS),
      sectionName: mostly(8, undefined, "l0", "l1"),
    })
    .map((more) => ({ group: "gateway.networking.k8s.io", kind: "ListenerSet", ...defined(more) })),
);

/** Backends of the route's own namespace as a rule; others need a grant. */
const backendRef: fc.Arbitrary<Manifest> = fc
  .record({
    name: mostly(6, ...SERVICES),
    namespace: mostly(5, undefined, ...TEAMS),
    weight: mostly(3, undefined, 0, 1, 5),
    filters: mostly(6, undefined, [
      { type: "RequestHeaderModifier", requestHeaderModifier: { set: [{ name: "x-via", value: "ref" }] } },
    ]),
  })
  .map((ref) => ({ ...defined(ref), port: SERVICE_PORT }));

const backendRefs = mostly(12, 1, 2, 3, 0).chain((length) =>
  fc.array(backendRef, { minLength: length, maxLength: length }),
);

const httpPath = mostly<Manifest | undefined>(
  10,
  { type: "PathPrefix", value: "/" },
  undefined,
  { type: "PathPrefix", value: "/a" },
  { type: "PathPrefix", value: "/a/" },
  { type: "PathPrefix", value: "/a/b" },
  { type: "PathPrefix", value: "/pkg.Shop" },
  { type: "Exact", value: "/a" },
  { type: "Exact", value: "/a/b" },
  { type: "Exact", value: "/a/" },
  { type: "RegularExpression", value: "/a/[0-9]+" },
  { type: "RegularExpression", value: "/(a|c).*" },
  { type: "RegularExpression", value: "/(" },
);

const headerMatch = fc.constantFrom<Manifest>(
  { name: "x-env", value: "canary" },
  { name: "X-Env", value: "canary, blue" },
  { name: "x-env", type: "RegularExpression", value: "can.*" },
  { name: "x-user", type: "Exact", value: "ann" },
  { name: "host", type: "Exact", value: "a.test" },
);

const queryMatch = fc.constantFrom<Manifest>(
  { name: "v", value: "1" },
  { name: "v", value: "a b" },
  { name: "v", type: "RegularExpression", value: "[0-9]" },
  { name: "w", type: "RegularExpression", value: ".*" },
);

const httpMatch: fc.Arbitrary<Manifest> = fc
  .record({
    path: httpPath,
    headers: seldom(headerMatch, 2),
    queryParams: seldom(queryMatch, 1),
    method: mostly(8, undefined, "GET", "POST", "DELETE"),
  })
  .map(({ path, headers, queryParams, method }) =>
    defined({
      path,
      method,
      headers: headers.length === 0 ? undefined : byName(headers),
      queryParams: queryParams.length === 0 ? undefined : queryParams,
    }),
  );

const redirect: fc.Arbitrary<Manifest> = fc
  .record({
    scheme: mostly(3, undefined, "http", "https"),
    hostname: mostly(2, undefined, "elsewhere.test"),
    port: mostly(3, undefined, 80, 443, 8443),
    statusCode: mostly(2, undefined, 301, 302, 307),
    path: mostly<Manifest | undefined>(
      2,
      undefined,
      { type: "ReplaceFullPath", replaceFullPath: "/new place" },
      { type: "ReplacePrefixMatch", replacePrefixMatch: "/p" },
      { type: "ReplacePrefixMatch", replacePrefixMatch: "/" },
    ),
  })
  .map((parts) => ({ type: "RequestRedirect", requestRedirect: defined(parts) }));

const modifiers = fc.constantFrom<Manifest>(
  {
    type: "RequestHeaderModifier",
    requestHeaderModifier: { add: [{ name: "x-env", value: "canary" }], remove: ["x-user"] },
  },
  { type: "ResponseHeaderModifier", responseHeaderModifier: { set: [{ name: "x-extra", value: "yes" }] } },
  {
    type: "URLRewrite",
    urlRewrite: { hostname: "inner.test", path: { type: "ReplaceFullPath", replaceFullPath: "/inner" } },
  },
  { type: "URLRewrite", urlRewrite: { path: { type: "ReplacePrefixMatch", replacePrefixMatch: "/x" } } },
  { type: "RequestMirror", requestMirror: { backendRef: { name: "two", port: SERVICE_PORT } } },
  { type: "ExtensionRef", extensionRef: { group: "example.com", kind: "Magic", name: "wand" } },
);

/** A rule redirects, or it forwards with or without changes. */
const httpRule: fc.Arbitrary<Manifest> = fc
  .record({
    matches: fc.array(httpMatch, { maxLength: 2 }),
    kind: mostly<"plain" | "redirect" | "modified">(5, "plain", "redirect", "modified"),
    redirect,
    modifiers: fc.array(modifiers, { minLength: 1, maxLength: 2 }),
    backendRefs,
  })
  .map(({ matches, kind, redirect: away, modifiers: changes, backendRefs: refs }) => ({
    ...(matches.length === 0 ? {} : { matches }),
    ...(kind === "redirect" ? { filters: [away] } : { backendRefs: refs }),
    ...(kind === "modified" ? { filters: byType(changes) } : {}),
  }));

const grpcRule: fc.Arbitrary<Manifest> = fc
  .record({
    method: mostly<Manifest | undefined>(
      1,
      undefined,
      { service: "pkg.Shop", method: "Buy" },
      { service: "pkg.Shop" },
      { method: "Buy" },
      { type: "RegularExpression", service: "pkg\\.S.*", method: "[A-Z]uy" },
    ),
    headers: seldom(headerMatch, 1),
    backendRefs,
  })
  .map(({ method, headers, backendRefs: refs }) => {
    const match = defined({ method, headers: headers.length === 0 ? undefined : headers });
    return { ...(Object.keys(match).length === 0 ? {} : { matches: [match] }), backendRefs: refs };
  });

const wireRule = fc.constant({ backendRefs: [{ name: WIRE, port: SERVICE_PORT }] });

function route(kind: string, rule: fc.Arbitrary<Manifest>): fc.Arbitrary<Manifest> {
  return fc
    .record({
      namespace: fc.constantFrom(...TEAMS),
      name: fc.constantFrom("r-one", "r-two", "r-three"),
      created,
      parentRefs: fc.array(parent, { minLength: 1, maxLength: 5, size: "max" }),
      hostnames:
        kind === "TLSRoute"
          ? fc.array(fc.constantFrom(...PATTERNS), { minLength: 1, maxLength: 2 })
          : seldom(fc.constantFrom(...PATTERNS), 2),
      rules: fc.array(rule, { minLength: 1, maxLength: kind === "TLSRoute" ? 1 : 3 }),
    })
    .map(({ namespace, name, created: creationTimestamp, parentRefs, hostnames, rules }) => ({
      apiVersion: API,
      kind,
      metadata: { name, namespace, creationTimestamp },
      spec: {
        parentRefs: byParent(parentRefs),
        ...(hostnames.length === 0 ? {} : { hostnames: distinct(hostnames) }),
        rules,
      },
    }));
}

const grant: fc.Arbitrary<Manifest> = fc
  .record({ from: fc.constantFrom(...TEAMS), to: fc.constantFrom(...TEAMS) })
  .map(({ from, to }) => ({
    apiVersion: API,
    kind: "ReferenceGrant",
    metadata: { name: `from-${from}`, namespace: to },
    spec: {
      from: ["HTTPRoute", "GRPCRoute"].map((kind) => ({
        group: "gateway.networking.k8s.io",
        kind,
        namespace: from,
      })),
      to: [{ group: "", kind: "Service" }],
    },
  }));

/** Everything that is not always there; of several objects with one name the last counts. */
export const configuration: fc.Arbitrary<readonly Manifest[]> = fc
  .record({
    gateway: fc.option(gateway, { nil: undefined, freq: 30 }),
    sets: fc.array(set, { maxLength: 4, size: "max" }),
    routes: fc.array(
      fc.oneof(
        { weight: 6, arbitrary: route("HTTPRoute", httpRule) },
        { weight: 2, arbitrary: route("GRPCRoute", grpcRule) },
        { weight: 1, arbitrary: route("TLSRoute", wireRule) },
      ),
      { minLength: 1, maxLength: 9, size: "max" },
    ),
    grants: fc.array(grant, { maxLength: 2 }),
  })
  .map((parts) => [
    ...(parts.gateway === undefined ? [] : [parts.gateway]),
    ...parts.sets,
    ...parts.routes,
    ...parts.grants,
  ]);

function defined(fields: Manifest): Manifest {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function distinct<T>(list: readonly T[]): readonly T[] {
  return [...new Map(list.map((one) => [JSON.stringify(one), one])).values()];
}

/** The API wants several references to one parent to be told apart; of those the last counts. */
function byParent(list: readonly Manifest[]): readonly Manifest[] {
  return [...new Map(list.map((one) => [[one["kind"], one["namespace"], one["name"]].join(), one])).values()];
}

function byName(list: readonly Manifest[]): readonly Manifest[] {
  return [...new Map(list.map((one) => [String(one["name"]).toLowerCase(), one])).values()];
}

function byType(list: readonly Manifest[]): readonly Manifest[] {
  return [...new Map(list.map((one) => [one["type"], one])).values()];
}
