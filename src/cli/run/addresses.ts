import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import type { GatewayStatusAddress } from "../../api/gateway.ts";
import { CannotRun } from "../foundation/command.ts";

const EVERYWHERE = new Set(["0.0.0.0", "::"]);
/** As many as a Gateway's status holds. */
const MAX_ADDRESSES = 16;

/** What clients can use to reach a process that listens on this address. */
export function reachableAddresses(bound: string): readonly GatewayStatusAddress[] {
  if (!EVERYWHERE.has(bound)) return [{ type: "IPAddress", value: bound }];
  const found = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family, scopeid }) => !internal && !scopeid && (family === "IPv4" || bound === "::"))
    .map(({ address }) => address);
  const values = found.length === 0 ? ["127.0.0.1"] : found.slice(0, MAX_ADDRESSES);
  return values.map((value) => ({ type: "IPAddress", value }));
}

export interface SocketAddress {
  readonly address: string;
  readonly port: number;
}

/** `127.0.0.1:9909`, `[::1]:9909`. */
export function parseSocketAddress(text: string, flag: string): SocketAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)|localhost):(\d{1,5})$/.exec(text);
  const address = match?.[1] ?? match?.[2] ?? "127.0.0.1";
  const port = Number(match?.[3]);
  if (match === null || isIP(address) === 0 || port > 65535) {
    throw new CannotRun(
      `${flag} cannot be ${JSON.stringify(text)}`,
      "Write an address and a port, such as 127.0.0.1:9909 or [::1]:9909.",
    );
  }
  return { address, port };
}
