import { GROUP_OF_KIND, type Kind } from "../api/resource.ts";

/** What an API server calls the collection of a kind. */
export const PLURAL_OF_KIND: Readonly<Record<Kind, string>> = {
  GatewayClass: "gatewayclasses",
  Gateway: "gateways",
  ListenerSet: "listenersets",
  XListenerSet: "xlistenersets",
  HTTPRoute: "httproutes",
  GRPCRoute: "grpcroutes",
  TLSRoute: "tlsroutes",
  TCPRoute: "tcproutes",
  UDPRoute: "udproutes",
  ReferenceGrant: "referencegrants",
  BackendTLSPolicy: "backendtlspolicies",
  GatewayParameters: "gatewayparameters",
  TrafficPolicy: "trafficpolicies",
  ClientPolicy: "clientpolicies",
  BackendPolicy: "backendpolicies",
  TenantPolicy: "tenantpolicies",
  Namespace: "namespaces",
  Service: "services",
  EndpointSlice: "endpointslices",
  Secret: "secrets",
  ConfigMap: "configmaps",
};

export function isClusterScoped(kind: Kind): boolean {
  return kind === "GatewayClass" || kind === "Namespace";
}

export function groupVersion(kind: Kind, version: string): string {
  const group = GROUP_OF_KIND[kind];
  return group === "" ? version : `${group}/${version}`;
}
