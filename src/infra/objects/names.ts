/**
 * Names and labels of what is made for a Gateway (GEP-1762): `<gateway>-<class>`, in the Gateway's
 * namespace, labelled with both names. Names that would be longer than Kubernetes allows are cut
 * and carry a digest, so that two long names never meet.
 */

import type { Gateway } from "../../api/gateway.ts";
import { digest } from "../../digest/digest.ts";

export const GATEWAY_NAME_LABEL = "gateway.networking.k8s.io/gateway-name";
const GATEWAY_CLASS_LABEL = "gateway.networking.k8s.io/gateway-class-name";

/**
 * Label values are too short for the longest Gateway names, so the whole name stands in an
 * annotation.
 */
export const GATEWAY_NAME_ANNOTATION = "mergeway.dev/gateway-name";
export const MANAGED_BY = "mergeway";

/**
 * Ports on which pods serve something of their own: probes, metrics. Listeners share the pod's
 * addresses, and a Service sends each listener's port to the same port of the pod: a listener with
 * one of these would show it to the world.
 */
export const RESERVED_PORTS: { readonly from: number; readonly to: number } = { from: 19900, to: 19999 };

/** Service names and label values are DNS labels. */
const MAX_LABEL = 63;

/**
 * A Gateway that shares its plain name with another one, and has therefore been given a name of its
 * own (gateway-names.ts).
 */
export interface NamedGateway extends Gateway {
  readonly infrastructureName?: string;
}

export function infrastructureName(gateway: NamedGateway): string {
  return gateway.infrastructureName ?? plainName(gateway);
}

export function plainName({ metadata, spec }: Gateway): string {
  return bounded(`${metadata.name}-${spec.gatewayClassName}`.replaceAll(".", "-"));
}

export function infrastructureLabels(gateway: Gateway): Readonly<Record<string, string>> {
  return {
    ...gateway.spec.infrastructure?.labels,
    [GATEWAY_NAME_LABEL]: bounded(gateway.metadata.name),
    [GATEWAY_CLASS_LABEL]: bounded(gateway.spec.gatewayClassName),
    "app.kubernetes.io/name": "mergeway-gateway",
    "app.kubernetes.io/managed-by": MANAGED_BY,
  };
}

/** What a Deployment selects by; must never change for a Gateway, whatever its labels say. */
export function selectorLabels(gateway: Gateway): Readonly<Record<string, string>> {
  return {
    [GATEWAY_NAME_LABEL]: bounded(gateway.metadata.name),
    "app.kubernetes.io/name": "mergeway-gateway",
  };
}

export function bounded(name: string): string {
  if (name.length <= MAX_LABEL) return name;
  return `${name.slice(0, MAX_LABEL - 9).replace(/[^a-z0-9]+$/, "")}-${digest(name, "hex", 8)}`;
}
