/** Ids of plan items: stable across edits, unique across Gateways, and readable in a log. */
import { type Key, partsOf } from "../api/key.ts";
import type { BackendTarget } from "./backends.ts";

/** A Gateway in the plan's words: `namespace/name`. */
export function gatewayName(gateway: Key): string {
  const { namespace, name } = partsOf(gateway);
  return `${namespace}/${name}`;
}

export function gatewayId(gateway: Key): string {
  return `gateway:${gatewayName(gateway)}`;
}

export function portId(gateway: Key, transport: string, port: number): string {
  return `port:${gatewayName(gateway)}:${transport}/${port}`;
}

export function listenerId(listener: string): string {
  return `listener:${listener}`;
}

export function hostId(listener: string, hostname: string): string {
  return `host:${listener}:${hostname}`;
}

export function backendId(gateway: Key, { namespace, name, port }: BackendTarget): string {
  return `backend:${gatewayName(gateway)}:${namespace}/${name}:${port}`;
}

export function certificateId(gateway: Key, secret: Key): string {
  const { namespace, name } = partsOf(secret);
  return `certificate:${gatewayName(gateway)}:${namespace}/${name}`;
}
