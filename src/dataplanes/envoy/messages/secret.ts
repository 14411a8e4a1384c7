/** Secrets (envoy.extensions.transport_sockets.tls.v3). */

import { type Message, message, nested, text } from "../wire/protobuf.ts";
import { inlineBytes } from "./core.ts";

/** The part without the name: one certificate may be asked for under many. */
export function tlsCertificate(chain: string, key: string): Message {
  return message(nested(1, inlineBytes(chain)), nested(2, inlineBytes(key)));
}

export function certificateSecret(name: string, certificate: Message): Message {
  return message(text(1, name), nested(2, certificate));
}

export function authoritiesSecret(name: string, pem: string): Message {
  return message(text(1, name), nested(4, message(nested(1, inlineBytes(pem)))));
}
