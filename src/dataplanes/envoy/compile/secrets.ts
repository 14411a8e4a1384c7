/**
 * Secrets by name: for a server name the certificate of the most specific HTTPS listener, or a
 * certificate that a listener or cluster refers to.
 *
 * A listener with several certificates shows the first that carries the name, else its first.
 */

import { rootCertificates } from "node:tls";
import { normalizeName } from "../../../matching/authority.ts";
import type { CertificateItem } from "../../../plan/certificate.ts";
import { matchesName } from "../../../plan/hostname.ts";
import type { ItemId, ListenerItem, PortItem } from "../../../plan/plan.ts";
import { resource, type XdsResource } from "../ads/resource.ts";
import type { SecretFinder } from "../ads/resource-store.ts";
import { authoritiesSecret, certificateSecret, tlsCertificate } from "../messages/secret.ts";
import type * as proto from "../wire/proto.ts";
import type { Message } from "../wire/protobuf.ts";
import type { Model } from "./model.ts";
import { certificateSecretName, isSpeakable, SYSTEM_AUTHORITIES, WITHOUT_NAME } from "./names.ts";

export class Secrets implements SecretFinder {
  readonly #model: Model;
  /** Whether a certificate may be served. */
  readonly #isUsable: (id: ItemId) => boolean;
  readonly #ids: Map<string, ItemId> = new Map();
  readonly #encoded: Map<ItemId, Message<proto.TlsCertificate>> = new Map();
  #system: XdsResource | undefined;

  constructor(model: Model, isUsable: (id: ItemId) => boolean) {
    this.#model = model;
    this.#isUsable = isUsable;
  }

  set(certificate: CertificateItem): void {
    this.#ids.set(certificateSecretName(certificate.id), certificate.id);
    this.#encoded.set(certificate.id, tlsCertificate(certificate.chain, certificate.key.reveal()));
  }

  delete(id: ItemId): void {
    this.#ids.delete(certificateSecretName(id));
    this.#encoded.delete(id);
  }

  isConfigured(name: string): boolean {
    if (!isSpeakable(name)) return true;
    for (const port of this.#tlsPorts()) {
      if (this.#model.listenerFor(port.id, name)?.hostname === name) return true;
    }
    return false;
  }

  /** The certificate behind a name. */
  certificateOf(name: string): ItemId | undefined {
    return this.#ids.get(name) ?? this.#shownFor(name);
  }

  find(name: string): XdsResource | undefined {
    if (name === SYSTEM_AUTHORITIES) return this.#systemAuthorities();
    const id = this.certificateOf(name);
    const certificate = id === undefined || !this.#isUsable(id) ? undefined : this.#encoded.get(id);
    if (certificate === undefined) return undefined;
    return resource("secret", name, certificateSecret(name, certificate));
  }

  ownerOf(name: string): ItemId | undefined {
    return this.#shownFor(name) === undefined ? undefined : this.#listenerOf(name)?.id;
  }

  /** The certificate that is served for a server name. */
  #shownFor(name: string): ItemId | undefined {
    const wanted = name === WITHOUT_NAME ? undefined : normalizeName(name);
    const usable = this.#listenerOf(name)?.tls?.certificates.filter((id) => this.#isUsable(id)) ?? [];
    return usable.find((id) => wanted !== undefined && this.#carries(id, wanted)) ?? usable[0];
  }

  #listenerOf(name: string): ListenerItem | undefined {
    if (name !== WITHOUT_NAME && (!isSpeakable(name) || name.includes("*"))) return undefined;
    const wanted = name === WITHOUT_NAME ? undefined : normalizeName(name);
    for (const port of this.#tlsPorts()) {
      const listener = this.#model.listenerFor(port.id, wanted);
      if (listener?.protocol === "HTTPS" && !this.#model.yields(listener)) return listener;
    }
    return undefined;
  }

  #carries(id: ItemId, name: string): boolean {
    return this.#model.get("certificate", id)?.names.some((pattern) => matchesName(pattern, name)) === true;
  }

  #tlsPorts(): readonly PortItem[] {
    return [...this.#model.ports()]
      .filter(({ protocol }) => protocol === "tls")
      .sort((a, b) => a.port - b.port);
  }

  #systemAuthorities(): XdsResource {
    const pem = rootCertificates.join("\n");
    this.#system ??= resource("secret", SYSTEM_AUTHORITIES, authoritiesSecret(SYSTEM_AUTHORITIES, pem));
    return this.#system;
  }
}
