import { parseSocketAddress, type SocketAddress } from "./addresses.ts";

export const DEFAULT_ADMIN = "127.0.0.1:9909";

export interface AdminPlace extends SocketAddress {
  /** Nobody has asked for this port in particular: another one will do. */
  readonly isDefault: boolean;
}

export function adminPlace(flag: string): AdminPlace | undefined {
  if (flag === "off") return undefined;
  return { ...parseSocketAddress(flag, "--admin-address"), isDefault: flag === DEFAULT_ADMIN };
}
