import type { BackendPolicy } from "./backend-policy.ts";
import type { ClientPolicy } from "./client-policy.ts";
import type { ConfigMap, EndpointSlice, Namespace, Secret, Service } from "./core.ts";
import type { Gateway, GatewayClass, ListenerSet } from "./gateway.ts";
import type { GatewayParameters } from "./gateway-parameters.ts";
import type { BackendTlsPolicy, ReferenceGrant } from "./policies.ts";
import type { Route } from "./routes.ts";
import type { TenantPolicy } from "./tenant-policy.ts";
import type { TrafficPolicy } from "./traffic-policy.ts";

/** Everything Mergeway reads, as an API server would hand it out: valid and defaulted. */
export type Resource =
  | GatewayClass
  | Gateway
  | ListenerSet
  | Route
  | ReferenceGrant
  | BackendTlsPolicy
  | GatewayParameters
  | TrafficPolicy
  | ClientPolicy
  | BackendPolicy
  | TenantPolicy
  | Namespace
  | Service
  | EndpointSlice
  | Secret
  | ConfigMap;

export type Kind = Resource["kind"];
export type RouteKind = Route["kind"];

export const ROUTE_KINDS: readonly RouteKind[] = [
  "HTTPRoute",
  "GRPCRoute",
  "TLSRoute",
  "TCPRoute",
  "UDPRoute",
];

export const GATEWAY_GROUP = "gateway.networking.k8s.io";
export const EXPERIMENTAL_GROUP = "gateway.networking.x-k8s.io";
export const MERGEWAY_GROUP = "mergeway.dev";

/** The API group of each kind; kinds are unique across the groups Mergeway reads. */
export const GROUP_OF_KIND: Readonly<Record<Kind, string>> = {
  GatewayClass: GATEWAY_GROUP,
  Gateway: GATEWAY_GROUP,
  ListenerSet: GATEWAY_GROUP,
  XListenerSet: EXPERIMENTAL_GROUP,
  HTTPRoute: GATEWAY_GROUP,
  GRPCRoute: GATEWAY_GROUP,
  TLSRoute: GATEWAY_GROUP,
  TCPRoute: GATEWAY_GROUP,
  UDPRoute: GATEWAY_GROUP,
  ReferenceGrant: GATEWAY_GROUP,
  BackendTLSPolicy: GATEWAY_GROUP,
  GatewayParameters: MERGEWAY_GROUP,
  TrafficPolicy: MERGEWAY_GROUP,
  ClientPolicy: MERGEWAY_GROUP,
  BackendPolicy: MERGEWAY_GROUP,
  TenantPolicy: MERGEWAY_GROUP,
  Namespace: "",
  Service: "",
  EndpointSlice: "discovery.k8s.io",
  Secret: "",
  ConfigMap: "",
};
