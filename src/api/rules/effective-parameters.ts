import type { Gateway, GatewayClass } from "../gateway.ts";
import type { GatewayParameters, GatewayParametersSpec, TunnelParameters } from "../gateway-parameters.ts";
import { type Key, keyFor } from "../key.ts";

/**
 * The class's parameters are the defaults, the Gateway's own override them field by field
 * (GEP-1867).
 */
export function effectiveParameters(
  gateway: Gateway,
  gatewayClass: GatewayClass | undefined,
  find: (key: Key) => GatewayParameters | undefined,
): GatewayParametersSpec {
  const [own, defaults] = parametersOf(gateway, gatewayClass, find).map((each) => each?.spec);
  // Replicas and autoscaling exclude each other: the Gateway's choice of one overrules the class's
  // choice of the other.
  const { autoscaling, replicas, ...others } = defaults ?? {};
  const scaling =
    own?.replicas !== undefined || own?.autoscaling !== undefined
      ? {}
      : {
          ...(autoscaling === undefined ? {} : { autoscaling }),
          ...(replicas === undefined ? {} : { replicas }),
        };
  return { ...others, ...scaling, ...own };
}

/**
 * The settings of a Gateway's tunnel, with the namespace of the parameters that have them: their
 * Secrets are there.
 */
export function effectiveTunnel(
  gateway: Gateway,
  gatewayClass: GatewayClass | undefined,
  find: (key: Key) => GatewayParameters | undefined,
): { readonly tunnel: TunnelParameters; readonly namespace: string } | undefined {
  const holder = parametersOf(gateway, gatewayClass, find).find((each) => each?.spec?.tunnel !== undefined);
  if (holder?.spec?.tunnel === undefined) return undefined;
  return { tunnel: holder.spec.tunnel, namespace: holder.metadata.namespace ?? "" };
}

/** The Gateway's own, then the class's. */
function parametersOf(
  gateway: Gateway,
  gatewayClass: GatewayClass | undefined,
  find: (key: Key) => GatewayParameters | undefined,
): readonly (GatewayParameters | undefined)[] {
  const own = gateway.spec.infrastructure?.parametersRef;
  const defaults = gatewayClass?.spec.parametersRef;
  return [
    own && find(keyFor("GatewayParameters", gateway.metadata.namespace ?? "", own.name)),
    defaults && find(keyFor("GatewayParameters", defaults.namespace ?? "", defaults.name)),
  ];
}
