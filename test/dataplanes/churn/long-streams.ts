/**
 * Four tenants with something that lasts: a slow download, a WebSocket, an HTTP/2 answer and a gRPC
 * call in both directions. Each runs until it is told to end, and then says what it has noticed.
 */

import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  createServer as createH2cServer,
} from "node:http2";
import { connect, type Server } from "node:net";
import type { Writable } from "node:stream";
import { issue, type TestAuthority } from "../support/certificates.ts";
import type { Backends } from "../support/http-peers.ts";
import { Counting, Recount } from "./counting.ts";
import { hostOf, type Tenant } from "./tenants.ts";

export interface LongStream {
  readonly tenant: Tenant;
  /** Bytes that have arrived so far. */
  received(): number;
  /** Lets it come to its end, and tells everything that should not have happened. */
  finish(): Promise<readonly string[]>;
}

export interface LongTenant {
  readonly tenant: Tenant;
  open(portOf: (port: number) => number): Promise<LongStream>;
}

const EVERY_MS = 5;
const NUMBERS = 256;

/** A download of one KiB every few milliseconds, over HTTP/1.1. */
export async function download(backends: Backends, ca: TestAuthority): Promise<LongTenant> {
  const source = new SlowSource();
  const server = createServer((_request, response) => source.feed(response));
  const tenant = await tenantOf("download", { backends, server, ca, ports: [80] });
  return {
    tenant,
    open: async (portOf) => {
      const notes = new Notes(server);
      const sent = request({
        host: "127.0.0.1",
        port: portOf(80),
        headers: { host: hostOf(tenant) },
        agent: false,
      });
      sent.on("error", (error) => notes.add(error.message)).end();
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      response.on("aborted", () => notes.add("cut off"));
      const recount = new Recount(response);
      return {
        tenant,
        received: () => recount.total,
        finish: async () => {
          source.end();
          await once(response, "close");
          if (!response.complete) notes.add("not complete");
          return notes.of(recount, source.total);
        },
      };
    },
  };
}

/** An HTTP/2 answer over TLS that goes on and on. */
export async function http2Answer(backends: Backends, ca: TestAuthority): Promise<LongTenant> {
  const source = new SlowSource();
  const server = createServer((_request, response) => source.feed(response));
  const tenant = await tenantOf("stream", { backends, server, ca, ports: [443] });
  return {
    tenant,
    open: async (portOf) => {
      const notes = new Notes(server);
      const session = openSession(tenant, ca, { port: portOf(443), notes });
      const stream = session.request({ ":path": "/", ":authority": hostOf(tenant) });
      stream.on("error", (error) => notes.add(error.message)).on("aborted", () => notes.add("cut off"));
      const recount = new Recount(stream);
      await once(stream, "response");
      return {
        tenant,
        received: () => recount.total,
        finish: async () => {
          source.end();
          await once(stream, "end");
          return endSession(session, notes.of(recount, source.total));
        },
      };
    },
  };
}

