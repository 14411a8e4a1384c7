/**
 * The two messages between the runner and a server under test
 * (connectrpc/conformance/v1/server_compat.proto), as far as a gateway between them needs it.
 */

/** HTTP_VERSION_2 of the enumeration HTTPVersion. */
const HTTP_VERSION_2 = 2;

const FIELDS = { httpVersion: 2, useTls: 4, clientTlsCert: 5, serverCreds: 7 } as const;

export interface ServerRequest {
  readonly http2: boolean;
  readonly tls: boolean;
  /** The same request to a server that is to speak cleartext. */
  readonly cleartext: Buffer;
}

export function readServerRequest(message: Buffer): ServerRequest {
  const fields = fieldsOf(message);
  const isSet = (number: number, value: number): boolean =>
    fields.some((field) => field.number === number && field.value === value);
  const secure: readonly number[] = [FIELDS.useTls, FIELDS.clientTlsCert, FIELDS.serverCreds];
  return {
    http2: isSet(FIELDS.httpVersion, HTTP_VERSION_2),
    tls: isSet(FIELDS.useTls, 1),
    cleartext: Buffer.concat(
      fields.filter(({ number }) => !secure.includes(number)).map(({ bytes }) => bytes),
    ),
  };
}

/** The port of a ServerCompatResponse. */
export function readServerPort(message: Buffer): number {
  const port = fieldsOf(message).find(({ number }) => number === 2)?.value;
  if (port === undefined) throw new Error("the server told no port");
  return port;
}

export function serverResponse(port: number, certificate: string | undefined): Buffer {
  const pem = certificate === undefined ? [] : [lengthDelimited(3, Buffer.from(certificate))];
  return Buffer.concat([
    lengthDelimited(1, Buffer.from("127.0.0.1")),
    Buffer.of(2 << 3),
    varint(port),
    ...pem,
  ]);
}

/** Messages on standard input and output carry their length in front. */
export function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(message.length);
  return Buffer.concat([length, message]);
}

/** Reads one message and leaves the stream open. */
export async function readFramed(stream: NodeJS.ReadableStream): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let all: Buffer = Buffer.alloc(0);
    stream.on("end", () => reject(new Error("no message came")));
    stream.on("data", (chunk: Buffer) => {
      all = Buffer.concat([all, chunk]);
      if (all.length >= 4 && all.length >= 4 + all.readUInt32BE())
        resolve(all.subarray(4, 4 + all.readUInt32BE()));
    });
  });
}

interface Field {
  readonly number: number;
  /** Of a varint. */
  readonly value?: number;
  /** The whole field with its tag. */
  readonly bytes: Buffer;
}

/** These messages have varints and length-delimited fields only. */
function fieldsOf(message: Buffer): readonly Field[] {
  const fields: Field[] = [];
  for (let at = 0; at < message.length; ) {
    const tag = readVarint(message, at);
    const first = readVarint(message, tag.next);
    const end = (tag.value & 7) === 2 ? first.next + first.value : first.next;
    const value = (tag.value & 7) === 0 ? { value: first.value } : {};
    fields.push({ number: tag.value >>> 3, bytes: message.subarray(at, end), ...value });
    at = end;
  }
  return fields;
}

function readVarint(bytes: Buffer, start: number): { readonly value: number; readonly next: number } {
  let value = 0;
  for (let at = start, scale = 1; ; at++, scale *= 128) {
    const byte = bytes.readUInt8(at);
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return { value, next: at + 1 };
  }
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.of(...bytes, rest);
}

function lengthDelimited(number: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.of((number << 3) | 2), varint(content.length), content]);
}
