import * as fc from "fast-check";
import type { ExplainedRequest } from "../../../src/matching/explain/explanation.ts";
import type { Manifest } from "./configurations.ts";
import { HTTP_PORTS, TLS_PORTS, UNUSED_PORT } from "./names.ts";

/** A request as the wire will carry it; `normalPath` is what RFC 3986 makes of its path. */
export interface WireRequest extends ExplainedRequest {
  readonly port: number;
  readonly scheme: "http" | "https";
  readonly version: "h1" | "h2";
  readonly rawPath: string;
  /**
   * Which listener of the configuration the request is for, counted around; undefined: as it is.
   */
  readonly aim: number | undefined;
  /** Answers of the proxy itself then come in gRPC's words. */
  readonly grpc: boolean;
}

const host = fc.constantFrom(
  "a.test",
  "a.test",
  "sub.a.test",
  "sub.a.test",
  "x.a.test",
  "y.sub.a.test",
  "b.test",
  "b.test",
  "c.test",
  "elsewhere.example",
);

/** The same name in other clothes. */
const dressed = fc.constantFrom(
  ...Array<(name: string) => string>(6).fill((name) => name),
  (name: string) => name.toUpperCase(),
  (name: string) => `${name}:8080`,
  (name: string) => `${name}.`,
  () => "127.0.0.1",
  () => "[::1]:443",
);

const path: fc.Arbitrary<readonly [raw: string, normal: string]> = fc.constantFrom(
  ["/", "/"],
  ["/a", "/a"],
  ["/a/", "/a/"],
  ["/a/b", "/a/b"],
  ["/a/b/c", "/a/b/c"],
  ["/ab", "/ab"],
  ["/a/12", "/a/12"],
  ["/c/d", "/c/d"],
  ["/A", "/A"],
  ["/x/../a", "/a"],
  ["//a/./b", "/a/b"],
  ["/%61", "/a"],
  ["/a%2fb", "/a%2Fb"],
);

const query = fc.constantFrom("", "", "", "v=1", "v=2&v=1", "v=a%20b", "v=a+b", "w", "?v=1", "w=&v=1");

const headers: fc.Arbitrary<readonly (readonly [string, string])[]> = fc.constantFrom(
  [],
  [],
  [["x-env", "canary"]],
  [
    ["X-Env", "canary"],
    ["x-env", "blue"],
  ],
  [
    ["x-user", "ann"],
    ["x-env", "candy"],
  ],
  [["x-user", "Ann"]],
);

/** As clients do, by the host; or for another name; or without one. */
const sni = fc.oneof(
  { weight: 6, arbitrary: fc.constant(undefined) },
  { weight: 2, arbitrary: host },
  { weight: 1, arbitrary: fc.constant("") },
);

const place = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({ scheme: fc.constant("http" as const), port: fc.constantFrom(...HTTP_PORTS) }),
  },
  {
    weight: 9,
    arbitrary: fc.record({ scheme: fc.constant("https" as const), port: fc.constantFrom(...TLS_PORTS) }),
  },
  fc.constantFrom(
    { scheme: "http", port: 443 } as const,
    { scheme: "https", port: 80 } as const,
    { scheme: "http", port: UNUSED_PORT } as const,
  ),
);

export const wireRequest: fc.Arbitrary<WireRequest> = fc
  .record({
    place,
    aim: fc.option(fc.nat({ max: 30 }), { nil: undefined, freq: 4 }),
    host,
    dressed,
    sni,
    path,
    query,
    headers,
    method: fc.constantFrom("GET", "GET", "POST", "DELETE", "HEAD"),
    version: fc.constantFrom("h1", "h1", "h2"),
    grpc: fc.constantFrom(...Array<undefined>(5).fill(undefined), "/pkg.Shop/Buy", "/pkg.Shop/Sell"),
    clientCertificate: fc.boolean(),
  })
  .map(({ place: at, host: name, dressed: dress, sni: serverName, path: [raw, normal], grpc, ...more }) => ({
    ...at,
    aim: more.aim,
    authority: dress(name),
    ...(serverName === undefined ? {} : { sni: serverName }),
    method: grpc === undefined ? more.method : "POST",
    rawPath: grpc ?? raw,
    path: grpc ?? normal,
    query: grpc === undefined ? more.query : "",
    headers:
      grpc === undefined
        ? more.headers
        : [...more.headers, ["content-type", "application/grpc"], ["te", "trailers"]],
    version: grpc === undefined ? more.version : "h2",
    grpc: grpc !== undefined,
    clientCertificate: more.clientCertificate,
  }));

/**
 * Random names seldom meet: an aimed request goes to the port of a listener, for a name that it is
 * for.
 */
export function aimed(request: WireRequest, manifests: readonly Manifest[]): WireRequest {
  const listeners = manifests.flatMap((manifest) => {
    const { listeners: own = [] } = manifest["spec"] as { readonly listeners?: readonly AimedListener[] };
    return own;
  });
  const target = listeners[(request.aim ?? 0) % Math.max(1, listeners.length)];
  if (request.aim === undefined || target === undefined) return request;
  const { port, protocol, hostname } = target;
  return {
    ...request,
    port,
    scheme: protocol === "HTTP" || protocol === "TCP" ? "http" : "https",
    authority: hostname === undefined ? request.authority : hostname.replace("*", "x"),
  };
}

interface AimedListener {
  readonly port: number;
  readonly protocol: string;
  readonly hostname?: string;
}
