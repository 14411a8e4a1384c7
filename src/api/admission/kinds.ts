import backendTlsPolicyExperimental from "../schemas/experimental/backendtlspolicy.json" with {
  type: "json",
};
import gatewayExperimental from "../schemas/experimental/gateway.json" with { type: "json" };
import gatewayClassExperimental from "../schemas/experimental/gatewayclass.json" with { type: "json" };
import grpcRouteExperimental from "../schemas/experimental/grpcroute.json" with { type: "json" };
import httpRouteExperimental from "../schemas/experimental/httproute.json" with { type: "json" };
import listenerSetExperimental from "../schemas/experimental/listenerset.json" with { type: "json" };
import referenceGrantExperimental from "../schemas/experimental/referencegrant.json" with { type: "json" };
import tcpRouteExperimental from "../schemas/experimental/tcproute.json" with { type: "json" };
import tlsRouteExperimental from "../schemas/experimental/tlsroute.json" with { type: "json" };
import udpRouteExperimental from "../schemas/experimental/udproute.json" with { type: "json" };
import xListenerSetExperimental from "../schemas/experimental/xlistenerset.json" with { type: "json" };
import backendPolicy from "../schemas/mergeway/backendpolicy.json" with { type: "json" };
import clientPolicy from "../schemas/mergeway/clientpolicy.json" with { type: "json" };
import gatewayParameters from "../schemas/mergeway/gatewayparameters.json" with { type: "json" };
import tenantPolicy from "../schemas/mergeway/tenantpolicy.json" with { type: "json" };
import trafficPolicy from "../schemas/mergeway/trafficpolicy.json" with { type: "json" };
import backendTlsPolicyStandard from "../schemas/standard/backendtlspolicy.json" with { type: "json" };
import gatewayStandard from "../schemas/standard/gateway.json" with { type: "json" };
import gatewayClassStandard from "../schemas/standard/gatewayclass.json" with { type: "json" };
import grpcRouteStandard from "../schemas/standard/grpcroute.json" with { type: "json" };
import httpRouteStandard from "../schemas/standard/httproute.json" with { type: "json" };
import listenerSetStandard from "../schemas/standard/listenerset.json" with { type: "json" };
import referenceGrantStandard from "../schemas/standard/referencegrant.json" with { type: "json" };
import tcpRouteStandard from "../schemas/standard/tcproute.json" with { type: "json" };
import tlsRouteStandard from "../schemas/standard/tlsroute.json" with { type: "json" };
import udpRouteStandard from "../schemas/standard/udproute.json" with { type: "json" };
import {
  type Finish,
  finishConfigMap,
  finishEndpointSlice,
  finishNamespace,
  finishSecret,
  finishService,
} from "./core-checks.ts";
import { CONFIG_MAP, ENDPOINT_SLICE, NAMESPACE, SECRET, SERVICE } from "./core-schemas.ts";
import type { KindDefinition, Schema } from "./schema/schema.ts";

/**
 * The channel of the Gateway API whose schemas apply; the experimental one has every field of the
 * standard one.
 */
export type Channel = "standard" | "experimental";

const DEFINITIONS: Readonly<Record<Channel, readonly unknown[]>> = {
  experimental: [
    backendTlsPolicyExperimental,
    gatewayExperimental,
    gatewayClassExperimental,
    grpcRouteExperimental,
    httpRouteExperimental,
    listenerSetExperimental,
    referenceGrantExperimental,
    tcpRouteExperimental,
    tlsRouteExperimental,
    udpRouteExperimental,
    xListenerSetExperimental,
  ],
  standard: [
    backendTlsPolicyStandard,
    gatewayStandard,
    gatewayClassStandard,
    grpcRouteStandard,
    httpRouteStandard,
    listenerSetStandard,
    referenceGrantStandard,
    tcpRouteStandard,
    tlsRouteStandard,
    udpRouteStandard,
  ],
};

/** Our own kinds, whatever channel of the Gateway API is installed. */
const OWN_DEFINITIONS: readonly unknown[] = [
  gatewayParameters,
  trafficPolicy,
  clientPolicy,
  backendPolicy,
  tenantPolicy,
];

/** One kind that Mergeway reads: its versions, and what its objects must look like. */
export interface KnownKind {
  readonly group: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly nameRule: "subdomain" | "label";
  /** The version that objects of every version are handed out in. */
  readonly canonical: string;
  readonly served: readonly KnownVersion[];
  /** For Kubernetes' own kinds: checks and defaults beyond the schema. */
  readonly finish?: Finish;
}

export interface KnownVersion {
  readonly name: string;
  readonly deprecated: boolean;
  readonly schema: Schema;
}

export function knownKinds(channel: Channel): readonly KnownKind[] {
  return [
    ...[...DEFINITIONS[channel], ...OWN_DEFINITIONS].map((definition) =>
      fromDefinition(definition as KindDefinition),
    ),
    ...CORE_KINDS,
  ];
}

function fromDefinition({ group, kind, scope, versions }: KindDefinition): KnownKind {
  const schemaOf = (name: string): Schema => {
    const version = versions.find((candidate) => candidate.name === name);
    if (version?.schema !== undefined) return version.schema;
    if (version?.sameAs === undefined) throw new Error(`no schema for ${kind} ${name}`);
    return schemaOf(version.sameAs);
  };
  const served = versions
    .filter((version) => version.served)
    .map(({ name, deprecated }) => ({ name, deprecated, schema: schemaOf(name) }));
  const stored = versions.find((version) => version.storage)?.name ?? "";
  return {
    group,
    kind,
    namespaced: scope === "Namespaced",
    nameRule: "subdomain",
    canonical: served.some((version) => version.name === "v1") ? "v1" : stored,
    served,
  };
}

function coreKind(group: string, kind: string, schema: Schema, finish: Finish): KnownKind {
  return {
    group,
    kind,
    namespaced: kind !== "Namespace",
    nameRule: kind === "Namespace" || kind === "Service" ? "label" : "subdomain",
    canonical: "v1",
    served: [{ name: "v1", deprecated: false, schema }],
    finish,
  };
}

const CORE_KINDS: readonly KnownKind[] = [
  coreKind("", "Namespace", NAMESPACE, finishNamespace),
  coreKind("", "Service", SERVICE, finishService),
  coreKind("discovery.k8s.io", "EndpointSlice", ENDPOINT_SLICE, finishEndpointSlice),
  coreKind("", "Secret", SECRET, finishSecret),
  coreKind("", "ConfigMap", CONFIG_MAP, finishConfigMap),
];
