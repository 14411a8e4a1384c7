/** The addresses of a Gateway, observed from its Services. */
import type { Service } from "../api/core.ts";
import type { Gateway, GatewayStatusAddress } from "../api/gateway.ts";
import { requestedAddresses, serviceName } from "./objects/services.ts";

export interface AddressFact {
  readonly addresses: readonly GatewayStatusAddress[];
  readonly problem?: { readonly reason: string; readonly message: string };
}

export function addressFact(
  gateway: Gateway,
  find: (name: string) => Service | undefined,
  isReady: (name: string) => boolean,
): AddressFact {
  const asked = requestedAddresses(gateway);
  const services = (asked.length === 0 ? [undefined] : asked).map((_address, index) =>
    find(serviceName(gateway, index)),
  );
  const addresses = services.flatMap((service) => (service === undefined ? [] : addressesOf(service)));
  const missing = asked.filter((address) => !addresses.some(({ value }) => value === address));
  if (missing.length > 0) {
    return {
      addresses,
      problem: { reason: "AddressNotUsable", message: `cannot be assigned: ${missing.join(", ")}` },
    };
  }
  if (addresses.length === 0) {
    return {
      addresses,
      problem: { reason: "AddressNotAssigned", message: "no address has been assigned yet" },
    };
  }
  if (!isReady(serviceName(gateway, 0))) {
    return {
      addresses,
      problem: { reason: "NoResources", message: "no pod of the data plane is ready yet" },
    };
  }
  return { addresses };
}

function addressesOf({ spec, status }: Service): readonly GatewayStatusAddress[] {
  if (spec?.type === "LoadBalancer") {
    return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }) => [
      ...(ip ? [{ type: "IPAddress", value: ip }] : []),
      ...(hostname ? [{ type: "Hostname", value: hostname }] : []),
    ]);
  }
  return spec?.clusterIP && spec.clusterIP !== "None" ? [{ type: "IPAddress", value: spec.clusterIP }] : [];
}
