/**
 * Certificates for tests, made in the process: no files, no tools, no packages. X.509 v3 (RFC 5280)
 * with P-256 keys, written as DER by hand because node:crypto reads certificates but makes none.
 */

import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from "node:crypto";
import { isIP } from "node:net";

export interface TestCertificate {
  /** PEM, without the authority. */
  readonly cert: string;
  /** PEM, PKCS #8. */
  readonly key: string;
}

export interface TestAuthority extends TestCertificate {
  readonly subject: Buffer;
  readonly privateKey: KeyObject;
}

export interface Validity {
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

/** DNS names, IP addresses and URIs all become subject alternative names of their kind. */
export function selfSigned(names: readonly string[], validity: Validity = {}): TestCertificate {
  const { cert, key } = make({ commonName: names[0] ?? "nobody", names, authority: false, validity });
  return { cert, key };
}

export function authority(commonName = "test authority"): TestAuthority {
  return make({ commonName, names: [], authority: true, validity: {} });
}

export function issue(ca: TestAuthority, names: readonly string[], validity: Validity = {}): TestCertificate {
  const { cert, key } = make({
    commonName: names[0] ?? "nobody",
    names,
    authority: false,
    validity,
    issuer: ca,
  });
  return { cert, key };
}

/** An authority that another one has signed; or what only looks like one. */
export function intermediate(
  issuer: TestAuthority,
  commonName: string,
  { isAuthority = true }: { readonly isAuthority?: boolean } = {},
): TestAuthority {
  return make({ commonName, names: [], authority: isAuthority, validity: {}, issuer });
}

/** For a key of another kind. */
export function issueFor(
  ca: TestAuthority,
  names: readonly string[],
  privateKey: KeyObject,
): TestCertificate {
  const { cert, key } = make({
    commonName: names[0] ?? "nobody",
    names,
    authority: false,
    validity: {},
    issuer: ca,
    privateKey,
  });
  return { cert, key };
}

interface Recipe {
  readonly commonName: string;
  readonly names: readonly string[];
  readonly authority: boolean;
  readonly validity: Validity;
  readonly issuer?: TestAuthority;
  /** A new one on P-256 if there is none. */
  readonly privateKey?: KeyObject;
}

const DAY = 86_400_000;

function make(recipe: Recipe): TestAuthority {
  const privateKey = recipe.privateKey ?? generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey;
  const subject = distinguishedName(recipe.commonName);
  const signer = recipe.issuer ?? { subject, privateKey };
  const { notBefore = new Date(Date.now() - DAY), notAfter = new Date(Date.now() + 3650 * DAY) } =
    recipe.validity;
  const spki = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  const algorithm = sequence(oid("1.2.840.10045.4.3.2"));
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    signer.subject,
    sequence(time(notBefore), time(notAfter)),
    subject,
    spki,
    der(0xa3, sequence(...extensions(recipe, spki))),
  );
  const signature = sign("sha256", body, signer.privateKey);
  const whole = sequence(body, algorithm, der(0x03, Buffer.from([0]), signature));
  const key = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  return { cert: pem("CERTIFICATE", whole), key, subject, privateKey };
}

function extensions({ names, authority }: Recipe, spki: Buffer): readonly Buffer[] {
  const keyId = createHash("sha256").update(spki).digest().subarray(0, 20);
  const list = [extension("2.5.29.14", false, der(0x04, keyId))];
  if (authority) {
    list.push(extension("2.5.29.19", true, sequence(der(0x01, Buffer.from([0xff])))));
    // keyCertSign
    list.push(extension("2.5.29.15", true, der(0x03, Buffer.from([2, 0x04]))));
  }
  if (names.length > 0) list.push(extension("2.5.29.17", false, sequence(...names.map(alternativeName))));
  return list;
}

function alternativeName(name: string): Buffer {
  if (name.includes("://")) return der(0x86, Buffer.from(name, "ascii"));
  if (isIP(name) === 4) return der(0x87, Buffer.from(name.split(".").map(Number)));
  if (isIP(name) === 6) throw new Error("IPv6 names are not needed by any test yet");
  return der(0x82, Buffer.from(name, "ascii"));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  const flag = critical ? [der(0x01, Buffer.from([0xff]))] : [];
  return sequence(oid(id), ...flag, der(0x04, value));
}

function distinguishedName(commonName: string): Buffer {
  return sequence(der(0x31, sequence(oid("2.5.4.3"), der(0x0c, Buffer.from(commonName.slice(0, 64))))));
}

function time(date: Date): Buffer {
  const text = date.toISOString().replace(/[-:T]/g, "").slice(0, 14);
  // RFC 5280 4.1.2.5: two-digit years up to 2049.
  return date.getUTCFullYear() < 2050
    ? der(0x17, Buffer.from(`${text.slice(2)}Z`))
    : der(0x18, Buffer.from(`${text}Z`));
}

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let value = arc >>> 7; value > 0; value >>>= 7) groups.unshift((value & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return der(0x06, Buffer.from(bytes));
}

function integer(bytes: Buffer): Buffer {
  return der(0x02, bytes);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, ...parts);
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size =
    length < 0x80
      ? [length]
      : length < 0x100
        ? [0x81, length]
        : length < 0x10000
          ? [0x82, length >> 8, length & 0xff]
          : [0x83, length >> 16, (length >> 8) & 0xff, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
