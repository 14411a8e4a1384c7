import { X509Certificate } from "node:crypto";

/** `valid` stands for one that some authority of the port has signed. */
export type PeerCertificate = "valid" | ClientCertificate;

const BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** A chain as a client presents it, leaf first. */
export class ClientCertificate {
  readonly #leaf: X509Certificate;
  readonly #between: readonly X509Certificate[];

  /** Throws when the text holds no certificate, or one that cannot be read. */
  constructor(pem: string) {
    const [leaf, ...between] = certificatesIn(pem);
    if (leaf === undefined) throw new Error("it holds no PEM certificate");
    this.#leaf = leaf;
    this.#between = between;
  }

  /** Whether it has one of the names, `DNS:alice.example`; absent: any will do. */
  carriesOne(names: readonly string[] | undefined): boolean {
    const own = (this.#leaf.subjectAltName ?? "").split(", ");
    return names === undefined || names.some((name) => own.includes(name));
  }

  /** Whether the chain leads to an authority of the bundle. */
  isSignedBy(bundle: string): boolean {
    const authorities = certificatesIn(bundle);
    let current = this.#leaf;
    for (let step = 0; step <= this.#between.length; step++) {
      if (authorities.some((authority) => isIssuedBy(current, authority))) return true;
      const next = this.#between.find((candidate) => isIssuedBy(current, candidate));
      if (next === undefined) return false;
      current = next;
    }
    return false;
  }
}

function isIssuedBy(certificate: X509Certificate, authority: X509Certificate): boolean {
  return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}

function certificatesIn(text: string): X509Certificate[] {
  return (text.match(BLOCK) ?? []).map((block) => new X509Certificate(block));
}
