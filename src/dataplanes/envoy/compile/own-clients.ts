/**
 * Listeners of HTTPS that ask for client certificates of their own.
 *
 * Each has a filter chain by its hostname, since all others share one. A chain without a server
 * name takes the names of everybody who has no chain: a listener without a hostname cannot have one
 * of its own.
 */

import { digest } from "../../../digest/digest.ts";
import type { ClientValidation } from "../../../plan/client-validation.ts";
import type { ListenerItem } from "../../../plan/plan.ts";
import type { ClientValidationShape } from "../messages/listener.ts";

export function hasOwnClients({ protocol, tls }: ListenerItem): boolean {
  return protocol === "HTTPS" && tls?.clientValidation !== undefined;
}

/** Nobody is let in there: its scopes want a mark that no chain gives. */
export function isUnconfinable(listener: ListenerItem): boolean {
  return hasOwnClients(listener) && listener.hostname === "";
}

/** What requests carry whose client has met what the listener asks for. */
export function clientsMark({ id, protocol, tls }: ListenerItem): string | undefined {
  if (protocol !== "HTTPS" || tls?.clientValidation === undefined) return undefined;
  return digest(JSON.stringify([id, tls.clientValidation]), "base64url", 22);
}

export function clientsShape(validation: ClientValidation | undefined): ClientValidationShape | undefined {
  if (validation === undefined) return undefined;
  const { mode, authorities, subjectAltNames } = validation;
  return { required: mode === "AllowValidOnly", authorities: authorities.join("\n"), subjectAltNames };
}
