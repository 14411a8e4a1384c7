import type { Gateway, GatewayClass } from "./gateway.ts";
import type { GatewayParameters, GatewayParametersSpec } from "./gateway-parameters.ts";
import { type Key, keyFor } from "./key.ts";

/** The class's parameters are the defaults, the Gateway's own override them field by field (GEP-1867). */
export function effectiveParameters(
  gateway: Gateway,
  gatewayClass: GatewayClass | undefined,
  find: (key: Key) => GatewayParameters | undefined,
): GatewayParametersSpec {
  const classRef = gatewayClass?.spec.parametersRef;
  const ownRef = gateway.spec.infrastructure?.parametersRef;
  const defaults =
    classRef && find(keyFor("GatewayParameters", classRef.namespace ?? "", classRef.name))?.spec;
  const own =
    ownRef && find(keyFor("GatewayParameters", gateway.metadata.namespace ?? "", ownRef.name))?.spec;
  // Replicas and autoscaling exclude each other: the Gateway's choice of one overrules the class's choice of the other.
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
