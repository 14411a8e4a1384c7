/** Secrets (envoy.extensions.transport_sockets.tls.v3). */

import * as proto from "../wire/proto.ts";
import { type Message, message, nested, text } from "../wire/protobuf.ts";
import { inlineBytes } from "./core.ts";

/** The part without the name: one certificate may be asked for under many. */
export function tlsCertificate(chain: string, key: string): Message<proto.TlsCertificate> {
  return message(
    nested(proto.TlsCertificate.certificateChain, inlineBytes(chain)),
    nested(proto.TlsCertificate.privateKey, inlineBytes(key)),
  );
}

export function certificateSecret(
  name: string,
  certificate: Message<proto.TlsCertificate>,
): Message<proto.Secret> {
  return message(text(proto.Secret.name, name), nested(proto.Secret.tlsCertificate, certificate));
}

export function authoritiesSecret(name: string, pem: string): Message<proto.Secret> {
  const context = message(nested(proto.CertificateValidationContext.trustedCa, inlineBytes(pem)));
  return message(text(proto.Secret.name, name), nested(proto.Secret.validationContext, context));
}
