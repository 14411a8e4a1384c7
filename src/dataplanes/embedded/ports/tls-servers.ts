import { constants, createHmac, X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import { createSecureContext, createServer, type Server, type TLSSocket, type TlsOptions } from "node:tls";
import { normalizeName } from "../../../matching/authority.ts";
import type { RoutingTable } from "../../../matching/routing-table.ts";
import type { CertificateItem } from "../../../plan/certificate.ts";
import { type ClientValidation, validationAt } from "../../../plan/client-validation.ts";
import type { ListenerItem, TlsVersion } from "../../../plan/plan.ts";
import type { HandshakeResult } from "../../traffic/traffic-numbers.ts";
import { checkCertificate } from "../sockets/check-certificate.ts";
import { carriesOne } from "../sockets/client-certificate.ts";

/**
 * AES-128 first: measured a third cheaper per handshake than the larger keys, and as safe in
 * practice.
 */
const CIPHERS: string = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

/**
 * Mozilla's intermediate profile of server-side TLS, the post-quantum hybrid first. OpenSSL has it
 * since 3.5; a Node with an older one does without.
 */
const GROUPS: string =
  ["X25519MLKEM768:X25519:P-256:P-384", "X25519:P-256:P-384"].find(isKnown) ?? "P-256:P-384";

const versions = { "1.2": "TLSv1.2", "1.3": "TLSv1.3" } as const;

export interface TlsServersOptions {
  readonly table: RoutingTable;
  readonly max: number;
  readonly handshakeTimeoutMs: number;
  /** The same in every thread, so that a session begun at one can be resumed at another. */
  readonly ticketSecret: Buffer;
  /** The decrypted stream, after the handshake. A failed handshake closes the socket. */
  readonly onSecured: (stream: TLSSocket, secured: Secured) => void;
  readonly onHandshake?: (result: HandshakeResult) => void;
}

/** What a handshake was for. */
export interface Secured {
  readonly listener: ListenerItem;
  /** What the client has met. */
  readonly validation: ClientValidation | undefined;
}

interface EntryParts {
  readonly listener: ListenerItem;
  readonly certificates: readonly CertificateItem[];
  readonly validation: ClientValidation | undefined;
}

interface Entry extends EntryParts {
  readonly server: Server;
}

/**
 * TLS termination per listener, created at its first handshake and kept while it is used: thousands
 * of certificates cost nothing until a client needs them. Items are immutable, so an entry is valid
 * while its items are the current ones. A change takes effect with the next handshake.
 */
export class TlsServers {
  readonly #options: TlsServersOptions;
  readonly #entries: Map<string, Entry> = new Map();

  constructor(options: TlsServersOptions) {
    this.#options = options;
  }

  terminate(socket: Socket, listener: ListenerItem, serverName: string | undefined): void {
    const server = this.#serverOf(listener, serverName);
    if (server === undefined) {
      this.#options.onHandshake?.("unknown_name");
      socket.destroy();
    } else server.emit("connection", socket);
  }

  #serverOf(listener: ListenerItem, serverName: string | undefined): Server | undefined {
    const { table } = this.#options;
    const validation = validationAt(listener, table.get("port", listener.port));
    const all = certificatesOf(table, listener);
    const fitting = serverName === undefined ? [] : all.filter((item) => carriesName(item, serverName));
    const entry =
      this.#entryFor({ listener, certificates: fitting, validation }) ??
      this.#entryFor({ listener, certificates: all, validation });
    return entry?.server;
  }

  #entryFor(parts: EntryParts): Entry | undefined {
    const key = [parts.listener.id, ...parts.certificates.map(({ id }) => id)].join("\n");
    let entry = this.#entries.get(key);
    this.#entries.delete(key);
    if (entry === undefined || !isCurrent(entry, parts)) {
      const server = this.#create(parts);
      if (server === undefined) return undefined;
      entry = { ...parts, server };
    }
    this.#entries.set(key, entry);
    if (this.#entries.size > this.#options.max) {
      const oldest = this.#entries.keys().next().value;
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    return entry;
  }

  #create(parts: EntryParts): Server | undefined {
    const { listener, certificates, validation } = parts;
    const { tls } = listener;
    const alpn = tls?.alpn ?? (listener.protocol === "HTTPS" ? ["h2", "http/1.1"] : undefined);
    const usable = usableOf(certificates);
    if (usable.length === 0) return undefined;
    try {
      const options: TlsOptions = {
        cert: usable.map(({ chain }) => chain),
        key: usable.map(({ key }) => key.reveal()),
        ciphers: CIPHERS,
        honorCipherOrder: true,
        ecdhCurve: GROUPS,
        // A handshake costs the server far more than the client; HTTP/2 forbids another one (RFC
        // 9113, 9.2.1).
        secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
        minVersion: versions[tls?.minVersion ?? "1.2"],
        ...(tls?.maxVersion === undefined ? {} : { maxVersion: versions[tls.maxVersion as TlsVersion] }),
        ...(alpn === undefined ? {} : { ALPNProtocols: [...alpn] }),
        handshakeTimeout: this.#options.handshakeTimeoutMs,
        ticketKeys: this.#ticketKeys(listener, usable, validation),
        ...(validation === undefined ? {} : clientOptions(validation)),
      };
      return this.#serve(parts, { ...options, ...partialChains(validation, options) });
    } catch {
      return undefined;
    }
  }

  #serve({ listener, validation }: Secured, options: TlsOptions): Server {
    const server = createServer(options);
    const { onSecured, onHandshake } = this.#options;
    server.on("secureConnection", (stream) => {
      if (isNamed(stream, validation)) {
        onHandshake?.("completed");
        onSecured(stream, { listener, validation });
      } else {
        onHandshake?.("client_certificate");
        stream.destroy();
      }
    });
    server.on("tlsClientError", (error, stream) => {
      onHandshake?.(isOfClientCertificate(error, stream) ? "client_certificate" : "failed");
      stream.destroy();
    });
    return server;
  }

  /**
   * Bound to everything that decides who may connect: a session of one tenant or of an older policy
   * resumes nowhere else.
   */
  #ticketKeys(
    listener: ListenerItem,
    certificates: readonly CertificateItem[],
    validation: ClientValidation | undefined,
  ): Buffer {
    const text = JSON.stringify([
      listener.id,
      listener.hostname,
      certificates.map(({ chain }) => chain),
      validation,
    ]);
    return createHmac("sha384", this.#options.ticketSecret).update(text).digest();
  }
}

