/**
 * The manifests that both data planes serve: one Gateway of the platform, and a namespace with a
 * ListenerSet, a route and a Service for each backend. A listener of the Gateway answers by itself,
 * so that a run knows when it is served.
 */

import { readFileSync } from "node:fs";
import { stringify } from "yaml";
import type { Backend, Certificates } from "./suite.ts";

export const READY_HOSTNAME = "ready.suites.test";

export interface Ports {
  readonly http: number;
  readonly https: number;
}

/** A backend and the gateway's ports that lead to it. */
export interface Served {
  readonly backend: Backend;
  readonly ports: Ports;
}

type Manifest = Readonly<Record<string, unknown>>;

export function manifests(served: readonly Served[], ports: Ports, certificates: Certificates): string {
  const all = [...platform(ports, certificates), ...served.flatMap((each) => team(each, certificates))];
  return all.map((manifest) => stringify(manifest)).join("---\n");
}

function platform(ports: Ports, certificates: Certificates): readonly Manifest[] {
  return [
    namespace("platform"),
    {
      ...gatewayApi("GatewayClass"),
      metadata: { name: "mergeway" },
      spec: { controllerName: "mergeway.dev/controller" },
    },
    {
      ...gatewayApi("Gateway"),
      metadata: { name: "shared", namespace: "platform" },
      spec: {
        gatewayClassName: "mergeway",
        allowedListeners: { namespaces: { from: "All" } },
        listeners: listeners(ports, READY_HOSTNAME),
      },
    },
    {
      ...gatewayApi("HTTPRoute"),
      metadata: { name: "ready", namespace: "platform" },
      spec: {
        parentRefs: [{ name: "shared" }],
        rules: [{ filters: [{ type: "RequestRedirect", requestRedirect: { statusCode: 302 } }] }],
      },
    },
    secret("platform", certificates),
  ];
}

function team({ backend, ports }: Served, certificates: Certificates): readonly Manifest[] {
  const own = { name: backend.name, namespace: `team-${backend.name}` };
  return [
    namespace(own.namespace),
    {
      ...gatewayApi("ListenerSet"),
      metadata: own,
      spec: {
        parentRef: { name: "shared", namespace: "platform" },
        listeners: listeners(ports, backend.hostname),
      },
    },
    {
      ...gatewayApi(backend.protocol === "grpc" ? "GRPCRoute" : "HTTPRoute"),
      metadata: own,
      spec: {
        parentRefs: [{ kind: "ListenerSet", name: own.name }],
        rules: [{ backendRefs: [{ name: own.name, port: 80 }] }],
      },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: own,
      spec: {
        ports: [{ port: 80, ...(backend.protocol === "http" ? {} : { appProtocol: "kubernetes.io/h2c" }) }],
      },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { ...own, labels: { "kubernetes.io/service-name": own.name } },
      addressType: "IPv4",
      endpoints: [{ addresses: ["127.0.0.1"] }],
      ports: [{ port: backend.port }],
    },
    secret(own.namespace, certificates),
  ];
}

function listeners(ports: Ports, hostname: string | undefined): readonly Manifest[] {
  const name = hostname === undefined ? {} : { hostname };
  return [
    { name: "http", port: ports.http, protocol: "HTTP", ...name },
    {
      name: "https",
      port: ports.https,
      protocol: "HTTPS",
      ...name,
      tls: { certificateRefs: [{ name: "certificate" }] },
    },
  ];
}

function namespace(name: string): Manifest {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name } };
}

function secret(namespaceName: string, { cert, key }: Certificates): Manifest {
  const encoded = (file: string): string => readFileSync(file).toString("base64");
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "certificate", namespace: namespaceName },
    type: "kubernetes.io/tls",
    data: { "tls.crt": encoded(cert), "tls.key": encoded(key) },
  };
}

function gatewayApi(kind: string): Manifest {
  return { apiVersion: "gateway.networking.k8s.io/v1", kind };
}
