/**
 * A stand-in for Cloudflare's edge. It accepts connectors on TLS and then is the HTTP/2 client of
 * the connection: one stream carries the registration, one each configuration, and the others carry
 * clients' requests. Clients reach it by `fetch`, or by HTTP on its front door.
 */
import { randomUUID } from "node:crypto";
import {
  createServer as createFront,
  type Server as Front,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { createServer, type Server, type TLSSocket } from "node:tls";
import { authority, issue, type TestAuthority } from "../../support/certificates.ts";
import type { ApiDouble, StoredTunnel } from "./api-double.ts";
import { MessageReader } from "./capnp.ts";
import {
  bootstrapAnswer,
  emptyAnswer,
  type Registration,
  readToEdge,
  refusedAnswer,
  registeredAnswer,
} from "./registration.ts";

const UPGRADE = "cf-cloudflared-proxy-connection-upgrade";
/** The name on the certificate that connectors look for over HTTP/2. */
export const EDGE_NAME = "h2.cftunnel.com";

export interface EdgeRequest {
  readonly host: string;
  readonly path?: string;
  readonly method?: string;
  readonly scheme?: "http" | "https";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** The client's address, which the edge vouches for. */
  readonly from?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly trailers: IncomingHttpHeaders;
  /** Who answered: the origin or the connector itself. */
  readonly source: string | undefined;
}

interface Connection {
  readonly id: string;
  readonly session: ClientHttp2Session;
  readonly tunnel: StoredTunnel;
}

export class EdgeDouble {
  readonly ca: TestAuthority = authority("edge of the test");
  readonly #api: ApiDouble;
  readonly #server: Server;
  readonly #front: Front = createFront((request, response) => void this.#serveFront(request, response));
  readonly #connections: Map<string, Connection> = new Map();
  readonly #sessions: Set<ClientHttp2Session> = new Set();
  readonly #upgraded: Set<Duplex> = new Set();
  readonly #waiting: Set<() => void> = new Set();
  /** Hostnames that lead to a tunnel, as DNS would have it. */
  readonly names: Map<string, string> = new Map();
  /** Versions that connectors have said to have applied, in order. */
  readonly applied: number[] = [];
  readonly refused: string[] = [];
  /** False turns connectors away at the door. */
  accepting = true;

  private constructor(api: ApiDouble) {
    this.#api = api;
    const { cert, key } = issue(this.ca, [EDGE_NAME]);
    this.#server = createServer({ cert, key }, (socket) => this.#accept(socket));
    this.#server.on("tlsClientError", () => {});
    api.onConfiguration = (tunnel) => void this.#push(tunnel);
    api.onDisconnect = (tunnel) => this.disconnect(tunnel.id);
    this.#front.on("upgrade", (request, socket) => this.#upgrade(request, socket));
  }

  static async start(api: ApiDouble, host = "127.0.0.1"): Promise<EdgeDouble> {
    const edge = new EdgeDouble(api);
    for (const server of [edge.#server, edge.#front]) {
      await new Promise<void>((resolve) => server.listen(0, host, resolve));
    }
    return edge;
  }

  /** Where connectors connect. */
  get address(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `${address}:${port}`;
  }

  /** Where clients connect that do not call `fetch`. */
  get frontUrl(): string {
    return `http://127.0.0.1:${(this.#front.address() as AddressInfo).port}`;
  }

  connectionsOf(tunnel: string): number {
    return [...this.#connections.values()].filter((connection) => connection.tunnel.id === tunnel).length;
  }

  /** Resolves when it holds; the test's own time limit is the bound. */
  async until(satisfied: () => boolean): Promise<void> {
    while (!satisfied()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  disconnect(tunnel: string): void {
    for (const connection of this.#connections.values())
      if (connection.tunnel.id === tunnel) connection.session.destroy();
  }

  async close(): Promise<void> {
    this.#front.closeAllConnections();
    for (const socket of this.#upgraded) socket.destroy();
    for (const session of this.#sessions) session.destroy();
    await Promise.all(
      [this.#server, this.#front].map((server) => new Promise((resolve) => server.close(resolve))),
    );
  }

  /** A client's request to a tunnel. */
  async fetch(tunnel: string, asked: EdgeRequest): Promise<Answer> {
    const stream = this.#send(tunnel, asked);
    stream.end(asked.body);
    return await answerOf(stream);
  }

  #send(tunnel: string, asked: EdgeRequest, upgrade?: string): ClientHttp2Stream {
    const connection = [...this.#connections.values()].find((candidate) => candidate.tunnel.id === tunnel);
    if (connection === undefined) throw new Error("no connector is connected (error 1033)");
    const { host, path = "/", method = "GET", scheme = "https", from = "203.0.113.7" } = asked;
    const own = { ...asked.headers };
    // The edge overwrites these headers of the client.
    for (const name of ["cf-connecting-ip", "x-forwarded-proto", "cf-visitor"]) delete own[name];
    const before = own["x-forwarded-for"];
    const fields = {
      ...own,
      ":method": method,
      ":scheme": "https",
      ":authority": host,
      ":path": path,
      "cf-connecting-ip": from,
      "cf-ray": `${randomUUID().slice(0, 8)}-TST`,
      "cf-visitor": JSON.stringify({ scheme }),
      "x-forwarded-for": before === undefined ? from : `${before}, ${from}`,
      "x-forwarded-proto": scheme,
      ...(upgrade === undefined ? {} : { [UPGRADE]: upgrade }),
    };
    return connection.session.request(fields, { endStream: false });
  }

  #accept(socket: TLSSocket): void {
    socket.on("error", () => {});
    if (!this.accepting) {
      socket.destroy();
      return;
    }
    const session = connect("http://edge", { createConnection: () => socket });
    this.#sessions.add(session);
    session.on("error", () => {});
    const control = session.request({ ":method": "POST", ":path": "/", [UPGRADE]: "control-stream" });
    control.on("error", () => {});
    const reader = new MessageReader();
    let id: string | undefined;
    control.on("data", (chunk: Buffer) => {
      for (const message of reader.push(chunk).map(readToEdge)) {
        if (message.type === "bootstrap") control.write(bootstrapAnswer(message.question));
        if (message.type === "register" && !this.accepting) session.destroy();
        else if (message.type === "register") {
          const accepted = this.#register(message.registration, session);
          id = accepted?.id;
          control.write(
            accepted === undefined
              ? refusedAnswer(message.question, "Unauthorized: Invalid tunnel secret")
              : registeredAnswer(message.question, accepted.id, "tst01"),
          );
          if (accepted !== undefined) void this.#pushTo(accepted);
        }
        if (message.type === "unregister") {
          control.write(emptyAnswer(message.question));
          this.#forget(id);
        }
      }
    });
    session.on("close", () => {
      this.#sessions.delete(session);
      this.#forget(id);
    });
  }

  #register(registration: Registration, session: ClientHttp2Session): Connection | undefined {
    const { account, tunnel: id, secret, connector } = registration;
    const tunnel = this.#api.tunnels.get(id);
    if (
      account !== this.#api.account ||
      tunnel === undefined ||
      tunnel.deleted ||
      !tunnel.secret.equals(secret)
    ) {
      this.refused.push(id);
      return undefined;
    }
    const connection = { id: randomUUID(), session, tunnel };
    this.#connections.set(connection.id, connection);
    tunnel.connections.set(connection.id, { connector, location: "tst01" });
    this.#changed();
    return connection;
  }

  #forget(id: string | undefined): void {
    const connection = id === undefined ? undefined : this.#connections.get(id);
    if (id === undefined || connection === undefined) return;
    this.#connections.delete(id);
    connection.tunnel.connections.delete(id);
    this.#changed();
  }

  async #push(tunnel: StoredTunnel): Promise<void> {
    for (const connection of this.#connections.values())
      if (connection.tunnel === tunnel) await this.#pushTo(connection);
  }

  async #pushTo({ session, tunnel }: Connection): Promise<void> {
    if (tunnel.config === null) return;
    const stream = session.request({ ":method": "PUT", ":path": "/", [UPGRADE]: "update-configuration" });
    stream.end(JSON.stringify({ version: tunnel.version, config: tunnel.config }));
    try {
      const { lastAppliedVersion } = JSON.parse(await textOf(stream)) as { lastAppliedVersion: number };
      this.applied.push(lastAppliedVersion);
    } catch {
      // The connector has gone; the next one gets the configuration when it registers.
    }
    this.#changed();
  }

  #changed(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  /** The most specific name wins, as a proxied record would. */
  #tunnelOf(host: string): string | undefined {
    const name = host.replace(/:\d+$/, "");
    if (this.names.has(name)) return this.names.get(name);
    const wildcards = [...this.names.keys()].filter(
      (key) => key.startsWith("*.") && name.endsWith(key.slice(1)),
    );
    const best = wildcards.sort((a, b) => b.length - a.length)[0];
    return best === undefined ? undefined : this.names.get(best);
  }

  async #serveFront(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = edgeRequestOf(request);
    const tunnel = this.#tunnelOf(asked.host);
    try {
      if (tunnel === undefined) throw new Error("no such name (error 1016)");
      const stream = this.#send(tunnel, asked);
      request.pipe(stream);
      const { status, headers } = await headOf(stream);
      response.writeHead(status, headers);
      stream.pipe(response);
    } catch (error) {
      response.writeHead(530).end(`${(error as Error).message}\n`);
    }
  }

  #upgrade(request: IncomingMessage, socket: Duplex): void {
    const asked = edgeRequestOf(request);
    const tunnel = this.#tunnelOf(asked.host);
    if (tunnel === undefined) {
      socket.destroy();
      return;
    }
    this.#upgraded.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => this.#upgraded.delete(socket));
    const stream = this.#send(tunnel, asked, "websocket");
    stream.on("error", () => socket.destroy());
    void headOf(stream).then(({ status, headers }) => {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      // 101 does not exist in HTTP/2: a connector says 200 for it.
      socket.write(`HTTP/1.1 ${status === 200 ? 101 : status} -\r\n${lines.join("")}\r\n`);
      stream.pipe(socket).pipe(stream);
    });
  }
}

function edgeRequestOf(request: IncomingMessage): EdgeRequest {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined && !HOP_BY_HOP.has(name)) headers[name] = String(value);
  }
  const { host = "" } = request.headers;
  return { host, path: request.url ?? "/", method: request.method ?? "GET", headers, scheme: "http" };
}