/** A certificate that Node does not accept ends the connection without an error of its own. */
function isOfClientCertificate(error: Error, { authorizationError }: TLSSocket): boolean {
  return Boolean(authorizationError) || ("code" in error && error.code === NO_CLIENT_CERTIFICATE);
}

/** Whether the client's certificate, which is verified, is one of those that are asked for. */
function isNamed(stream: TLSSocket, validation: ClientValidation | undefined): boolean {
  if (validation?.mode !== "AllowValidOnly" || validation.subjectAltNames === undefined) return true;
  const certificate = stream.getPeerX509Certificate();
  return certificate !== undefined && carriesOne(certificate, validation.subjectAltNames);
}

const NO_CLIENT_CERTIFICATE = "ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE";

function isKnown(ecdhCurve: string): boolean {
  try {
    createSecureContext({ ecdhCurve });
    return true;
  } catch {
    return false;
  }
}

function certificatesOf(table: RoutingTable, listener: ListenerItem): readonly CertificateItem[] {
  const certificates: CertificateItem[] = [];
  for (const id of listener.tls?.certificates ?? []) {
    const certificate = table.get("certificate", id);
    if (certificate !== undefined) certificates.push(certificate);
  }
  return certificates;
}

/** In a certificate, unlike in a listener, `*` stands for exactly one label. */
function carriesName({ names }: CertificateItem, serverName: string): boolean {
  const name = normalizeName(serverName);
  const wildcard = `*${name.slice(Math.max(0, name.indexOf(".")))}`;
  return names.some((known) => known === name || known === wildcard);
}

function isCurrent(entry: Entry, { listener, certificates, validation }: EntryParts): boolean {
  return (
    entry.listener === listener &&
    entry.validation === validation &&
    entry.certificates.length === certificates.length &&
    entry.certificates.every((certificate, at) => certificate === certificates[at])
  );
}

/**
 * AllowValidOnly rejects clients without a valid certificate. AllowInsecureFallback asks for one
 * and accepts every client. Without a usable CA no certificate is valid: Node would use the
 * system's CAs if it got none.
 */
function clientOptions({ authorities, mode }: ClientValidation): TlsOptions {
  return {
    requestCert: true,
    rejectUnauthorized: mode === "AllowValidOnly",
    ca: authorities.length > 0 ? [...authorities] : [],
  };
}

/**
 * An intermediate can be the authority, as with Envoy. A server of Node takes that setting from
 * contexts for server names alone: clients that name none need a chain up to a root.
 */
function partialChains(validation: ClientValidation | undefined, options: TlsOptions): TlsOptions {
  if (validation?.mode !== "AllowValidOnly" || validation.authorities.length === 0) return {};
  const context = createSecureContext({ ...options, allowPartialTrustChain: true });
  return { SNICallback: (_name, done) => done(null, context) };
}

/**
 * Those that can be served: the first of each kind of key, because a client gets to see one of a
 * kind it can verify.
 */
function usableOf(certificates: readonly CertificateItem[]): readonly CertificateItem[] {
  const byKind = new Map<string | undefined, CertificateItem>();
  for (const certificate of certificates) {
    if (checkCertificate(certificate) !== undefined) continue;
    const kind = new X509Certificate(certificate.chain).publicKey.asymmetricKeyType;
    if (!byKind.has(kind)) byKind.set(kind, certificate);
  }
  return [...byKind.values()];
}
