/**
 * Listeners of HTTPS that ask for client certificates of their own, and the marks by which scopes
 * know who has met a demand.
 *
 * Each such listener has a filter chain by its hostname, since all others share one. A chain
 * without a server name takes the names of everybody who has no chain: a listener without a
 * hostname cannot have one of its own.
 */

import { digest } from "../../../digest/digest.ts";
import type { ClientValidation } from "../../../plan/client-validation.ts";
import type { ItemId, ListenerItem, PortItem } from "../../../plan/plan.ts";
import type { ClientValidationShape } from "../messages/listener.ts";

export function hasOwnClients({ protocol, tls }: ListenerItem): boolean {
  return protocol === "HTTPS" && tls?.clientValidation !== undefined;
}

/** Nobody is let in there: its scopes want a mark that no chain gives. */
export function isUnconfinable(listener: ListenerItem): boolean {
  return hasOwnClients(listener) && listener.hostname === "";
}

/** What requests carry whose client has met what is asked for at the listener. */
export function clientsMark(listener: ListenerItem, port: PortItem | undefined): string | undefined {
  const { id, protocol, tls } = listener;
  if (protocol !== "HTTPS") return undefined;
  if (tls?.clientValidation === undefined) return port && portMark(port);
  return markOf(id, tls.clientValidation);
}

/**
 * The same for a port's chains, which its listeners share. Not with a fallback, which lets
 * everybody in.
 */
export function portMark({ id, clientValidation }: PortItem): string | undefined {
  return clientValidation?.mode === "AllowValidOnly" ? markOf(id, clientValidation) : undefined;
}

function markOf(id: ItemId, validation: ClientValidation): string {
  return digest(JSON.stringify([id, validation]), "base64url", 22);
}

export function clientsShape(validation: ClientValidation | undefined): ClientValidationShape | undefined {
  if (validation === undefined) return undefined;
  const { mode, authorities, subjectAltNames } = validation;
  return { required: mode === "AllowValidOnly", authorities: authorities.join("\n"), subjectAltNames };
}
