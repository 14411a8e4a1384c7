import type { BackendPolicy } from "../../api/backend-policy.ts";
import type { ClientPolicy } from "../../api/client-policy.ts";
import type { ConfigMap, EndpointSlice, Namespace, Secret, Service } from "../../api/core.ts";
import type { Gateway, GatewayClass, GatewayStatusAddress, ListenerSet } from "../../api/gateway.ts";
import type { GatewayParameters } from "../../api/gateway-parameters.ts";
import type { Key } from "../../api/key.ts";
import { kindOf } from "../../api/key.ts";
import type { BackendTlsPolicy, ReferenceGrant } from "../../api/policies.ts";
import type { Kind, Resource } from "../../api/resource.ts";
import type { Route } from "../../api/routes.ts";
import type { TenantPolicy } from "../../api/tenant-policy.ts";
import type { TrafficPolicy } from "../../api/traffic-policy.ts";
import type { Input } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { ItemReport } from "../../plan/item-report.ts";
import type { Failure } from "./verdict.ts";

/** What is known of the infrastructure that serves a Gateway: its addresses, or why it has none. */
export interface InfrastructureFact {
  readonly addresses: readonly GatewayStatusAddress[];
  readonly problem?: Failure;
}

/** How the replicas that serve a Gateway stand to its plan; absent while none lags. */
export interface ReplicaFact {
  readonly replicas: number;
  /** Names of those that do not serve the newest plan, and should by now. */
  readonly lagging: readonly string[];
}

/** Whether claims at a Gateway are written where admission reads them. */
export interface ClaimFact {
  /** Why they are not. */
  readonly problem?: string;
}

/** Everything that enters the engine, one collection a kind. */
export interface Inputs {
  readonly classes: Input<GatewayClass>;
  readonly gateways: Input<Gateway>;
  readonly sets: Input<ListenerSet>;
  readonly routes: Input<Route>;
  readonly grants: Input<ReferenceGrant>;
  readonly policies: Input<BackendTlsPolicy>;
  readonly trafficPolicies: Input<TrafficPolicy>;
  readonly clientPolicies: Input<ClientPolicy>;
  readonly backendPolicies: Input<BackendPolicy>;
  readonly tenantPolicies: Input<TenantPolicy>;
  readonly namespaces: Input<Namespace>;
  readonly services: Input<Service>;
  readonly slices: Input<EndpointSlice>;
  readonly secrets: Input<Secret>;
  readonly configMaps: Input<ConfigMap>;
  readonly reports: Input<ItemReport>;
  readonly infrastructure: Input<InfrastructureFact>;
  readonly replicas: Input<ReplicaFact>;
  readonly claims: Input<ClaimFact>;
  readonly parameters: Input<GatewayParameters>;
}

export function makeInputs(graph: Graph): Inputs {
  return {
    classes: graph.input("classes"),
    gateways: graph.input("gateways"),
    sets: graph.input("sets"),
    routes: graph.input("routes"),
    grants: graph.input("grants"),
    policies: graph.input("policies"),
    trafficPolicies: graph.input("trafficPolicies"),
    clientPolicies: graph.input("clientPolicies"),
    backendPolicies: graph.input("backendPolicies"),
    tenantPolicies: graph.input("tenantPolicies"),
    namespaces: graph.input("namespaces"),
    services: graph.input("services"),
    slices: graph.input("slices"),
    secrets: graph.input("secrets"),
    configMaps: graph.input("configMaps"),
    reports: graph.input("reports"),
    infrastructure: graph.input("infrastructure"),
    replicas: graph.input("replicas"),
    claims: graph.input("claims"),
    parameters: graph.input("parameters"),
  };
}

const COLLECTION_OF_KIND: Readonly<Record<Kind, keyof Inputs>> = {
  GatewayClass: "classes",
  Gateway: "gateways",
  ListenerSet: "sets",
  XListenerSet: "sets",
  HTTPRoute: "routes",
  GRPCRoute: "routes",
  TLSRoute: "routes",
  TCPRoute: "routes",
  UDPRoute: "routes",
  ReferenceGrant: "grants",
  BackendTLSPolicy: "policies",
  GatewayParameters: "parameters",
  TrafficPolicy: "trafficPolicies",
  ClientPolicy: "clientPolicies",
  BackendPolicy: "backendPolicies",
  TenantPolicy: "tenantPolicies",
  Namespace: "namespaces",
  Service: "services",
  EndpointSlice: "slices",
  Secret: "secrets",
  ConfigMap: "configMaps",
};

export function enter(inputs: Inputs, key: Key, resource: Resource | undefined): void {
  const collection: unknown = inputs[COLLECTION_OF_KIND[kindOf(key)]];
  (collection as Input<Resource>).set(key, resource);
}
