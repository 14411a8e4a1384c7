/**
 * Ids of plan items: stable across edits, and readable in a log. An id belongs to one Gateway for
 * ever: what moves to another Gateway gets another id, so the data plane that served it removes it.
 */
import { type Key, partsOf } from "../../api/key.ts";

/** A reference that resolves, by namespace, name and port. */
export interface BackendTarget {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
  /**
   * The route (`HTTPRoute/ns/name`), or rule of it (`HTTPRoute/ns/name|rule`), that reaches the
   * Service in a way of its own; absent: as everybody does.
   */
  readonly use?: string;
}

/** A Gateway in the plan's words: `namespace/name`. */
export function gatewayName(gateway: Key): string {
  const { namespace, name } = partsOf(gateway);
  return `${namespace}/${name}`;
}

export function gatewayId(gateway: Key): string {
  return `gateway:${gatewayName(gateway)}`;
}

/** The Gateway of an item, whatever it is, in the plan's words. */
export function gatewayOfItem(id: string): string {
  return id.split(":", 2)[1] ?? "";
}

export function portId(gateway: Key, transport: string, port: number): string {
  return `port:${gatewayName(gateway)}:${transport}/${port}`;
}

export function listenerId(gateway: Key, listener: string): string {
  return `listener:${gatewayName(gateway)}:${listener}`;
}

export function hostId(gateway: Key, listener: string, hostname: string): string {
  return `host:${gatewayName(gateway)}:${listener}:${hostname}`;
}

export function backendId(gateway: Key, { namespace, name, port, use }: BackendTarget): string {
  const everybodys = `backend:${gatewayName(gateway)}:${namespace}/${name}:${port}`;
  return use === undefined ? everybodys : `${everybodys}@${use}`;
}

/** The id of the same backend as everybody reaches it. */
export function sharedBackendId(id: string): string {
  const at = id.indexOf("@");
  return at < 0 ? id : id.slice(0, at);
}

export function certificateId(gateway: Key, secret: Key): string {
  const { namespace, name } = partsOf(secret);
  return `certificate:${gatewayName(gateway)}:${namespace}/${name}`;
}
