/**
 * A collector that speaks OTLP over HTTP and gRPC, in the clear or with TLS, and reads what it is
 * sent by the numbers of opentelemetry-proto (trace/v1, logs/v1, common/v1).
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import {
  createServer as createHttp2,
  createSecureServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { createServer as createSecure } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TestCertificate } from "./certificates.ts";

export interface ReceivedRecord {
  readonly signal: "traces" | "logs";
  readonly resource: Readonly<Record<string, string | number>>;
  readonly scope: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly kind: number;
  /** Nanoseconds since the epoch. */
  readonly start: bigint;
  readonly end: bigint;
  readonly status: number;
  readonly body: string;
  readonly attributes: Readonly<Record<string, string | number>>;
}

export interface CollectorOptions {
  readonly protocol?: "HTTP" | "GRPC";
  readonly certificate?: TestCertificate;
  /** What to answer with, by the count of requests from 1: a status of HTTP or gRPC. */
  readonly answer?: (request: number) => number | undefined;
  /** Never answers. */
  readonly isStuck?: boolean;
  /** Says that it has not taken so many records of each request. */
  readonly rejects?: number;
}

export class OtlpCollector {
  readonly records: ReceivedRecord[] = [];
  readonly paths: Set<string> = new Set();
  requests = 0;
  readonly #options: CollectorOptions;
  readonly #server: Server | Http2Server;
  readonly #sockets: Set<Socket | ServerHttp2Session> = new Set();

  constructor(options: CollectorOptions = {}) {
    this.#options = options;
    const tls = options.certificate && { cert: options.certificate.cert, key: options.certificate.key };
    const serve = (request: IncomingMessage, response: ServerResponse): void =>
      void this.#serveHttp(request, response);
    if (options.protocol === "GRPC") {
      const server = tls === undefined ? createHttp2() : createSecureServer(tls);
      server.on("stream", (stream, headers) => this.#serveGrpc(stream, String(headers[":path"])));
      server.on("session", (session: ServerHttp2Session) => this.#sockets.add(session));
      this.#server = server as Http2Server;
    } else {
      this.#server = tls === undefined ? createServer(serve) : createSecure(tls, serve);
      this.#server.on("connection", (socket: Socket) => this.#sockets.add(socket));
    }
  }

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const { port } = this.#server.address() as AddressInfo;
    return this.#options.certificate === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  get spans(): readonly ReceivedRecord[] {
    return this.records.filter(({ signal }) => signal === "traces");
  }

  get logs(): readonly ReceivedRecord[] {
    return this.records.filter(({ signal }) => signal === "logs");
  }

  async #serveHttp(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const status = this.#answer(request.url ?? "", Buffer.concat(chunks));
    if (this.#options.isStuck === true) return;
    const isBinary = request.headers["content-type"] === "application/x-protobuf";
    response.writeHead(isBinary ? (status ?? 200) : 415, { "content-type": "application/x-protobuf" });
    response.end(this.#response());
  }

  #serveGrpc(stream: ServerHttp2Stream, path: string): void {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", () => {});
    stream.on("end", () => {
      const body = Buffer.concat(chunks);
      const status = this.#answer(path, body.subarray(5));
      if (this.#options.isStuck === true) return;
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": String(status ?? 0) }));
      const head = Buffer.alloc(5);
      head.writeUInt32BE(this.#response().length, 1);
      stream.end(Buffer.concat([head, this.#response()]));
    });
  }

  #response(): Buffer {
    const { rejects } = this.#options;
    return rejects === undefined ? Buffer.alloc(0) : Buffer.from([0x0a, 2, 0x08, rejects]);
  }

  #answer(path: string, body: Buffer): number | undefined {
    this.requests++;
    this.paths.add(path);
    const status = this.#options.answer?.(this.requests);
    if (status === undefined && this.#options.isStuck !== true)
      this.records.push(...readExport(path.includes("race") ? "traces" : "logs", body));
    return status;
  }
}

type Field = Buffer | bigint;

function readExport(signal: "traces" | "logs", body: Buffer): readonly ReceivedRecord[] {
  return messagesAt(body, 1).flatMap((group) => {
    const resource = attributesAt(messagesAt(group, 1)[0] ?? Buffer.alloc(0), 1);
    return messagesAt(group, 2).flatMap((scoped) => {
      const scope = textAt(messagesAt(scoped, 1)[0] ?? Buffer.alloc(0), 1);
      return messagesAt(scoped, 2).map((each) => readRecord(signal, each, { resource, scope }));
    });
  });
}

function readRecord(
  signal: "traces" | "logs",
  record: Buffer,
  around: Pick<ReceivedRecord, "resource" | "scope">,
): ReceivedRecord {
  const isSpan = signal === "traces";
  const status = messagesAt(record, 15)[0];
  const body = messagesAt(record, 5)[0];
  return {
    signal,
    ...around,
    name: textAt(record, isSpan ? 5 : 12),
    traceId: hexAt(record, isSpan ? 1 : 9),
    spanId: hexAt(record, isSpan ? 2 : 10),
    parentId: isSpan ? hexAt(record, 4) : "",
    kind: isSpan ? Number(fieldsAt(record, 6)[0] ?? 0n) : 0,
    start: (fieldsAt(record, isSpan ? 7 : 1)[0] ?? 0n) as bigint,
    end: (fieldsAt(record, isSpan ? 8 : 11)[0] ?? 0n) as bigint,
    status: isSpan && status !== undefined ? Number(fieldsAt(status, 3)[0] ?? 0n) : 0,
    body: isSpan || body === undefined ? "" : textAt(body, 1),
    attributes: attributesAt(record, isSpan ? 9 : 6),
  };
}

function attributesAt(message: Buffer, number: number): Readonly<Record<string, string | number>> {
  return Object.fromEntries(
    messagesAt(message, number).map((pair) => {
      const value = messagesAt(pair, 2)[0] ?? Buffer.alloc(0);
      const [double] = fieldsAt(value, 4);
      const [integer] = fieldsAt(value, 3);
      if (typeof integer === "bigint") return [textAt(pair, 1), Number(integer)];
      if (typeof double === "bigint") {
        const bytes = Buffer.alloc(8);
        bytes.writeBigUInt64LE(double);
        return [textAt(pair, 1), bytes.readDoubleLE()];
      }
      return [textAt(pair, 1), textAt(value, 1)];
    }),
  );
}

function textAt(message: Buffer, number: number): string {
  return messagesAt(message, number)[0]?.toString() ?? "";
}

function hexAt(message: Buffer, number: number): string {
  return messagesAt(message, number)[0]?.toString("hex") ?? "";
}

function messagesAt(message: Buffer, number: number): readonly Buffer[] {
  return fieldsAt(message, number).filter((field) => typeof field !== "bigint");
}

/** Every field of a message with that number; fails on bytes that are no message. */
function fieldsAt(message: Buffer, number: number): readonly Field[] {
  const found: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++];
      if (byte === undefined) throw new Error("the message ends within a field");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const type = tag & 7;
    let value: Field;
    if (type === 0) value = varint();
    else if (type === 1) {
      value = message.readBigUInt64LE(at);
      at += 8;
    } else if (type === 5) {
      value = BigInt(message.readUInt32LE(at));
      at += 4;
    } else if (type === 2) {
      const length = Number(varint());
      if (at + length > message.length) throw new Error("the message ends within a field");
      value = message.subarray(at, at + length);
      at += length;
    } else throw new Error(`there is no wire type ${type}`);
    if (tag >> 3 === number) found.push(value);
  }
  return found;
}
