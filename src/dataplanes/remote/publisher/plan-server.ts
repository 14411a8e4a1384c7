/**
 * The server of the plan stream: HTTP/2 over TLS, in front of a PlanPublisher. Everything that
 * reaches the port may connect. Until a peer has proven which pod it is, it gets little memory and
 * little time. Every refused connection is reported.
 */
import {
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { LineTooLong, readLines } from "../protocol/lines.ts";
import {
  type HelloMessage,
  PLAN_PATH,
  type PodMessage,
  PROTOCOL,
  PROTOCOL_HEADER,
} from "../protocol/protocol.ts";
import type { PlanPublisher } from "./plan-publisher.ts";
import type { Replica } from "./replica.ts";
import {
  UNAUTHENTICATED_PEER_LIMITS,
  type UnauthenticatedPeerLimits,
  UnauthenticatedPeers,
} from "./unauthenticated-peers.ts";

export interface PlanServerOptions {
  readonly publisher: PlanPublisher;
  readonly certificate: string;
  readonly key: string;
  readonly address: string;
  readonly port: number;
  /**
   * Whether the bearer of a token is that pod and may have the items of that Gateway
   * (`namespace/name`).
   */
  readonly authorize: (token: string, claim: PodClaim) => Promise<boolean>;
  readonly onRefused?: (refusal: StreamRefusal) => void;
  readonly limits?: Partial<UnauthenticatedPeerLimits>;
}

export interface PodClaim {
  readonly gateway: string;
  readonly pod: string;
}

/**
 * `token`: the request has none. `hello`: the first message is not valid, or came too late.
 * `identity`: the token is not that pod's. `elsewhere`: the pod is connected from another address.
 * `crowd`: too many unauthenticated peers at once.
 */
export type RefusalReason = "token" | "hello" | "identity" | "elsewhere" | "crowd";

export interface StreamRefusal {
  readonly reason: RefusalReason;
  readonly peer: string;
  /** What the peer claimed to be, if it has sent a hello. */
  readonly claim?: PodClaim;
}

const MAX_LINE = 16 * 1024 * 1024;
const MAX_NAME = 520;
const PING_MS = 10_000;
/** Time for a refused peer to read the response. */
const GOODBYE_MS = 500;

export class PlanServer {
  readonly #publisher: PlanPublisher;
  readonly #options: PlanServerOptions;
  readonly #server: Http2SecureServer;
  readonly #connections: Map<ServerHttp2Session, PeerConnection> = new Map();
  readonly #limits: UnauthenticatedPeerLimits;
  readonly #unauthenticated: UnauthenticatedPeers;

  constructor(options: PlanServerOptions) {
    this.#options = options;
    this.#publisher = options.publisher;
    this.#limits = { ...UNAUTHENTICATED_PEER_LIMITS, ...options.limits };
    this.#unauthenticated = new UnauthenticatedPeers(this.#limits);
    this.#server = createSecureServer({
      cert: options.certificate,
      key: options.key,
      minVersion: "TLSv1.3",
      handshakeTimeout: this.#limits.helloMs,
      settings: { maxConcurrentStreams: 2 },
    });
    this.#server.on("session", (session) => this.#meet(session));
    this.#server.on("stream", (stream, headers) => {
      stream.on("error", () => stream.destroy());
      const connection = this.#connections.get(stream.session as ServerHttp2Session);
      if (connection === undefined || connection.isRefused) return stream.destroy();
      if (headers[":method"] !== "POST" || headers[":path"] !== PLAN_PATH)
        return this.#refuse(connection, stream, { status: 404, reason: "hello" });
      const token = /^Bearer (.+)$/.exec(headers["authorization"] ?? "")?.[1];
      if (token === undefined) return this.#refuse(connection, stream, { status: 401, reason: "token" });
      return void this.#serve(connection, stream, token).catch(() => stream.destroy());
    });
  }

  listen(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(this.#options.port, this.#options.address, () => {
        this.#server.removeListener("error", reject);
        const bound = this.#server.address();
        resolve(typeof bound === "object" && bound !== null ? bound.port : this.#options.port);
      });
    });
  }

  /** Uses another certificate for new connections. Open streams stay open. */
  renew({ certificate, key }: Pick<PlanServerOptions, "certificate" | "key">): void {
    this.#server.setSecureContext({ cert: certificate, key, minVersion: "TLSv1.3" });
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const session of this.#connections.keys()) session.destroy();
    await closed;
  }

  #meet(session: ServerHttp2Session): void {
    const peer = session.socket.remoteAddress ?? "";
    session.on("error", () => session.destroy());
    const leave = this.#unauthenticated.enter(peer);
    if (leave === undefined) {
      this.#options.onRefused?.({ reason: "crowd", peer });
      session.destroy();
      return;
    }
    const limit = setTimeout(() => {
      this.#options.onRefused?.({ reason: "hello", peer });
      session.destroy();
    }, this.#limits.helloMs);
    this.#connections.set(session, { session, peer, limit, leave, isRefused: false });
    let answered = true;
    const timer = setInterval(() => {
      // A ping on a session that has ended throws, and "close" comes only later.
      if (!answered || session.destroyed) return session.destroy();
      answered = false;
      return void session.ping(() => {
        answered = true;
      });
    }, PING_MS);
    timer.unref();
    session.once("close", () => {
      clearInterval(timer);
      clearTimeout(limit);
      this.#connections.delete(session);
      setTimeout(leave, this.#limits.restMs).unref();
    });
  }

  async #serve(connection: PeerConnection, stream: ServerHttp2Stream, token: string): Promise<void> {
    let replica: Replica | undefined;
    const limit = (): number => (replica === undefined ? this.#limits.helloBytes : MAX_LINE);
    try {
      for await (const line of readLines(stream, limit)) {
        const message = parsed(line);
        if (message?.type === "hello" && replica === undefined) {
          replica = await this.#admit(connection, stream, { token, hello: message });
          if (replica === undefined) return;
        } else if (
          message === undefined ||
          replica === undefined ||
          !this.#publisher.take(replica, message)
        ) {
          return this.#refuse(connection, stream, { status: 400, reason: "hello" });
        }
      }
    } catch (error) {
      if (!(error instanceof LineTooLong)) throw error;
      this.#refuse(connection, stream, { status: 400, reason: "hello" });
    } finally {
      if (replica !== undefined) this.#publisher.dismiss(replica);
    }
  }

  async #admit(
    connection: PeerConnection,
    stream: ServerHttp2Stream,
    { token, hello }: { readonly token: string; readonly hello: HelloMessage },
  ): Promise<Replica | undefined> {
    const { gateway, pod } = hello;
    const claim = { gateway, pod };
    if (!(await this.#options.authorize(token, claim))) {
      this.#refuse(connection, stream, { status: 403, reason: "identity", claim });
      return undefined;
    }
    if (stream.destroyed) return undefined;
    // A stolen token cannot be used while its pod is connected.
    if (this.#publisher.streamsOf(claim).some(({ address }) => address !== connection.peer)) {
      this.#refuse(connection, stream, { status: 409, reason: "elsewhere", claim });
      return undefined;
    }
    clearTimeout(connection.limit);
    connection.leave();
    stream.respond({
      ":status": 200,
      "content-type": "application/x-ndjson",
      [PROTOCOL_HEADER]: String(PROTOCOL),
    });
    const channel = {
      write: (message: object): boolean => stream.write(`${JSON.stringify(message)}\n`),
      close: (): void => void stream.destroy(),
    };
    const replica = this.#publisher.admit(channel, hello, connection.peer);
    stream.on("drain", () => this.#publisher.drained(replica));
    return replica;
  }

  /** Answers with a status, and closes the session after the peer had time to read it. */
  #refuse(
    connection: PeerConnection,
    stream: ServerHttp2Stream,
    { status, ...refusal }: Omit<StreamRefusal, "peer"> & { readonly status: number },
  ): void {
    this.#options.onRefused?.({ peer: connection.peer, ...refusal });
    connection.isRefused = true;
    clearTimeout(connection.limit);
    setTimeout(() => connection.session.destroy(), GOODBYE_MS).unref();
    if (!stream.headersSent && !stream.destroyed) stream.respond({ ":status": status }, { endStream: true });
    else stream.destroy();
  }
}

/** The session of a peer. Once it is authenticated, `limit` is cleared and `leave` is called. */
interface PeerConnection {
  readonly session: ServerHttp2Session;
  readonly peer: string;
  readonly limit: NodeJS.Timeout;
  readonly leave: () => void;
  isRefused: boolean;
}

/** A message with the fields of its type. The contents of lists are validated later. */
function parsed(line: string): PodMessage | undefined {
  let message: Partial<Record<string, unknown>>;
  try {
    message = JSON.parse(line) ?? {};
  } catch {
    return undefined;
  }
  const { type, gateway, pod, have } = message;
  if (type === "hello" && !(isName(gateway) && isName(pod))) return undefined;
  if (type === "serve" && (typeof have !== "object" || have === null)) return undefined;
  return message as unknown as PodMessage;
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_NAME;
}
