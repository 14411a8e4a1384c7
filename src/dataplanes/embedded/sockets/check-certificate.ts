import { createPrivateKey, X509Certificate } from "node:crypto";
import type { CertificateItem } from "../../../plan/certificate.ts";

/** Why a certificate cannot be served, in words that show nothing of its key. */
export function checkCertificate({ chain, key }: CertificateItem): string | undefined {
  let leaf: X509Certificate;
  try {
    leaf = new X509Certificate(chain);
  } catch {
    return "the certificate chain cannot be read";
  }
  try {
    if (!leaf.checkPrivateKey(createPrivateKey(key.reveal())))
      return "the private key does not belong to the certificate";
  } catch {
    return "the private key cannot be read";
  }
  return undefined;
}
