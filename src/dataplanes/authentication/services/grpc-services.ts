/**
 * One call of a gRPC method after the other, over HTTP/2 connections that are kept. Whoever answers
 * is not trusted: whatever is no proper answer (another content type, a status of gRPC, too long,
 * too late, broken off) is no answer at all.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { connect as connectTls } from "node:tls";
import type { BackendItem, BackendTls, Endpoint } from "../../../plan/backend.ts";
import type { CertificateItem } from "../../../plan/certificate.ts";
import { backendTlsOptions } from "../../backend-tls.ts";
import { frame, GrpcFrameReader } from "../../envoy/wire/grpc-frames.ts";
import { EndpointTurns } from "./endpoint-turns.ts";

/** Of an answer: 64 KiB for a body, and as much for fields. */
const LARGEST_ANSWER = 128 * 1024;
const IDLE_MS = 30_000;
const SETTINGS = { enablePush: false, maxHeaderListSize: 64 * 1024 };

export interface GrpcCall {
  readonly path: string;
  readonly message: Uint8Array;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

interface KeptSession {
  readonly session: ClientHttp2Session;
  /** What the connection was made with: another policy or certificate needs another connection. */
  readonly tls: BackendTls | undefined;
  readonly certificate: CertificateItem | undefined;
}

/** `refused`: the service has not had the call, and another endpoint may. */
export type GrpcOutcome = { readonly message: Buffer } | "failed" | "refused";

export class GrpcServices {
  readonly #clientCertificate: (gateway: string) => CertificateItem | undefined;
  readonly #sessions: Map<string, KeptSession> = new Map();
  readonly turns: EndpointTurns = new EndpointTurns();

  constructor(clientCertificate: (gateway: string) => CertificateItem | undefined) {
    this.#clientCertificate = clientCertificate;
  }

  async call(backend: BackendItem, endpoint: Endpoint, call: GrpcCall): Promise<GrpcOutcome> {
    const session = this.#session(backend, endpoint);
    if (session.closed || session.destroyed) return "refused";
    const stream = session.request({
      ":method": "POST",
      ":path": call.path,
      ":scheme": backend.tls === undefined ? "http" : "https",
      ":authority": authorityOf(backend),
      "content-type": "application/grpc",
      te: "trailers",
      "grpc-timeout": `${call.timeoutMs}m`,
    });
    return await outcomeOf(stream, call);
  }

  close(): void {
    for (const { session } of this.#sessions.values()) session.destroy();
    this.#sessions.clear();
  }

  #session(backend: BackendItem, { address, port }: Endpoint): ClientHttp2Session {
    const key = `${backend.id}|${address}|${port}`;
    const { tls } = backend;
    const certificate = tls && this.#clientCertificate(backend.gateway);
    const kept = this.#sessions.get(key);
    const fits = kept?.tls === tls && kept?.certificate === certificate;
    if (kept !== undefined && fits && !kept.session.closed && !kept.session.destroyed) return kept.session;
    kept?.session.close();
    const session = opened({ address, port }, tls, certificate);
    this.#sessions.set(key, { session, tls, certificate });
    session.on("error", () => session.destroy());
    session.on("goaway", () => session.close());
    session.setTimeout(IDLE_MS, () => session.close());
    session.on("close", () => {
      if (this.#sessions.get(key)?.session === session) this.#sessions.delete(key);
    });
    return session;
  }
}

function opened(
  { address, port }: Endpoint,
  tls: BackendTls | undefined,
  certificate: CertificateItem | undefined,
): ClientHttp2Session {
  const host = address.includes(":") ? `[${address}]` : address;
  if (tls === undefined) return connect(`http://${host}:${port}`, { settings: SETTINGS });
  const options = { ...backendTlsOptions(tls, certificate), ALPNProtocols: ["h2"], host: address, port };
  return connect(`https://${host}:${port}`, {
    settings: SETTINGS,
    createConnection: () => connectTls(options),
  });
}

function authorityOf({ tls, service: { namespace, name } }: BackendItem): string {
  return tls?.hostname ?? `${name}.${namespace}.svc`;
}

function outcomeOf(stream: ClientHttp2Stream, { message, signal }: GrpcCall): Promise<GrpcOutcome> {
  return new Promise((resolve) => {
    const reader = new GrpcFrameReader(LARGEST_ANSWER);
    const messages: Buffer[] = [];
    let hasHead = false;
    let status: unknown;
    const finish = (outcome: GrpcOutcome): void => {
      signal.removeEventListener("abort", giveUp);
      resolve(outcome);
      if (!stream.destroyed) stream.close(constants.NGHTTP2_CANCEL);
    };
    const giveUp = (): void => finish("failed");
    signal.addEventListener("abort", giveUp);
    stream.on("response", (head) => {
      hasHead = true;
      status = head["grpc-status"];
      const isGrpc = /^application\/grpc(\+proto)?($|;)/.test(String(head["content-type"]));
      if (head[":status"] !== 200 || !isGrpc) finish("failed");
    });
    stream.on("trailers", (trailers) => {
      status = trailers["grpc-status"];
    });
    stream.on("data", (chunk: Buffer) => {
      try {
        messages.push(...reader.push(chunk));
        if (messages.length > 1) finish("failed");
      } catch {
        finish("failed");
      }
    });
    stream.on("error", () => finish(hasHead ? "failed" : "refused"));
    stream.on("close", () => {
      const [only] = messages;
      if (!hasHead) finish("refused");
      else finish(status === "0" && only !== undefined ? { message: only } : "failed");
    });
    if (signal.aborted) giveUp();
    else stream.end(frame(message));
  });
}
