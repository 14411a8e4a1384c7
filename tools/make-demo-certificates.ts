/**
 * Makes the authority and the certificates of examples/two-teams anew:
 *
 *     node tools/make-demo-certificates.ts
 *
 * The authority's key is thrown away, so nobody can issue anything else in its name. The keys of
 * the teams are public, and good for nothing but the example.
 */
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { writeFileSync } from "node:fs";
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";

const FOLDER = new URL("../examples/two-teams/", import.meta.url);
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const VALIDITY = { notBefore: new Date("2024-01-01T00:00:00Z"), notAfter: new Date("2123-12-31T00:00:00Z") };
const AUTHORITY = "CN=Mergeway demo authority - not for production";

const CERTIFICATES = [
  { namespace: "platform", secret: "platform-cert", hostname: "platform.example.com" },
  { namespace: "team-coffee", secret: "coffee-cert", hostname: "coffee.example.com" },
  { namespace: "team-tea", secret: "tea-cert", hostname: "tea.example.com" },
  { namespace: "team-zest", secret: "zest-cert", hostname: "coffee.example.com" },
];

const { subtle } = webcrypto;
const authorityKeys = await subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
const authority = await X509CertificateGenerator.createSelfSigned({
  name: AUTHORITY,
  keys: authorityKeys,
  signingAlgorithm: ALGORITHM,
  ...VALIDITY,
  extensions: [
    new BasicConstraintsExtension(true, 0, true),
    new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
  ],
});
writeFileSync(new URL("demo-ca.crt", FOLDER), `${authority.toString("pem")}\n`);

for (const { namespace, secret, hostname } of CERTIFICATES) {
  const keys = await subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.create({
    subject: `CN=${hostname}`,
    issuer: AUTHORITY,
    publicKey: keys.publicKey,
    signingKey: authorityKeys.privateKey,
    signingAlgorithm: ALGORITHM,
    ...VALIDITY,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension([{ type: "dns", value: hostname }]),
    ],
  });
  const key = PemConverter.encode(await subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
  writeFileSync(
    new URL(`${namespace}-certificate.yaml`, FOLDER),
    `# A demo certificate of demo-ca.crt. Its key is public: use it for nothing else.
# Made by tools/make-demo-certificates.ts.
apiVersion: v1
kind: Secret
metadata:
  name: ${secret}
  namespace: ${namespace}
type: kubernetes.io/tls
data:
  tls.crt: ${base64(`${certificate.toString("pem")}\n`)}
  tls.key: ${base64(`${key}\n`)}
`,
  );
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
