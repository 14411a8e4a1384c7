import type { Secret } from "../api/core.ts";
import { readKeyPair } from "../certificates/read.ts";

/** What may be shown of a certificate. */
export interface CertificateFacts {
  readonly names: readonly string[];
  readonly notAfter: string;
}

export type CertificateReading = CertificateFacts | { readonly problem: string };

/**
 * Parsing costs more than all the rest of a view; a Secret that did not change is the same object.
 */
const known = new WeakMap<Secret, CertificateReading>();

export function certificateFacts(secret: Secret): CertificateReading {
  let reading = known.get(secret);
  if (reading === undefined) {
    reading = read(secret);
    known.set(secret, reading);
  }
  return reading;
}

function read({ data }: Secret): CertificateReading {
  const certificate = data?.["tls.crt"];
  const key = data?.["tls.key"];
  if (!certificate) return { problem: "has no tls.crt" };
  if (!key) return { problem: "has no tls.key" };
  const pair = readKeyPair(certificate, key);
  return "problem" in pair ? pair : { names: pair.names, notAfter: pair.notAfter };
}
