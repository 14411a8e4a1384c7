/** Features of the conformance suite (v1.7.0) that are the controller's own, whatever data plane serves: attachment, statuses, infrastructure. */
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

/** What a GatewayClass claims in its status, in the order that the API asks for. */
export function supportedFeatures(dataPlane: ReadonlySet<string>): readonly string[] {
  const own = dataPlane.has("GRPCRoute")
    ? [...CONTROLLER_FEATURES, "GRPCRouteNamedRouteRule"]
    : CONTROLLER_FEATURES;
  return [...new Set([...own, ...dataPlane])].sort();
}
