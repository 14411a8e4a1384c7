import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { readAuthorities, readKeyPair } from "../../src/certificates/read.ts";
import { authority, issue, issueFor, type TestCertificate } from "../dataplanes/support/certificates.ts";

const ca = authority();
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const read = ({ cert, key }: TestCertificate): ReturnType<typeof readKeyPair> =>
  readKeyPair(base64(cert), base64(key));
const readFor = (key: KeyObject): ReturnType<typeof readKeyPair> => read(issueFor(ca, ["a.example"], key));

/**
 * Numbers of that size, and no key that could sign: what is too large must be refused before
 * anybody tries.
 */
function rsa(bits: number, exponent = "AQAB"): KeyObject {
  const number = (size: number): string => {
    const bytes = randomBytes(size / 8);
    bytes[0] = (bytes[0] ?? 0) | 0x80;
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 1;
    return bytes.toString("base64url");
  };
  const half = bits / 2;
  const key = {
    kty: "RSA",
    n: number(bits),
    e: exponent,
    d: number(bits),
    p: number(half),
    q: number(half),
    dp: number(half),
    dq: number(half),
    qi: number(half),
  };
  return createPrivateKey({ key, format: "jwk" });
}

describe("keys that everybody's thread can pay for", () => {
  test.each([2048, 3072, 4096])("RSA of %i bits is taken", (bits) => {
    expect(readFor(rsa(bits))).toMatchObject({ names: ["a.example"] });
  });

  test.each(["prime256v1", "secp384r1", "secp521r1"])("ECDSA on %s is taken", (namedCurve) => {
    expect(readFor(generateKeyPairSync("ec", { namedCurve }).privateKey)).toMatchObject({
      names: ["a.example"],
    });
  });
});

describe("keys that it cannot, and keys that prove nothing", () => {
  test.each([8192, 16384])("RSA of %i bits is refused, with the bound", (bits) => {
    expect(readFor(rsa(bits))).toEqual({
      problem: `the key is RSA with ${bits} bits; at most 4096 are taken, because every handshake costs all who share the data plane`,
    });
  });

  test("RSA of 1024 bits is refused", () => {
    expect(readFor(rsa(1024))).toEqual({
      problem: "the key is RSA with 1024 bits; at least 2048 are needed",
    });
  });

  test("RSA with a huge public exponent is refused", () => {
    const exponent = Buffer.concat([Buffer.from([1]), randomBytes(14), Buffer.from([1])]).toString(
      "base64url",
    );
    expect(readFor(rsa(2048, exponent))).toEqual({
      problem: "the key is RSA with a public exponent of more than 32 bits; 65537 is the usual one",
    });
  });

  test("another curve is refused", () => {
    expect(readFor(generateKeyPairSync("ec", { namedCurve: "secp256k1" }).privateKey)).toEqual({
      problem: "the key's curve secp256k1 is not supported; use P-256, P-384 or P-521",
    });
  });

  test.each([
    ["ed25519", () => generateKeyPairSync("ed25519").privateKey],
    ["ed448", () => generateKeyPairSync("ed448").privateKey],
    ["dsa", () => generateKeyPairSync("dsa", { modulusLength: 1024, divisorLength: 160 }).privateKey],
    ["rsa-pss", () => generateKeyPairSync("rsa-pss", { modulusLength: 2048 }).privateKey],
  ])("%s is refused", (type, make) => {
    expect(readFor(make())).toEqual({
      problem: `a key of type ${type} is not supported; use RSA or ECDSA`,
    });
  });
});

test("a key of a size that no kind needs is not even read", () => {
  const { cert, key } = issue(ca, ["a.example"]);
  expect(read({ cert, key: key + "\n".repeat(100_000) })).toEqual({
    problem: "tls.key is longer than any key that is supported",
  });
});

describe("chains that every handshake would carry", () => {
  const { cert, key } = issue(ca, ["a.example"]);

  test("of a few certificates are taken", () => {
    expect(read({ cert: cert + ca.cert, key })).toMatchObject({ names: ["a.example"] });
  });

  test("of more certificates than any real chain has are refused", () => {
    expect(read({ cert: cert + ca.cert.repeat(16), key })).toEqual({
      problem: "tls.crt holds 17 certificates; at most 16 are read",
    });
  });

  test("of a few huge certificates are refused", () => {
    const names = Array.from({ length: 2_000 }, (_, i) => `a-name-that-is-not-short-${i}.example`);
    const huge = issue(ca, names);
    expect(read(huge)).toEqual({
      problem: expect.stringMatching(
        /^tls\.crt holds certificates of \d+ bytes; at most 65536 are served with every handshake$/,
      ),
    });
  });
});

describe("bundles of authorities", () => {
  const bundle = (count: number): string => `${ca.cert}\n`.repeat(count);

  test("a bundle as large as an operating system's is taken whole", () => {
    expect(readAuthorities(bundle(140))).toMatchObject({ pem: expect.stringContaining("CERTIFICATE") });
  });

  test("a bundle without measure is refused", () => {
    expect(readAuthorities(bundle(600))).toEqual({
      problem: "ca.crt holds 600 certificates; at most 512 are read",
    });
  });
});
