/**
 * The project's own HTTP/2 and node:http2 with each other, over real sockets: what one says the
 * other understands.
 */

import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
} from "node:http2";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type AnswerHandler,
  ClientSession,
} from "../../../../src/dataplanes/embedded/http2/client-session.ts";
import { ServerSession } from "../../../../src/dataplanes/embedded/http2/server-session.ts";
import { SocketWire } from "../../../../src/dataplanes/embedded/http2/wire.ts";
import { defaultLimits } from "../../../../src/dataplanes/embedded/limits/options.ts";
import { HeaderFields } from "../../../../src/dataplanes/embedded/message/header-fields.ts";

interface Message {
  readonly fields: readonly (readonly [string, string])[];
  readonly body: Buffer;
  readonly trailers: readonly (readonly [string, string])[];
}

const limits = { ...defaultLimits, keepAliveTimeoutMs: 0, headerTimeoutMs: 0 };
const sockets = new Set<Socket>();
let ours: Server;
let theirs: ReturnType<typeof createHttp2Server>;
let client: ClientHttp2Session;

const visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
const value = fc.oneof(
  fc.constantFrom("", "a", "text/html; charset=utf-8", "gzip, deflate", "x".repeat(700)),
  fc.array(visible, { maxLength: 80 }).map((chars) => chars.join("")),
);
const name = fc.oneof(
  fc.constantFrom("accept", "user-agent", "x-request-id", "authorization", "x-custom", "cache-control"),
  fc
    .array(fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz-0123456789"), { minLength: 1, maxLength: 20 })
    .map((chars) => `x-${chars.join("")}`),
);
const fieldList = fc.uniqueArray(fc.tuple(name, value), { maxLength: 12, selector: ([field]) => field });
const body = fc.oneof(
  fc.constantFrom(0, 1, 16_384, 16_385, 70_000, 300_000).map((length) => Buffer.alloc(length, "x")),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
);
const message: fc.Arbitrary<Message> = fc.record({ fields: fieldList, body, trailers: fieldList });

beforeAll(async () => {
  ours = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    const wire = new SocketWire(socket);
    const session: ServerSession = new ServerSession(wire, limits, (stream, { fields }) => {
      session.sendHeader(stream, [":status", "200"], fields, false);
      stream.handler = {
        onData: (chunk) => {
          if (!stream.write(Buffer.from(chunk))) stream.pause();
        },
        onEnd: (trailers) => stream.end(trailers),
        onWritable: () => stream.resume(),
        onClosed: () => {},
      };
      if (stream.remoteEnded) stream.end();
    });
    wire.attach(session);
  });
  theirs = createHttp2Server({ maxSessionMemory: 100 });
  theirs.on("stream", (stream, headers) => {
    let trailers: IncomingHttpHeaders = {};
    stream.on("error", () => {});
    stream.on("trailers", (fields) => {
      trailers = fields;
    });
    stream.respond({ ...regular(headers), ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(regular(trailers)));
    stream.pipe(stream);
  });
  await Promise.all([ours, theirs].map((server) => once(server.listen(0, "127.0.0.1"), "listening")));
  client = connectHttp2(`http://127.0.0.1:${(ours.address() as AddressInfo).port}`);
});

afterAll(() => {
  client.destroy();
  for (const socket of sockets) socket.destroy();
  ours.close();
  theirs.close();
});

describe("what node:http2 says", () => {
  test("comes back from the server's side unchanged", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 8 }), async (messages) => {
        const answers = await Promise.all(messages.map((each) => askTheirWay(each)));
        expect(answers).toEqual(messages.map(plain));
      }),
      { numRuns: 60 },
    );
  });
});

describe("what the client's side says", () => {
  test("comes back from node:http2 unchanged", async () => {
    const socket = connect((theirs.address() as AddressInfo).port, "127.0.0.1");
    sockets.add(socket);
    await once(socket, "connect");
    const wire = new SocketWire(socket);
    const session = await new Promise<ClientSession>((resolve) => {
      const made: ClientSession = new ClientSession(wire, limits, {
        onReady: () => resolve(made),
        onRoom: () => {},
        onGone: () => {},
      });
      wire.attach(made);
    });
    await fc.assert(
      fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 8 }), async (messages) => {
        const answers = await Promise.all(messages.map((each) => askOurWay(session, each)));
        expect(answers).toEqual(messages.map(plain));
      }),
      { numRuns: 60 },
    );
    expect(session.openStreams).toBe(0);
    session.leave();
    await once(socket, "close");
  });
});

interface Plain {
  readonly fields: Readonly<Record<string, string>>;
  readonly body: string;
  readonly trailers: Readonly<Record<string, string>>;
}

function plain({ fields, body: bytes, trailers }: Message): Plain {
  return {
    fields: Object.fromEntries(fields),
    body: bytes.toString("latin1"),
    trailers: Object.fromEntries(trailers),
  };
}

/** Without pseudo-headers and without what node:http2 adds by itself. */
function regular(headers: IncomingHttpHeaders): Record<string, string> {
  const entries = Object.entries(headers).filter(([field]) => !field.startsWith(":") && field !== "date");
  return Object.fromEntries(entries.map(([field, text]) => [field, String(text)]));
}

async function askTheirWay({ fields, body: bytes, trailers }: Message): Promise<Plain> {
  const stream = client.request(
    { ...Object.fromEntries(fields), ":method": "POST", ":path": "/", ":authority": "a.example" },
    { waitForTrailers: true },
  );
  stream.on("wantTrailers", () => stream.sendTrailers(Object.fromEntries(trailers)));
  const answered = once(stream, "response") as Promise<[IncomingHttpHeaders]>;
  let received: IncomingHttpHeaders = {};
  stream.on("trailers", (each) => {
    received = each;
  });
  stream.end(bytes);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  const [headers] = await answered;
  return {
    fields: regular(headers),
    body: Buffer.concat(chunks).toString("latin1"),
    trailers: regular(received),
  };
}

function askOurWay(session: ClientSession, { fields, body: bytes, trailers }: Message): Promise<Plain> {
  return new Promise((resolve, reject) => {
    let head: Record<string, string> = {};
    const chunks: Buffer[] = [];
    const handler: AnswerHandler & { answered: boolean } = {
      answered: false,
      onInterim: () => {},
      onAnswer: (_status, headers) => {
        handler.answered = true;
        head = regular(Object.fromEntries([...headers]));
      },
      onData: (chunk) => chunks.push(Buffer.from(chunk)),
      onEnd: (received) =>
        resolve({
          fields: head,
          body: Buffer.concat(chunks).toString("latin1"),
          trailers: Object.fromEntries([...(received ?? [])]),
        }),
      onWritable: () => {},
      onClosed: (code) => reject(new Error(`closed with ${code}`)),
    };
    const stream = session.request(
      [":method", "POST", ":scheme", "http", ":authority", "a.example", ":path", "/"],
      fields.flat(),
      { handler, endStream: false, isHead: false },
    );
    stream.write(bytes);
    stream.end(trailers.length > 0 ? new HeaderFields(trailers.flat()) : undefined);
  });
}
