/**
 * The authority behind the stream between controller and data plane pods. It is made once, by
 * whichever replica comes first, and kept where all replicas read it; each replica issues its own
 * short-lived serving certificate from it. Pods are given the authority's certificate in their
 * Deployment, so that a new authority rolls them. Its certificate may sign leaves and nothing else.
 */
import "reflect-metadata";
import { createHmac, createPrivateKey, randomBytes, webcrypto, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  X509Certificate as IssuerCertificate,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";

/** A certificate with its key, both PEM. Printing or serialising it shows the certificate alone. */
export class KeyPair {
  readonly certificate: string;
  readonly #key: string;

  constructor(certificate: string, key: string) {
    this.certificate = certificate;
    this.#key = key;
  }

  /** PKCS #8. On the prototype, so that nothing that lists the fields of a pair comes across it. */
  get key(): string {
    return this.#key;
  }
}

/** Where the authority is kept; PEM as it stands in a Secret. */
export interface AuthorityStore {
  get(): Promise<{ readonly certificate: string; readonly key: string } | undefined>;
  /** False when another replica was faster; whatever it stored is the authority. */
  create(pair: KeyPair): Promise<boolean>;
}

/**
 * What is stored is no authority (any more). Never made anew over it: somebody put it there, and
 * pods trust it.
 */
export class UnusableAuthority extends Error {
  override readonly name: string = "UnusableAuthority";
  readonly code: string = "UNUSABLE_AUTHORITY";
}

type SigningKeys = webcrypto.CryptoKeyPair;

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 24 * 60 * 60 * 1000;
const AUTHORITY_DAYS = 3650;
const SERVING_DAYS = 90;
/** Clocks of nodes differ a little; a certificate that is not valid yet is refused. */
const BACKDATED_MS = 60 * 60 * 1000;
const SUBJECT = "CN=mergeway authority";

export async function ensureAuthority(store: AuthorityStore, now: Date = new Date()): Promise<KeyPair> {
  const stored = await store.get();
  if (stored !== undefined) return usable(stored, now);
  const made = await makeAuthority(now);
  if (await store.create(made)) return made;
  const other = await store.get();
  if (other === undefined) {
    throw new UnusableAuthority(
      "the authority was there when it was to be created, and gone when it was to be read",
    );
  }
  return usable(other, now);
}

/** A certificate for the names (or addresses) under which pods reach the controller. */
export async function issueServing(
  authority: KeyPair,
  names: readonly string[],
  now: Date = new Date(),
): Promise<KeyPair> {
  const issuer = new IssuerCertificate(authority.certificate);
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    // RFC 5280 bounds a common name; clients read the alternative names alone.
    subject: "CN=mergeway controller",
    issuer: issuer.subjectName,
    notBefore: new Date(now.getTime() - BACKDATED_MS),
    // A leaf that outlives its issuer would be refused in the end without looking expired.
    notAfter: new Date(Math.min(now.getTime() + SERVING_DAYS * DAY_MS, issuer.notAfter.getTime())),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: await importSigningKey(authority),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value })),
      ),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      ...authorityKeyIdentifier(issuer),
    ],
  });
  return pairOf(certificate.toString("pem"), keys);
}

/** When a third of its life is left: a month in which renewing may fail without harm. */
export function needsRenewal(
  { certificate }: { readonly certificate: string },
  now: Date = new Date(),
): boolean {
  const { validFromDate, validToDate } = new X509Certificate(certificate);
  const life = validToDate.getTime() - validFromDate.getTime();
  return validToDate.getTime() - now.getTime() < life / 3;
}

async function makeAuthority(now: Date): Promise<KeyPair> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: SUBJECT,
    notBefore: new Date(now.getTime() - BACKDATED_MS),
    notAfter: new Date(now.getTime() + AUTHORITY_DAYS * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return pairOf(certificate.toString("pem"), keys);
}

/**
 * Must be what the issuer calls itself: one made by other tools may name its key by another digest
 * than ours.
 */
function authorityKeyIdentifier(issuer: IssuerCertificate): readonly Extension[] {
  const own = issuer.getExtension(SubjectKeyIdentifierExtension);
  return own === null ? [] : [new AuthorityKeyIdentifierExtension(own.keyId)];
}

function usable(stored: { readonly certificate: string; readonly key: string }, now: Date): KeyPair {
  const problem = problemOf(stored, now);
  if (problem === undefined) return new KeyPair(stored.certificate, stored.key);
  throw new UnusableAuthority(
    `the stored authority cannot be used: ${problem}. Delete it and restart the controller to have a new one made.`,
  );
}

function problemOf(
  stored: { readonly certificate: string; readonly key: string },
  now: Date,
): string | undefined {
  try {
    const certificate = new X509Certificate(stored.certificate);
    const key = createPrivateKey(stored.key);
    if (!certificate.ca) return "its certificate may not sign others";
    // Pods are given this certificate alone, so it must be the end of the chain.
    if (!certificate.checkIssued(certificate)) return "its certificate is signed by another authority";
    if (certificate.validToDate < now) return `its certificate expired on ${certificate.validTo}`;
    if (key.asymmetricKeyDetails?.namedCurve !== "prime256v1") return "its key is not an ECDSA key on P-256";
    if (!certificate.checkPrivateKey(key)) return "its key is not its certificate's";
    return undefined;
  } catch {
    // What a parser says of a key may quote it.
    return "its certificate or its key cannot be read";
  }
}

async function newKeys(): Promise<SigningKeys> {
  return await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

async function importSigningKey({ key }: KeyPair): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(key).export({ format: "der", type: "pkcs8" });
  return await webcrypto.subtle.importKey("pkcs8", der, ALGORITHM, false, ["sign"]);
}

async function pairOf(certificate: string, { privateKey }: SigningKeys): Promise<KeyPair> {
  const key = await webcrypto.subtle.exportKey("pkcs8", privateKey);
  const pem = createPrivateKey({ key: Buffer.from(key), format: "der", type: "pkcs8" });
  return new KeyPair(`${certificate.trimEnd()}\n`, pem.export({ format: "pem", type: "pkcs8" }).toString());
}

/**
 * A secret for one purpose, the same for every replica that has the authority and for nobody else.
 */
export function tokenFor({ key }: KeyPair, purpose: string): string {
  return createHmac("sha256", key).update(purpose).digest("base64url");
}

/** Positive, and without a leading zero byte. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString("hex");
}
