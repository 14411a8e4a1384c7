/**
 * Reading certificates and keys as strictly as a TLS library would before it serves them: what
 * passes here must not fail in a data plane, because there it could take others with it. Results
 * name the problem and never show the key.
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
/**
 * Every handshake signs with the key, on a thread that all tenants share: 2 ms with 4096 bits, 31
 * ms with 8192.
 */
const MAX_RSA_BITS = 4096;
/** What Envoy's TLS library takes; a larger one makes signing slower, not safer. */
const MAX_RSA_EXPONENT: bigint = 2n ** 32n;
/** More than any real chain has; a tenant's Secret may hold a megabyte of them. */
const MAX_CHAIN = 16;
/**
 * Several times what the bundle of a browser or an operating system has, which many people use
 * whole.
 */
const MAX_AUTHORITIES = 512;
/** The chain is sent with every handshake, before anything is known about the client. */
const MAX_CHAIN_BYTES = 64 * 1024;
/** Several times what RSA of 4096 bits needs. */
const MAX_KEY_BYTES = 16 * 1024;

/** Both arguments are base64, as a Secret holds them. */
export function readKeyPair(certificate: string, key: string): KeyPairFacts | { readonly problem: string } {
  const chain = readCertificates(decode(certificate), MAX_CHAIN);
  if ("problem" in chain) return { problem: `tls.crt ${chain.problem}` };
  if (chain.pem.length > MAX_CHAIN_BYTES) {
    const bytes = chain.pem.length;
    return {
      problem: `tls.crt holds certificates of ${bytes} bytes; at most ${MAX_CHAIN_BYTES} are served with every handshake`,
    };
  }
  const leaf = chain.certificates[0] as X509Certificate;
  const privateKey = readPrivateKey(decode(key));
  if ("problem" in privateKey) return { problem: `tls.key ${privateKey.problem}` };
  if (!leaf.checkPrivateKey(privateKey.key)) return { problem: "tls.key does not belong to tls.crt" };
  const unfit = unfitness(privateKey.key);
  if (unfit !== undefined) return { problem: unfit };
  return {
    chain: chain.pem,
    key: new PrivateKey(privateKey.pem),
    names: namesOf(leaf),
    notAfter: new Date(leaf.validTo).toISOString(),
  };
}

/** The bundle is plain text, as a ConfigMap holds it. */
export function readAuthorities(bundle: string): { readonly pem: string } | { readonly problem: string } {
  const read = readCertificates(bundle, MAX_AUTHORITIES);
  return "problem" in read ? { problem: `ca.crt ${read.problem}` } : { pem: read.pem };
}

function readCertificates(
  text: string,
  most: number,
):
  | { readonly pem: string; readonly certificates: readonly X509Certificate[] }
  | { readonly problem: string } {
  const blocks = text.match(CERTIFICATE_BLOCK) ?? [];
  if (blocks.length === 0) return { problem: "holds no PEM certificate" };
  if (blocks.length > most)
    return { problem: `holds ${blocks.length} certificates; at most ${most} are read` };
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
  if (text.length > MAX_KEY_BYTES) return { problem: "is longer than any key that is supported" };
  if (/ENCRYPTED/.test(text)) return { problem: "is encrypted; an unencrypted key is needed" };
  try {
    const key = createPrivateKey(text);
    return { key, pem: key.export({ type: "pkcs8", format: "pem" }) as string };
  } catch {
    return { problem: "holds a private key that cannot be read" };
  }
}

function unfitness(key: KeyObject): string | undefined {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (type === "rsa") return rsaProblem(details?.modulusLength ?? 0, details?.publicExponent ?? 0n);
  if (type === "ec" && !["prime256v1", "secp384r1", "secp521r1"].includes(details?.namedCurve ?? "")) {
    return `the key's curve ${details?.namedCurve} is not supported; use P-256, P-384 or P-521`;
  }
  if (type !== "ec") return `a key of type ${type} is not supported; use RSA or ECDSA`;
  return undefined;
}

function rsaProblem(bits: number, exponent: bigint): string | undefined {
  if (bits < MIN_RSA_BITS) return `the key is RSA with ${bits} bits; at least ${MIN_RSA_BITS} are needed`;
  if (bits > MAX_RSA_BITS) {
    return `the key is RSA with ${bits} bits; at most ${MAX_RSA_BITS} are taken, because every handshake costs all who share the data plane`;
  }
  if (exponent > MAX_RSA_EXPONENT) {
    return "the key is RSA with a public exponent of more than 32 bits; 65537 is the usual one";
  }
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
