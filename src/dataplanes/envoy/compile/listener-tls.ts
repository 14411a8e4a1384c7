/** How a listener of streams ends TLS. */

import type { ItemId, ListenerItem } from "../../../plan/plan.ts";
import { downstreamTls } from "../messages/listener.ts";
import type * as proto from "../wire/proto.ts";
import type { Message } from "../wire/protobuf.ts";
import { certificateSecretName } from "./names.ts";
import { clientsShape } from "./own-clients.ts";

/**
 * Envoy opens nothing before it has all certificates that a listener names: it must never be told
 * to wait for one that will not come.
 */
export function terminating({ tls }: ListenerItem, isUsable: (certificate: ItemId) => boolean): Terminating {
  if (tls?.mode !== "Terminate") return { closes: false };
  const secrets = tls.certificates.filter(isUsable).map(certificateSecretName);
  if (secrets.length === 0) return { closes: true };
  const { minVersion, maxVersion, alpn = [] } = tls;
  const clients = clientsShape(tls.clientValidation);
  return {
    closes: false,
    socket: downstreamTls({ certificates: { secrets }, alpn, minVersion, maxVersion, clients }),
  };
}

export interface Terminating {
  readonly socket?: Message<proto.TransportSocket>;
  /** Without a certificate nobody is let in. */
  readonly closes: boolean;
}
