import "reflect-metadata";
import { createPrivateKey, webcrypto, X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:tls";
import { inspect } from "node:util";
import { BasicConstraintsExtension, X509CertificateGenerator } from "@peculiar/x509";
import { describe, expect, test } from "vitest";
import {
  type AuthorityStore,
  ensureAuthority,
  issueServing,
  type KeyPair,
  needsRenewal,
  UnusableAuthority,
} from "../../src/infra/authority.ts";
import {
  authority as foreignAuthority,
  selfSigned,
  type TestAuthority,
} from "../dataplanes/support/certificates.ts";

const DAY = 24 * 60 * 60 * 1000;
const NAME = "mergeway.gateways.svc";

class MemoryStore implements AuthorityStore {
  stored: { readonly certificate: string; readonly key: string } | undefined;
  creations = 0;

  get(): Promise<{ readonly certificate: string; readonly key: string } | undefined> {
    return Promise.resolve(this.stored);
  }

  create(pair: KeyPair): Promise<boolean> {
    if (this.stored !== undefined) return Promise.resolve(false);
    this.creations++;
    // As a Secret would give it back: text, no class.
    this.stored = { certificate: pair.certificate, key: pair.key };
    return Promise.resolve(true);
  }
}

/** An authority of another make: on another curve, or signed by another authority. */
async function oddAuthority(
  curve: string,
  signer?: TestAuthority,
): Promise<{ certificate: string; key: string }> {
  const algorithm = { name: "ECDSA", namedCurve: curve, hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const der = signer?.privateKey.export({ format: "der", type: "pkcs8" });
  const certificate = await X509CertificateGenerator.create({
    subject: "CN=odd",
    issuer: signer === undefined ? "CN=odd" : "CN=test authority",
    notAfter: new Date(Date.now() + DAY),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: der
      ? await webcrypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"])
      : keys.privateKey,
    extensions: [new BasicConstraintsExtension(true, undefined, true)],
  });
  const exported = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  const key = createPrivateKey({ key: exported, format: "der", type: "pkcs8" });
  return {
    certificate: certificate.toString("pem"),
    key: key.export({ format: "pem", type: "pkcs8" }).toString(),
  };
}

/** The name that the server's certificate proved, or why the client refused it. */
async function handshake(serving: KeyPair, ca: string, servername: string): Promise<string> {
  const server = createServer({ cert: serving.certificate, key: serving.key, minVersion: "TLSv1.3" });
  server.on("tlsClientError", () => {});
  server.on("secureConnection", (socket) => socket.on("error", () => socket.destroy()).end());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const client = connect({ host: "127.0.0.1", port, ca, servername, minVersion: "TLSv1.3" });
  try {
    await once(client, "secureConnect");
    return `proved ${servername} by ${client.getPeerCertificate().subjectaltname}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  } finally {
    client.destroy();
    server.close();
  }
}

describe("the authority", () => {
  test("is made once and read from then on", async () => {
    const store = new MemoryStore();
    const first = await ensureAuthority(store);
    const second = await ensureAuthority(store);
    expect(second.certificate).toBe(first.certificate);
    expect(second.key).toBe(first.key);
    expect(store.creations).toBe(1);
  });

  test("is the same for replicas that start at the same moment", async () => {
    const store = new MemoryStore();
    const replicas = await Promise.all(Array.from({ length: 8 }, () => ensureAuthority(store)));
    expect(new Set(replicas.map(({ certificate }) => certificate)).size).toBe(1);
    expect(new Set(replicas.map(({ key }) => key)).size).toBe(1);
    expect(store.creations).toBe(1);
  });

  test("signs certificates only, with P-256, for ten years", async () => {
    const { certificate } = await ensureAuthority(new MemoryStore(), new Date("2026-06-01T00:00:00Z"));
    const parsed = new X509Certificate(certificate);
    expect(parsed.ca).toBe(true);
    expect(parsed.publicKey.asymmetricKeyDetails?.namedCurve).toBe("prime256v1");
    expect(parsed.validToDate.toISOString()).toBe("2036-05-29T00:00:00.000Z");
    expect(parsed.validFromDate.toISOString()).toBe("2026-05-31T23:00:00.000Z");
  });

  test("does not show its key to whoever prints or serialises it", async () => {
    const pair = await ensureAuthority(new MemoryStore());
    expect(pair.key).toContain("PRIVATE KEY");
    expect(inspect(pair, { depth: 9, showHidden: true })).not.toContain("PRIVATE KEY");
    expect(JSON.stringify(pair)).not.toContain("PRIVATE KEY");
    expect(JSON.stringify({ ...pair })).not.toContain("PRIVATE KEY");
  });

  const other = foreignAuthority();
  const leaf = selfSigned(["mergeway.test"]);
  test.each([
    ["text that is no certificate", { certificate: "none", key: leaf.key }, "cannot be read"],
    [
      "a key that cannot be read",
      { certificate: other.cert, key: "-----BEGIN SECRET-----" },
      "cannot be read",
    ],
    ["a leaf", { certificate: leaf.cert, key: leaf.key }, "may not sign others"],
    ["another's key", { certificate: other.cert, key: leaf.key }, "not its certificate's"],
  ])("refuses %s and leaves it in place", async (_title, stored, reason) => {
    const store = new MemoryStore();
    store.stored = stored;
    const failure = await ensureAuthority(store).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UnusableAuthority);
    expect((failure as Error).message).toContain(reason);
    expect((failure as Error).message).not.toContain("SECRET");
    expect(store.stored).toBe(stored);
  });

  test.each([
    ["on another curve", "P-384", undefined, "not an ECDSA key on P-256"],
    ["that another one signed", "P-256", other, "signed by another authority"],
  ])("refuses an authority %s", async (_title, curve, signer, reason) => {
    const store = new MemoryStore();
    store.stored = await oddAuthority(curve, signer);
    await expect(ensureAuthority(store)).rejects.toThrow(reason);
  });

  test("refuses an authority that has expired", async () => {
    const store = new MemoryStore();
    await ensureAuthority(store, new Date("2010-01-01T00:00:00Z"));
    await expect(ensureAuthority(store)).rejects.toThrow(/expired on .* 2019/);
  });

  test("takes an authority that a person made", async () => {
    const store = new MemoryStore();
    store.stored = { certificate: other.cert, key: other.key };
    const serving = await issueServing(await ensureAuthority(store), [NAME]);
    expect(await handshake(serving, other.cert, NAME)).toBe(`proved ${NAME} by DNS:${NAME}`);
  });
});

describe("the serving certificate", () => {
  test("is accepted for each of its names, and for no other", async () => {
    const authority = await ensureAuthority(new MemoryStore());
    const serving = await issueServing(authority, [NAME, `${NAME}.cluster.local`, "127.0.0.1"]);
    const names = `DNS:${NAME}, DNS:${NAME}.cluster.local, IP Address:127.0.0.1`;
    expect(await handshake(serving, authority.certificate, NAME)).toBe(`proved ${NAME} by ${names}`);
    expect(await handshake(serving, authority.certificate, `${NAME}.cluster.local`)).toContain("proved");
    expect(await handshake(serving, authority.certificate, "mergeway.other.svc")).toBe(
      "ERR_TLS_CERT_ALTNAME_INVALID",
    );
  });

  test("is refused by whoever trusts another authority", async () => {
    const authority = await ensureAuthority(new MemoryStore());
    const otherAuthority = await ensureAuthority(new MemoryStore());
    const serving = await issueServing(authority, [NAME]);
    expect(await handshake(serving, otherAuthority.certificate, NAME)).toMatch(
      /UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT_LOCALLY/,
    );
  });

  test("is refused once it has expired", async () => {
    const authority = await ensureAuthority(new MemoryStore());
    const serving = await issueServing(authority, [NAME], new Date(Date.now() - 91 * DAY));
    expect(await handshake(serving, authority.certificate, NAME)).toBe("CERT_HAS_EXPIRED");
  });

  test("cannot sign for others", async () => {
    const authority = await ensureAuthority(new MemoryStore());
    const serving = await issueServing(authority, [NAME]);
    const forged = await issueServing(serving, ["victim.test"]);
    const chain = `${serving.certificate}${authority.certificate}`;
    expect(await handshake(forged, chain, "victim.test")).not.toContain("proved");
  });

  test("is to be renewed in the last third of its 90 days, and not before", async () => {
    const now = new Date("2026-06-01T00:00:00Z");
    const authority = await ensureAuthority(new MemoryStore(), now);
    const serving = await issueServing(authority, [NAME], now);
    const later = (days: number): Date => new Date(now.getTime() + days * DAY);
    expect(new X509Certificate(serving.certificate).validToDate).toEqual(later(90));
    expect(needsRenewal(serving, now)).toBe(false);
    expect(needsRenewal(serving, later(59))).toBe(false);
    expect(needsRenewal(serving, later(61))).toBe(true);
    expect(needsRenewal(serving, later(200))).toBe(true);
    expect(needsRenewal(await issueServing(authority, [NAME], later(61)), later(61))).toBe(false);
  });

  test("never outlives its authority", async () => {
    const authority = await ensureAuthority(new MemoryStore(), new Date("2026-01-01T00:00:00Z"));
    const end = new X509Certificate(authority.certificate).validToDate;
    const serving = await issueServing(authority, [NAME], new Date(end.getTime() - 10 * DAY));
    expect(new X509Certificate(serving.certificate).validToDate).toEqual(end);
  });

  test("differs from one issue to the next", async () => {
    const authority = await ensureAuthority(new MemoryStore());
    const [one, two] = [await issueServing(authority, [NAME]), await issueServing(authority, [NAME])];
    expect(new X509Certificate(one.certificate).serialNumber).not.toBe(
      new X509Certificate(two.certificate).serialNumber,
    );
    expect(one.key).not.toBe(two.key);
  });
});
