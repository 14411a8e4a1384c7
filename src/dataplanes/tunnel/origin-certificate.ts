/**
 * The certificate that a connector is shown where it speaks HTTP/2 to us. Made at every start,
 * trusted by nobody, never on disk.
 */
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { SubjectAlternativeNameExtension, X509CertificateGenerator } from "@peculiar/x509";
import { PrivateKey } from "../../plan/certificate.ts";

export interface OriginCertificate {
  readonly chain: string;
  readonly key: PrivateKey;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const YEAR_MS = 365 * 24 * 60 * 60 * 1000;

export async function makeOriginCertificate(address: string, now: Date): Promise<OriginCertificate> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      name: "CN=mergeway tunnel origin",
      notBefore: new Date(now.getTime() - 60 * 60 * 1000),
      notAfter: new Date(now.getTime() + 10 * YEAR_MS),
      keys,
      signingAlgorithm: ALGORITHM,
      extensions: [new SubjectAlternativeNameExtension([{ type: "ip", value: address }])],
    },
    webcrypto,
  );
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey)).toString("base64");
  const lines = pkcs8.match(/.{1,64}/g)?.join("\n") ?? "";
  const key = `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`;
  return { chain: certificate.toString("pem"), key: new PrivateKey(key) };
}
