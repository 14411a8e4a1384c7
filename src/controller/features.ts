import type { GatewayClass } from "../api/gateway.ts";
import type { DataPlaneName, GatewayParameters } from "../api/gateway-parameters.ts";
import { type Key, keyFor } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";

/**
 * Features of the conformance suite (v1.7.0) that are the controller's own, whatever data plane
 * serves: attachment, statuses, infrastructure.
 */
const CONTROLLER_FEATURES: readonly string[] = [
  "Gateway",
  "GatewayAddressEmpty",
  "GatewayInfrastructure",
  "GatewayPort8080",
  "GatewayRouteHostnameIntersectionPrecedence",
  "GatewayStaticAddresses",
  "HTTPRouteNamedRouteRule",
  "HTTPRouteParentRefPort",
  "ListenerSet",
  "ReferenceGrant",
];

/** A tunnel has an address of its own, and no ports. */
const NOT_BEHIND_TUNNELS: readonly string[] = [
  "GatewayAddressEmpty",
  "GatewayPort8080",
  "GatewayStaticAddresses",
];

/**
 * What a GatewayClass claims in its status, in the order that the API asks for: of the data plane
 * that its Gateways have unless they choose another.
 */
export function supportedFeatures(served: ReadonlySet<string>, dataPlane?: DataPlaneName): readonly string[] {
  const own = [...CONTROLLER_FEATURES, ...(served.has("GRPCRoute") ? ["GRPCRouteNamedRouteRule"] : [])];
  const kept = dataPlane === "tunnel" ? own.filter((name) => !NOT_BEHIND_TUNNELS.includes(name)) : own;
  return [...new Set([...kept, ...served])].sort();
}

/** The data plane that the parameters of a class choose. */
export function dataPlaneOfClass(
  name: string,
  find: (key: Key) => Resource | undefined,
): DataPlaneName | undefined {
  const { parametersRef } = (find(keyFor("GatewayClass", "", name)) as GatewayClass | undefined)?.spec ?? {};
  if (parametersRef === undefined) return undefined;
  const key = keyFor("GatewayParameters", parametersRef.namespace ?? "", parametersRef.name);
  return (find(key) as GatewayParameters | undefined)?.spec?.dataPlane;
}
