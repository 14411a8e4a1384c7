/** What passes our checks of certificates, Envoy takes; what does not pass is never sent. */

import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { PemConverter, SubjectAlternativeNameExtension, X509CertificateGenerator } from "@peculiar/x509";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TestCertificate } from "../support/certificates.ts";
import { createEnvoy } from "../support/envoy-plane.ts";
import { ask } from "../support/http-peers.ts";
import { certificate, host, port, rule, secure } from "../support/plan-builder.ts";
import { PlaneUnderTest } from "../support/plane-under-test.ts";

const https = port(443, "tls");

interface Kind {
  readonly name: string;
  readonly good: boolean;
  readonly make: (hostname: string) => Promise<TestCertificate>;
}

const KINDS: readonly Kind[] = [
  { name: "P-256", good: true, make: (of) => made(of, ecdsa("P-256")) },
  { name: "P-384", good: true, make: (of) => made(of, ecdsa("P-384")) },
  { name: "P-521", good: true, make: (of) => made(of, ecdsa("P-521")) },
  { name: "RSA of 2048 bits", good: true, make: (of) => made(of, rsa(2048)) },
  { name: "RSA of 3072 bits", good: true, make: (of) => made(of, rsa(3072)) },
  { name: "RSA with the exponent 3", good: true, make: (of) => made(of, rsa(2048, [3])) },
  { name: "RSA of 1024 bits", good: false, make: (of) => made(of, rsa(1024)) },
  { name: "Ed25519", good: false, make: (of) => made(of, { name: "Ed25519" }) },
  {
    name: "a key of somebody else",
    good: false,
    make: async (of) => ({
      cert: (await made(of, ecdsa("P-256"))).cert,
      key: (await made(of, ecdsa("P-256"))).key,
    }),
  },
  {
    name: "a chain that ends within a certificate",
    good: false,
    make: async (of) => {
      const { cert, key } = await made(of, ecdsa("P-256"));
      return { cert: `${cert}\n${cert.slice(0, 200)}\n-----END CERTIFICATE-----\n`, key };
    },
  },
  {
    name: "a chain with a key in it",
    good: false,
    make: async (of) => {
      const { cert, key } = await made(of, ecdsa("P-256"));
      return { cert: `${cert}\n${key}`, key };
    },
  },
];

describe("certificates on Envoy", () => {
  let plane: PlaneUnderTest;
  const refusals: string[] = [];
  /** Each is its own authority. */
  const chains: string[] = [];

  beforeAll(async () => {
    const items = await Promise.all(
      KINDS.map(async ({ make }, at) => {
        const name = `k${at}.example`;
        const issued = await make(name);
        chains[at] = issued.cert;
        const pair = certificate(`c-${at}`, issued);
        const own = secure(`k-${at}`, https, name, [pair]);
        const action = { type: "respond", status: 204, reason: "here" } as const;
        return [pair, own, host(own, name, [rule({ action })])];
      }),
    );
    plane = await PlaneUnderTest.start(
      (options) => createEnvoy(options, { onDebug: (line) => refusals.push(line) }),
      [https, ...items.flat()],
    );
  }, 60_000);
  afterAll(() => plane.close());

  test.each(KINDS.map((kind, at) => ({ ...kind, at })))("$name", async ({ good, at }) => {
    const name = `k${at}.example`;
    const answer = ask(plane.at(443), {
      host: name,
      tls: { ca: chains[at] ?? "", servername: name },
    });
    if (good) expect((await answer).status).toBe(204);
    else await expect(answer).rejects.toThrow();
    const state = good ? { state: "programmed" } : { state: "rejected", reason: "InvalidCertificate" };
    expect(plane.report(`c-${at}`)).toMatchObject(state);
    expect(plane.report(`k-${at}`)).toMatchObject(state);
    expect(refusals).toEqual([]);
  });
});

function ecdsa(namedCurve: string): KeyAlgorithm {
  return { name: "ECDSA", namedCurve, hash: "SHA-256" };
}

function rsa(modulusLength: number, publicExponent: readonly number[] = [1, 0, 1]): KeyAlgorithm {
  return {
    name: "RSASSA-PKCS1-v1_5",
    modulusLength,
    publicExponent: new Uint8Array(publicExponent),
    hash: "SHA-256",
  };
}

interface KeyAlgorithm {
  readonly name: string;
  readonly namedCurve?: string;
  readonly hash?: string;
  readonly modulusLength?: number;
  readonly publicExponent?: Uint8Array;
}

async function made(hostname: string, algorithm: KeyAlgorithm): Promise<TestCertificate> {
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, [
    "sign",
    "verify",
  ])) as webcrypto.CryptoKeyPair;
  const signed = await X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=${hostname}`,
      keys,
      signingAlgorithm: algorithm,
      extensions: [new SubjectAlternativeNameExtension([{ type: "dns", value: hostname }])],
    },
    webcrypto,
  );
  const key = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { cert: `${signed.toString("pem")}\n`, key: `${PemConverter.encode(key, "PRIVATE KEY")}\n` };
}
