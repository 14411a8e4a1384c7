import type { Gateway } from "../../api/gateway.ts";
import type { TunnelProblem } from "../../dataplanes/tunnel/cloudflare/api-failure.ts";
import { tunnelFact } from "../../dataplanes/tunnel/tunnel-fact.ts";
import type { AddressFact } from "../../infra/addresses.ts";
import { requestedAddresses } from "../../infra/objects/services.ts";

export interface KnownTunnel {
  readonly address: string | undefined;
  readonly problem: TunnelProblem | undefined;
}

/**
 * What a Gateway's owner reads of its tunnel. An address that is in the status stays there until
 * another is known: a controller that has just begun to lead must not take records away.
 */
export function tunnelStatus(
  gateway: Gateway,
  { address: found, problem }: KnownTunnel,
  isConnected: boolean,
): AddressFact {
  const address = found ?? addressInStatus(gateway);
  const fact = tunnelFact({
    connections: isConnected ? 1 : 0,
    ...(address === undefined ? {} : { address }),
    ...(problem === undefined ? {} : { problem }),
  });
  if (fact.problem !== undefined) return fact;
  const refused = requestedAddresses(gateway).filter((asked) => asked !== address);
  if (refused.length > 0) {
    const message = `cannot be assigned: ${refused.join(", ")}; a tunnel has an address of its own`;
    return { ...fact, problem: { reason: "AddressNotUsable", message } };
  }
  if (isConnected && address !== undefined) return fact;
  const message =
    address === undefined ? "the tunnel is being set up" : "no connector of the tunnel is connected";
  return { ...fact, problem: { reason: "Pending", message } };
}

export function addressInStatus(gateway: Gateway): string | undefined {
  return gateway.status?.addresses?.find(
    ({ type, value }) => type === "Hostname" && value.endsWith(".cfargotunnel.com"),
  )?.value;
}
