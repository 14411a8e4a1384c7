/**
 * Listeners and stream routes with generated hostnames, TLS options and weights: what ends in
 * Envoy's listeners.
 */

import * as fc from "fast-check";
import { text, words } from "./odd-text.ts";
import type { Manifest } from "./unadmitted.ts";

export interface ListenerCase {
  readonly protocol: "HTTPS" | "TLS";
  readonly hostname: string;
  readonly routed: string;
  readonly options: Readonly<Record<string, string>>;
  readonly weights: readonly number[];
}

const NAMES = `a.example *.example *.a.example a a..b .a a. 1.2.3.4 A.Example xn--a a_b * *.* a.*.b *a.example **.example *. -a.example
a-.example a.example. ::1 a.example:443`;
const hostname = fc.oneof(
  fc.constantFrom(...words(NAMES), "", `${"a".repeat(300)}.example`, `*.${"a.".repeat(120)}a`),
  fc.nat(999).map((at) => `h${at}.example`),
  fc.nat(99).map((at) => `*.w${at}.example`),
  text(),
);
const option = fc.oneof(
  fc.constantFrom(
    "1.2",
    "1.3",
    "1.1",
    "h2",
    "http/1.1",
    "h2,http/1.1",
    "http/1.1, h2",
    "h2,h2",
    ",",
    "",
    "x",
  ),
  text(),
);
const weight = fc.oneof(
  fc.constantFrom(0, 1, 2, 100, 1_000_000, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, -1),
  fc.nat(),
);

export const listenerCases: fc.Arbitrary<ListenerCase> = fc.record({
  protocol: fc.constantFrom("HTTPS" as const, "TLS" as const),
  hostname,
  routed: hostname,
  options: fc.dictionary(
    fc.constantFrom("mergeway.dev/min-tls-version", "mergeway.dev/max-tls-version", "mergeway.dev/alpn"),
    option,
    { maxKeys: 2 },
  ),
  weights: fc.array(weight, { minLength: 1, maxLength: 5 }),
});

const GROUP = "gateway.networking.k8s.io";

/** A set with one listener on the TLS port, one of its own for TCP, and a route to each. */
export function listenerManifests(each: ListenerCase, at: number): readonly Manifest[] {
  const { protocol, hostname: name, routed, options, weights } = each;
  const named = { name: `case-${at}`, namespace: "apps" };
  const tls = {
    mode: protocol === "TLS" ? "Passthrough" : "Terminate",
    ...(protocol === "TLS" ? {} : { certificateRefs: [{ group: "", kind: "Secret", name: "pair" }] }),
    options,
  };
  const allowedRoutes = { namespaces: { from: "Same" } };
  const backendRefs = weights.map((weight) => ({
    group: "",
    kind: "Service",
    name: "svc",
    port: 80,
    weight,
  }));
  const parentRefs = [{ group: GROUP, kind: "ListenerSet", name: named.name }];
  const kind = protocol === "TLS" ? "TLSRoute" : "HTTPRoute";
  return [
    {
      apiVersion: `${GROUP}/v1`,
      kind: "ListenerSet",
      metadata: named,
      spec: {
        parentRef: { group: GROUP, kind: "Gateway", name: "edge" },
        listeners: [{ name: "own", port: 443, protocol, hostname: name, tls, allowedRoutes }],
      },
    },
    {
      apiVersion: `${GROUP}/v1`,
      kind,
      metadata: named,
      spec: { parentRefs, hostnames: [routed], rules: [{ backendRefs }] },
    },
  ];
}
