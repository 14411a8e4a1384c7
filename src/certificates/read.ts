/**
 * Reading certificates and keys as strictly as a TLS library would before it serves them: what passes here must not fail in a data plane,
 * because there it could take others with it. Results name the problem and never show the key.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { PrivateKey } from "../plan/certificate.ts";

export interface KeyPairFacts {
  readonly chain: string;
  readonly key: PrivateKey;
  readonly names: readonly string[];
  readonly notAfter: string;
}

const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
const MIN_RSA_BITS = 2048;
/** More than any real chain has; a tenant's Secret may hold a megabyte of them. */
const MAX_CHAIN = 16;

/** Both arguments are base64, as a Secret holds them. */
export function readKeyPair(certificate: string, key: string): KeyPairFacts | { readonly problem: string } {
  const chain = readCertificates(decode(certificate));
  if ("problem" in chain) return { problem: `tls.crt ${chain.problem}` };
  const leaf = chain.certificates[0] as X509Certificate;
  const privateKey = readPrivateKey(decode(key));
  if ("problem" in privateKey) return { problem: `tls.key ${privateKey.problem}` };
  if (!leaf.checkPrivateKey(privateKey.key)) return { problem: "tls.key does not belong to tls.crt" };
  const weak = weakness(privateKey.key);
  if (weak !== undefined) return { problem: weak };
  return {
    chain: chain.pem,
    key: new PrivateKey(privateKey.pem),
    names: namesOf(leaf),
    notAfter: new Date(leaf.validTo).toISOString(),
  };
}

/** The bundle is plain text, as a ConfigMap holds it. */
export function readAuthorities(bundle: string): { readonly pem: string } | { readonly problem: string } {
  const chain = readCertificates(bundle);
  return "problem" in chain ? { problem: `ca.crt ${chain.problem}` } : { pem: chain.pem };
}

function readCertificates(
  text: string,
):
  | { readonly pem: string; readonly certificates: readonly X509Certificate[] }
  | { readonly problem: string } {
  const blocks = text.match(CERTIFICATE_BLOCK) ?? [];
  if (blocks.length === 0) return { problem: "holds no PEM certificate" };
  if (blocks.length > MAX_CHAIN)
    return { problem: `holds ${blocks.length} certificates; at most ${MAX_CHAIN} are read` };
  const certificates: X509Certificate[] = [];
  for (const [index, block] of blocks.entries()) {
    try {
      certificates.push(new X509Certificate(block));
    } catch {
      return { problem: `holds a certificate (number ${index + 1}) that cannot be read` };
    }
  }
  return { pem: `${blocks.join("\n")}\n`, certificates };
}

function readPrivateKey(
  text: string,
): { readonly key: KeyObject; readonly pem: string } | { readonly problem: string } {
  if (!/-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/.test(text)) return { problem: "holds no PEM private key" };
  if (/ENCRYPTED/.test(text)) return { problem: "is encrypted; an unencrypted key is needed" };
  try {
    const key = createPrivateKey(text);
    return { key, pem: key.export({ type: "pkcs8", format: "pem" }) as string };
  } catch {
    return { problem: "holds a private key that cannot be read" };
  }
}

function weakness(key: KeyObject): string | undefined {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (type === "rsa" && (details?.modulusLength ?? 0) < MIN_RSA_BITS) {
    return `the key is RSA with ${details?.modulusLength} bits; at least ${MIN_RSA_BITS} are needed`;
  }
  if (type === "ec" && !["prime256v1", "secp384r1", "secp521r1"].includes(details?.namedCurve ?? "")) {
    return `the key's curve ${details?.namedCurve} is not supported; use P-256, P-384 or P-521`;
  }
  if (type !== "rsa" && type !== "ec") return `a key of type ${type} is not supported; use RSA or ECDSA`;
  return undefined;
}

/** DNS names of the certificate: the alternative names, or the common name where there are none. */
function namesOf(leaf: X509Certificate): readonly string[] {
  const names = (leaf.subjectAltName ?? "")
    .split(", ")
    .filter((name) => name.startsWith("DNS:"))
    .map((name) => name.slice(4).toLowerCase());
  if (names.length > 0) return [...new Set(names)].sort();
  const common = /^CN=(.+)$/m.exec(leaf.subject)?.[1];
  return common === undefined ? [] : [common.toLowerCase()];
}

function decode(base64: string): string {
  return Buffer.from(base64, "base64").toString("latin1");
}
