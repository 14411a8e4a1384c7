/**
 * One Service for each address that a Gateway asks for, one where it asks for none: a Service has
 * one address.
 */
import type { Gateway } from "../../api/gateway.ts";
import { type InfrastructureRequest, type Manifest, metadata } from "./manifest.ts";
import { infrastructureName, selectorLabels } from "./names.ts";

export function services(request: InfrastructureRequest): readonly Manifest[] {
  if (request.ports.length === 0) return [];
  const asked = requestedAddresses(request.gateway);
  const addresses: readonly (string | undefined)[] = asked.length === 0 ? [undefined] : asked;
  return addresses.map((address, index) => service(request, address, index));
}

/**
 * Values of spec.addresses; an entry without a value asks for any address, which a Service has
 * anyway.
 */
export function requestedAddresses(gateway: Gateway): readonly string[] {
  return (gateway.spec.addresses ?? []).flatMap(({ value }) => (value ? [value] : []));
}

export function serviceName(gateway: Gateway, index: number): string {
  return `${infrastructureName(gateway)}${index === 0 ? "" : `-${index + 1}`}`;
}

/**
 * Says which pods are ready, and nothing else. Not the name of a Service with an address: its type
 * could not be changed.
 */
export function headlessService(request: InfrastructureRequest): Manifest {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadata(request, { suffix: HEADLESS }),
    spec: { type: "ClusterIP", clusterIP: "None", selector: selectorLabels(request.gateway) },
  };
}

export function headlessServiceName(gateway: Gateway): string {
  return `${infrastructureName(gateway)}${HEADLESS}`;
}

const HEADLESS = "-pods";

function service(request: InfrastructureRequest, address: string | undefined, index: number): Manifest {
  const { gateway, parameters, ports } = request;
  const settings = parameters.service ?? {};
  const type = settings.type ?? "LoadBalancer";
  const isIp = address !== undefined && /^[0-9a-f.:]+$/i.test(address);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadata(request, {
      suffix: index === 0 ? "" : `-${index + 1}`,
      ...(settings.annotations === undefined ? {} : { annotations: settings.annotations }),
    }),
    spec: {
      type,
      selector: selectorLabels(gateway),
      ports: ports.map(({ transport, port }) => ({
        name: `${transport}-${port}`,
        port,
        targetPort: port,
        protocol: transport.toUpperCase(),
      })),
      ...(type === "LoadBalancer" && isIp ? { loadBalancerIP: address } : {}),
      ...(settings.loadBalancerClass === undefined ? {} : { loadBalancerClass: settings.loadBalancerClass }),
      ...(settings.externalTrafficPolicy === undefined || type === "ClusterIP"
        ? {}
        : { externalTrafficPolicy: settings.externalTrafficPolicy }),
    },
  };
}
