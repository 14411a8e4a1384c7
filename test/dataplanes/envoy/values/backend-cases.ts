/**
 * Services with generated endpoints and policies: what ends in Envoy's clusters and endpoint sets.
 */

import * as fc from "fast-check";
import { text, words } from "./odd-text.ts";
import type { Manifest } from "./unadmitted.ts";

export interface BackendCase {
  readonly endpoints: readonly string[];
  readonly port: number;
  readonly validation: Manifest;
}

const ADDRESSES = `127.0.0.1 0.0.0.0 255.255.255.255 ::1 :: fe80::1 fe80::1%eth0 fe80::1%1 ::ffff:1.2.3.4 2001:db8::/32 1.2.3 1.2.3.4.5
01.2.3.4 1.2.3.4:80 [::1] localhost a.example 0x7f.1 1 1:2:3:4:5:6:7:8 1::2::3`;
const name = fc.oneof(
  fc.constantFrom(
    ...words("a.example *.example a a..b 1.2.3.4 A.Example xn--a a_b ::1"),
    "",
    `${"a".repeat(300)}.example`,
  ),
  text(),
);
const uri = fc.oneof(fc.constantFrom(...words("spiffe://a/b https://a.example urn:x :// %")), text());

export const backendCases: fc.Arbitrary<BackendCase> = fc.record({
  endpoints: fc.array(fc.oneof(fc.constantFrom(...words(ADDRESSES)), text()), { minLength: 1, maxLength: 3 }),
  port: fc.oneof(fc.constantFrom(0, 1, 80, 65_535, 65_536, -1), fc.nat(70_000)),
  validation: fc
    .record({
      hostname: name,
      subjectAltNames: fc.array(
        fc.oneof(
          name.map((hostname) => ({ type: "Hostname", hostname })),
          uri.map((value) => ({ type: "URI", uri: value })),
        ),
        { maxLength: 3 },
      ),
    })
    .map((validation) => ({ ...validation, wellKnownCACertificates: "System" })),
});

/** The objects of one case, and a route to them. */
export function backendManifests(
  { endpoints, port, validation }: BackendCase,
  at: number,
): readonly Manifest[] {
  const named = { name: `case-${at}`, namespace: "apps" };
  return [
    { apiVersion: "v1", kind: "Service", metadata: named, spec: { ports: [{ port: 443, protocol: "TCP" }] } },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { ...named, labels: { "kubernetes.io/service-name": named.name } },
      addressType: "IPv4",
      ports: [{ port, protocol: "TCP" }],
      endpoints: [{ addresses: endpoints }],
    },
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "BackendTLSPolicy",
      metadata: named,
      spec: { targetRefs: [{ group: "", kind: "Service", name: named.name }], validation },
    },
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "HTTPRoute",
      metadata: named,
      spec: {
        parentRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "edge" }],
        hostnames: [`case-${at}.example`],
        rules: [
          {
            matches: [{ path: { type: "PathPrefix", value: "/" } }],
            backendRefs: [{ group: "", kind: "Service", name: named.name, port: 443, weight: 1 }],
          },
        ],
      },
    },
  ];
}
