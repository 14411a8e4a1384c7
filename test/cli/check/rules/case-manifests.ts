/** The manifests that the cases of the rules are made of. */
import type { TestCertificate } from "../../../dataplanes/support/certificates.ts";

/** The time at which the cases are checked. */
export const NOW: Date = new Date("2026-06-01T00:00:00Z");

export const CLASS: string = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: mergeway}
spec: {controllerName: mergeway.dev/controller}
---`;

/** A Gateway with one listener and a route: a manifest without findings. */
export const GATEWAY: string = `${CLASS}
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: mergeway
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: home, namespace: infra}
spec: {parentRefs: [{name: shared}], rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]}
---`;

interface Entry {
  readonly name?: string;
  readonly port?: number;
  readonly hostname?: string;
  readonly tls?: string;
}

export function set(namespace: string, { name = "web", port = 80, hostname, tls }: Entry): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners:
  - name: main
    port: ${port}
    protocol: ${tls === undefined ? "HTTP" : "HTTPS"}
    ${hostname === undefined ? "" : `hostname: "${hostname}"`}
    ${tls === undefined ? "" : `tls: {certificateRefs: [${tls}]}`}
---${route(namespace, { name, parent: name })}`;
}

interface RouteOptions {
  readonly name?: string;
  readonly parent?: string;
  readonly rules?: string;
  /** Further fields of the spec. */
  readonly rest?: string;
}

export function route(
  namespace: string,
  { name = "web", parent = "web", rules = REDIRECT, rest = "" }: RouteOptions,
): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  parentRefs: [{kind: ListenerSet, name: ${parent}}]
  ${rest}
  rules: ${rules}
---`;
}

const REDIRECT = "[{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]";

export function secret(namespace: string, name: string, { cert, key }: TestCertificate): string {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  return `
apiVersion: v1
kind: Secret
metadata: {name: ${name}, namespace: ${namespace}}
type: kubernetes.io/tls
data: {tls.crt: ${base64(cert)}, tls.key: ${base64(key)}}
---`;
}

export function days(count: number): { readonly notBefore: Date; readonly notAfter: Date } {
  return { notBefore: new Date("2020-01-01"), notAfter: new Date(NOW.getTime() + count * 86_400_000) };
}

export const LONG: ReturnType<typeof days> = days(400);
