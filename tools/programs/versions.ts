/**
 * Everything the bed is built from. A changed version is built into a new cache folder beside the
 * old one.
 */
export const versions = {
  kubernetes: "v1.36.3",
  etcd: "v3.6.5",
  containerd: "v2.4.2",
  coredns: "v1.15.0",
  helm: "v3.22.0",
  envoy: "1.40.0",
  /** Versions 0.22 and 0.23 ask for modules that no proxy serves. */
  externalDns: "v0.21.0",
  certManager: "v1.21.2",
  /** An authority that speaks ACME, for tests. */
  pebble: "v2.10.1",
  /** Open Policy Agent as an authorizer; the newest that Go's proxy serves here. */
  opa: "v1.4.2-envoy",
  /** Its module has numbers of its own: this is Prometheus 3.15. */
  prometheus: "v0.315.0",
  gatewayApi: "v1.7.0",
  /** The last minor version whose module still ships the XListenerSet CRD is 1.4. */
  xListenerSet: "v1.4.1",
  /** The suite asks for v0.2.0 of this module, which no proxy serves. */
  conformanceImages: "v0.1.0",
  go: "go1.26.8",
  /** The suite's module refuses older compilers; everything else stays on `go`. */
  goForGatewayApi: "go1.27.1",
} as const;