/** Numbers there and back over a WebSocket; its frames are nobody's business but the ends'. */
export async function webSocket(backends: Backends, ca: TestAuthority): Promise<LongTenant> {
  const server = createServer();
  server.on("upgrade", (_request, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    socket.on("error", () => {}).pipe(socket);
  });
  const tenant = await tenantOf("socket", { backends, server, ca, ports: [80] });
  return {
    tenant,
    open: async (portOf) => {
      const notes = new Notes(server);
      const socket = connect({ host: "127.0.0.1", port: portOf(80), allowHalfOpen: true });
      socket.on("error", (error) => notes.add(error.message));
      socket.write(
        `GET / HTTP/1.1\r\nHost: ${hostOf(tenant)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      );
      const [head] = (await once(socket, "data")) as [Buffer];
      if (!head.toString("latin1").startsWith("HTTP/1.1 101 ")) throw new Error(`no switch: ${head}`);
      const recount = new Recount(socket);
      const source = new SlowSource();
      source.feed(socket);
      return {
        tenant,
        received: () => recount.total,
        finish: async () => {
          source.end();
          await once(socket, "end");
          return notes.of(recount, source.total);
        },
      };
    },
  };
}

/** A gRPC call with messages in both directions, one status at the end. */
export async function grpcCall(backends: Backends, ca: TestAuthority): Promise<LongTenant> {
  const server = createH2cServer();
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.pipe(stream);
  });
  const tenant = await tenantOf("call", { backends, server, ca, ports: [443], routeKind: "GRPCRoute" });
  return {
    tenant,
    open: async (portOf) => {
      const notes = new Notes(server);
      const session = openSession(tenant, ca, { port: portOf(443), notes });
      const stream = session.request(
        {
          ":method": "POST",
          ":path": "/shop.Orders/Watch",
          ":authority": hostOf(tenant),
          "content-type": "application/grpc",
          te: "trailers",
        },
        { endStream: false },
      );
      stream.on("error", (error) => notes.add(error.message)).on("aborted", () => notes.add("cut off"));
      const messages = new Messages();
      stream.on("data", (chunk: Buffer) => messages.add(chunk));
      const trailers = once(stream, "trailers");
      const source = new SlowSource(framed);
      source.feed(stream);
      await once(stream, "response");
      return {
        tenant,
        received: () => messages.recount.total,
        finish: async () => {
          source.end();
          const [last] = (await trailers) as [Readonly<Record<string, string>>];
          if (last["grpc-status"] !== "0") notes.add(`status ${last["grpc-status"]}`);
          return endSession(session, notes.of(messages.recount, source.total));
        },
      };
    },
  };
}

/** Writes numbers at a pace until it is told to end. */
class SlowSource {
  readonly #counting: Counting = new Counting();
  readonly #wrap: (numbers: Buffer) => Buffer;
  #finish: (() => void) | undefined;

  constructor(wrap: (numbers: Buffer) => Buffer = (numbers) => numbers) {
    this.#wrap = wrap;
  }

  get total(): number {
    return this.#counting.total;
  }

  feed(sink: Writable): void {
    const timer = setInterval(() => {
      if (!sink.writableNeedDrain) sink.write(this.#wrap(this.#counting.take(NUMBERS)));
    }, EVERY_MS);
    sink.once("close", () => clearInterval(timer));
    this.#finish = () => {
      clearInterval(timer);
      sink.end();
    };
  }

  end(): void {
    this.#finish?.();
  }
}

/** One message of gRPC: not compressed, its length, its bytes. */
function framed(bytes: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** Takes messages apart again. */
class Messages {
  readonly recount: Recount = new Recount();
  #rest: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 5) {
      const end = 5 + this.#rest.readUInt32BE(1);
      if (this.#rest.length < end) return;
      this.recount.add(this.#rest.subarray(5, end));
      this.#rest = this.#rest.subarray(end);
    }
  }
}

/** What a stream has noticed that it should not have. */
class Notes {
  readonly #list: string[] = [];
  #connections = 0;

  constructor(server: Server) {
    server.on("connection", () => this.#connections++);
  }

  add(note: string): void {
    this.#list.push(note);
  }

  of(recount: Recount, sent: number): readonly string[] {
    if (recount.problem !== undefined) this.add(recount.problem);
    if (recount.total !== sent) this.add(`${recount.total} bytes of ${sent} have arrived`);
    if (this.#connections !== 1) this.add(`the backend was called ${this.#connections} times`);
    return this.#list;
  }
}

function openSession(
  tenant: Tenant,
  ca: TestAuthority,
  { port, notes }: { readonly port: number; readonly notes: Notes },
): ClientHttp2Session {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: ca.cert, servername: hostOf(tenant) });
  session.on("error", (error) => notes.add(error.message)).on("goaway", () => notes.add("told to go away"));
  return session;
}

function endSession(session: ClientHttp2Session, notes: readonly string[]): readonly string[] {
  const all = session.closed || session.destroyed ? [...notes, "the session has closed"] : notes;
  session.removeAllListeners("goaway").destroy();
  return all;
}

async function tenantOf(
  name: string,
  parts: {
    readonly backends: Backends;
    readonly server: Server;
    readonly ca: TestAuthority;
    readonly ports: readonly number[];
    readonly routeKind?: "GRPCRoute";
  },
): Promise<Tenant> {
  const { backends, server, ca, ports, routeKind } = parts;
  const backend = await backends.listen(server);
  const certificate = issue(ca, [`${name}.test`]);
  return { name, certificate, backend, ports, ...(routeKind === undefined ? {} : { routeKind }) };
}
