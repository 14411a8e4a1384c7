/**
 * TLS towards a backend, as BackendTLSPolicy (gateway.networking.k8s.io/v1) asks for it:
 *
 *  - `hostname` is the SNI; without `subjectAltNames` the certificate must carry it.
 *  - With `subjectAltNames` at least one of them must be in the certificate, and `hostname` is not
 *    looked for.
 *  - Names count only as subject alternative names; the common name proves nothing.
 */

import type { PeerCertificate, SecureContext } from "node:tls";
import {
  type ConnectionOptions,
  checkServerIdentity,
  createSecureContext,
  getCACertificates,
} from "node:tls";
import type { BackendTls } from "../plan/backend.ts";
import type { CertificateItem } from "../plan/certificate.ts";

/** What `tls.connect` needs for one backend, whatever carries the connection. */
export function backendTlsOptions(tls: BackendTls, clientCertificate?: CertificateItem): ConnectionOptions {
  return {
    servername: tls.hostname,
    secureContext: contextOf(tls, clientCertificate),
    rejectUnauthorized: true,
    checkServerIdentity: (_host, certificate) => identityError(tls, certificate),
  };
}

// Items are immutable, so a context lives exactly as long as the items that it was made of.
const contexts = new WeakMap<
  BackendTls,
  { readonly client?: CertificateItem; readonly context: SecureContext }
>();

function contextOf(tls: BackendTls, client: CertificateItem | undefined): SecureContext {
  const known = contexts.get(tls);
  if (known !== undefined && known.client === client) return known.context;
  const context = createSecureContext({
    ca: tls.authorities === "system" ? systemAuthorities() : [...tls.authorities],
    minVersion: "TLSv1.2",
    ...(client === undefined ? {} : { cert: client.chain, key: client.key.reveal() }),
  });
  contexts.set(tls, client === undefined ? { context } : { client, context });
  return context;
}

/** Slim images carry no authorities of their own; those that come with Node stand in. */
function systemAuthorities(): string[] {
  const system = getCACertificates("system");
  return system.length > 0 ? system : getCACertificates("bundled");
}

export function identityError(tls: BackendTls, certificate: PeerCertificate): Error | undefined {
  const present = alternativeNames(certificate);
  const wanted =
    tls.subjectAltNames.length > 0
      ? tls.subjectAltNames
      : [{ type: "Hostname" as const, value: tls.hostname }];
  const found = wanted.some(({ type, value }) =>
    type === "URI" ? present.uris.has(value) : carriesName(certificate, present.names, value),
  );
  return found ? undefined : new Error("the backend's certificate carries none of the expected names");
}

function carriesName(certificate: PeerCertificate, names: ReadonlySet<string>, value: string): boolean {
  const name = value.toLowerCase();
  // A policy may ask for the wildcard itself, which is no name that a host could have.
  if (names.has(name)) return true;
  return names.size > 0 && !name.startsWith("*.") && checkServerIdentity(name, certificate) === undefined;
}

interface AlternativeNames {
  readonly names: ReadonlySet<string>;
  readonly uris: ReadonlySet<string>;
}

/**
 * Node writes one string, `DNS:a, URI:b`, and quotes as JSON whatever could be mistaken for a
 * separator.
 */
function alternativeNames(certificate: PeerCertificate): AlternativeNames {
  const names = new Set<string>();
  const uris = new Set<string>();
  for (const [, kind, quoted, plain] of (certificate.subjectaltname ?? "").matchAll(
    /(?:^|, )([A-Za-z ]+):(?:("(?:[^"\\]|\\.)*")|([^,"]*))(?=, |$)/g,
  )) {
    const value = quoted === undefined ? (plain ?? "") : (JSON.parse(quoted) as string);
    if (kind === "DNS") names.add(value.toLowerCase());
    else if (kind === "URI") uris.add(value);
  }
  return { names, uris };
}
