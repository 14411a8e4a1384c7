import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { KubernetesClient } from "../../src/kubernetes/client.ts";
import { type Credentials, plainCredentials } from "../../src/kubernetes/credentials.ts";
import { type Eventually, eventuallyWithin } from "../support/eventually.ts";

/** One request as a test sees it. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

interface KeyPair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export type Handler = (request: Seen, answer: Answer) => void;

/** Ways in which a server answers, or fails to. */
export class Answer {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  json(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): void {
    this.#response.writeHead(status, { "content-type": "application/json", ...headers });
    this.#response.end(JSON.stringify(body));
  }

  refuse(status: number, reason: string, headers: Readonly<Record<string, string>> = {}): void {
    this.json({ kind: "Status", code: status, reason, message: `${reason} on demand` }, status, headers);
  }

  /** Events of a watch that stays open. */
  events(...events: readonly unknown[]): void {
    if (!this.#response.headersSent) {
      this.#response.writeHead(200, { "content-type": "application/json" });
      this.#response.flushHeaders();
    }
    for (const event of events) this.#response.write(`${JSON.stringify(event)}\n`);
  }

  raw(text: string | Buffer): void {
    this.#response.write(text);
  }

  end(): void {
    this.#response.end();
  }

  /** The connection breaks in the middle of a chunk. */
  breakOff(): void {
    this.#response.socket?.destroy();
  }
}

/**
 * Plays an API server for what a real one does not do on demand: forgetting versions, hanging,
 * breaking off, refusing.
 */
export class ServerDouble {
  readonly requests: Seen[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #scheme: string;
  #handler: Handler;

  private constructor(handler: Handler, tls: KeyPair | undefined) {
    this.#handler = handler;
    const take: RequestListener = (request, response) => void this.#take(request, response);
    this.#server = tls === undefined ? createServer(take) : createSecureServer(tls, take);
    this.#scheme = tls === undefined ? "http" : "https";
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => {});
    });
  }

  /** With TLS for programs whose kubeconfig sends a token: that is never sent in the clear. */
  static async start(handler: Handler, tls?: KeyPair): Promise<ServerDouble> {
    const double = new ServerDouble(handler, tls);
    await new Promise<void>((resolve) => double.#server.listen(0, "127.0.0.1", resolve));
    return double;
  }

  get url(): URL {
    return new URL(`${this.#scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`);
  }

  client(credentials: Credentials = plainCredentials(this.url)): KubernetesClient {
    return new KubernetesClient(credentials, "test");
  }

  answerWith(handler: Handler): void {
    this.#handler = handler;
  }

  breakConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.breakConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const url = new URL(request.url ?? "/", this.url);
    const text = Buffer.concat(parts).toString("utf8");
    const seen = {
      method: request.method ?? "",
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body: text === "" ? undefined : (JSON.parse(text) as unknown),
    };
    this.requests.push(seen);
    this.#handler(seen, new Answer(response));
  }
}

export const eventually: Eventually = eventuallyWithin(20, 5);