const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "upgrade",
  "transfer-encoding",
  "keep-alive",
]);

async function headOf(stream: ClientHttp2Stream): Promise<Pick<Answer, "status" | "headers" | "source">> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingHttpHeaders>();
  stream.once("response", resolve);
  stream.once("error", reject);
  stream.once("close", () => reject(new Error("the connector has gone (error 502)")));
  const raw = await promise;
  const meta = raw["cf-cloudflared-response-meta"];
  return {
    status: Number(raw[constants.HTTP2_HEADER_STATUS]),
    headers: unwrapped(String(raw["cf-cloudflared-response-headers"] ?? "")),
    source: meta === undefined ? undefined : (JSON.parse(String(meta)) as { src: string }).src,
  };
}

async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  let trailers: IncomingHttpHeaders = {};
  stream.on("trailers", (received) => {
    trailers = received;
  });
  const head = await headOf(stream);
  const body = await textOf(stream);
  return { ...head, body, trailers };
}

async function textOf(stream: ClientHttp2Stream): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** Pairs of base64 without padding: name, colon, value; semicolons between. */
function unwrapped(header: string): Readonly<Record<string, string>> {
  const decode = (part: string | undefined): string => Buffer.from(part ?? "", "base64").toString();
  const pairs = header.split(";").filter((pair) => pair !== "");
  return Object.fromEntries(
    pairs.map((pair) => pair.split(":")).map(([name, value]) => [decode(name).toLowerCase(), decode(value)]),
  );
}
