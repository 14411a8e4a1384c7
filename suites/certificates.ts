import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import type { Certificates } from "./suite.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const AUTHORITY = "CN=suites of others";
const DAY = 86_400_000;

/**
 * As a public authority would issue them, with every extension and a short life: scanners look at
 * those too.
 */
export async function writeCertificates(folder: string): Promise<Certificates> {
  const { subtle } = webcrypto;
  const validity = { notBefore: new Date(Date.now() - DAY), notAfter: new Date(Date.now() + 90 * DAY) };
  const authorityKeys = await subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const authority = await X509CertificateGenerator.createSelfSigned({
    name: AUTHORITY,
    keys: authorityKeys,
    signingAlgorithm: ALGORITHM,
    ...validity,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      await SubjectKeyIdentifierExtension.create(authorityKeys.publicKey),
    ],
  });
  const keys = await subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.create({
    subject: "CN=suites.test",
    issuer: AUTHORITY,
    publicKey: keys.publicKey,
    signingKey: authorityKeys.privateKey,
    signingAlgorithm: ALGORITHM,
    ...validity,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      await AuthorityKeyIdentifierExtension.create(authorityKeys.publicKey),
      new SubjectAlternativeNameExtension([
        ...["localhost", "suites.test", "*.suites.test"].map((value) => ({ type: "dns", value }) as const),
        { type: "ip", value: "127.0.0.1" },
      ]),
    ],
  });
  const key = PemConverter.encode(await subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
  const files = { ca: join(folder, "ca.crt"), cert: join(folder, "tls.crt"), key: join(folder, "tls.key") };
  writeFileSync(files.ca, `${authority.toString("pem")}\n`);
  writeFileSync(files.cert, `${certificate.toString("pem")}\n`);
  writeFileSync(files.key, `${key}\n`, { mode: 0o600 });
  return files;
}
