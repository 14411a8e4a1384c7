import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import type { CertificateItem } from "../../../plan/certificate.ts";

/**
 * What Envoy's TLS library would refuse, found before it is sent. Undefined: nothing.
 *
 * Chain and key must be readable and belong together; the key must be RSA of at least 2048 bits, or
 * ECDSA on P-256, P-384 or P-521; everything between the first and the last certificate must be a
 * certificate too.
 */
export function certificateProblem({ chain, key }: CertificateItem): string | undefined {
  const blocks = chain.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) return "the chain has no certificate";
  if ((chain.match(/-----BEGIN /g) ?? []).length !== blocks.length)
    return "the chain holds something that is no certificate";
  const certificates: X509Certificate[] = [];
  for (const [index, block] of blocks.entries()) {
    try {
      certificates.push(new X509Certificate(block));
    } catch {
      return index === 0
        ? "the certificate cannot be read"
        : `certificate ${index + 1} of the chain cannot be read`;
    }
  }
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key.reveal());
  } catch {
    return "the private key cannot be read";
  }
  if (certificates[0]?.checkPrivateKey(privateKey) !== true)
    return "the private key does not belong to the certificate";
  return keyProblem(privateKey);
}

const curves: ReadonlySet<string> = new Set(["prime256v1", "secp384r1", "secp521r1"]);
const SHORTEST_RSA = 2048;

function keyProblem({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  if (asymmetricKeyType === "rsa") {
    const bits = asymmetricKeyDetails?.modulusLength ?? 0;
    return bits < SHORTEST_RSA
      ? `an RSA key of ${bits} bits is too short, it needs ${SHORTEST_RSA}`
      : undefined;
  }
  if (asymmetricKeyType === "ec") {
    const curve = asymmetricKeyDetails?.namedCurve ?? "unknown";
    return curves.has(curve) ? undefined : `keys on the curve ${curve} are not supported`;
  }
  return `keys of type ${asymmetricKeyType ?? "unknown"} are not supported`;
}
