/**
 * The first message of a TLS connection, read without taking part in it: which name is asked for,
 * which protocols are offered.
 *
 * Strict on purpose. With passthrough the backend parses the same bytes again; whatever two parsers
 * could read differently (lengths that do not add up, extensions given twice, several names) is
 * refused instead of guessed. Rules: RFC 8446 4.1.2, 5.1; RFC 6066 3 (server_name); RFC 7301 3.1
 * (ALPN).
 */

import { isIP, type Socket } from "node:net";

export type ClientHello =
  | { readonly state: "need-more" }
  | { readonly state: "hello"; readonly serverName?: string; readonly alpn: readonly string[] }
  | { readonly state: "invalid"; readonly reason: string };

/** Counted with record headers. Hellos with post-quantum key shares stay below 4 KiB. */
export const MAX_HELLO_BYTES: number = 16 * 1024;

const RECORD_HEADER = 5;
const HANDSHAKE_HEADER = 4;
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const ALPN = 16;

const needMore: ClientHello = { state: "need-more" };
const invalid = (reason: string): ClientHello => ({ state: "invalid", reason });

export function parseClientHello(bytes: Uint8Array): ClientHello {
  const message = reassemble(bytes);
  return message instanceof Uint8Array ? parseBody(message) : message;
}

/** The body of the hello, from however many records it is spread over. */
function reassemble(bytes: Uint8Array): Uint8Array | ClientHello {
  const fragments: Uint8Array[] = [];
  let have = 0;
  let want = HANDSHAKE_HEADER;
  let at = 0;
  const head = new Uint8Array(HANDSHAKE_HEADER);

  while (have < want) {
    const type = bytes[at];
    if (type === undefined) break;
    if (type !== HANDSHAKE) return invalid("not a TLS handshake");
    const major = bytes[at + 1];
    if (major !== undefined && major !== 3) return invalid("unknown TLS record version");
    if (bytes.length < at + RECORD_HEADER) break;
    const length = uint16(bytes, at + 3);
    if (length === 0) return invalid("empty handshake record");
    at += RECORD_HEADER;
    // Known from the header alone, so the answer does not depend on how the bytes arrive.
    if (at + length > MAX_HELLO_BYTES) return invalid("ClientHello is too long");

    const fragment = bytes.subarray(at, at + length);
    for (let i = 0; have + i < HANDSHAKE_HEADER && i < fragment.length; i++)
      head[have + i] = fragment[i] ?? 0;
    fragments.push(fragment);
    have += fragment.length;
    at += length;

    if (have > 0 && head[0] !== CLIENT_HELLO) return invalid("the first TLS message is not a ClientHello");
    if (have >= HANDSHAKE_HEADER) {
      want = HANDSHAKE_HEADER + uint24(head, 1);
      if (want > MAX_HELLO_BYTES) return invalid("ClientHello is too long");
      // Nothing may follow in the same record: the server has not answered yet.
      if (have - fragment.length + length > want) return invalid("data after the ClientHello in its record");
    }
    if (fragment.length < length) break;
  }
  if (have < want) return needMore;
  const only = fragments.length === 1 ? fragments[0] : undefined;
  return (only ?? concat(fragments, have)).subarray(HANDSHAKE_HEADER, want);
}

function parseBody(body: Uint8Array): ClientHello {
  // legacy_version and random, then three vectors, then extensions up to the end.
  const session = vector8(body, 34);
  if (session === undefined || session.length > 32) return invalid("malformed session id");
  const ciphers = vector16(body, 35 + session.length);
  if (ciphers === undefined || ciphers.length < 2 || ciphers.length % 2 !== 0) {
    return invalid("malformed cipher suites");
  }
  const compressionAt = 37 + session.length + ciphers.length;
  const compression = vector8(body, compressionAt);
  if (compression === undefined || compression.length < 1) return invalid("malformed compression methods");
  const extensionsAt = compressionAt + 1 + compression.length;
  if (extensionsAt === body.length) return { state: "hello", alpn: [] };
  const extensions = vector16(body, extensionsAt);
  if (extensions === undefined || extensionsAt + 2 + extensions.length !== body.length) {
    return invalid("malformed extensions");
  }
  return parseExtensions(extensions);
}

function parseExtensions(extensions: Uint8Array): ClientHello {
  const seen = new Set<number>();
  let name: string | undefined;
  let alpn: readonly string[] = [];
  for (let at = 0; at < extensions.length; ) {
    const content = vector16(extensions, at + 2);
    if (content === undefined) return invalid("malformed extension");
    const type = uint16(extensions, at);
    if (seen.has(type)) return invalid("an extension is given twice");
    seen.add(type);
    at += 4 + content.length;
    if (type === SERVER_NAME) {
      const found = parseServerName(content);
      if (typeof found !== "string") return found;
      name = found;
    } else if (type === ALPN) {
      const found = parseAlpn(content);
      if (found === undefined) return invalid("malformed ALPN");
      alpn = found;
    }
  }
  return name === undefined || name === ""
    ? { state: "hello", alpn }
    : { state: "hello", serverName: name, alpn };
}

/** Empty for an IP literal: RFC 6066 knows no addresses, so it names nothing. */
function parseServerName(content: Uint8Array): string | ClientHello {
  const list = vector16(content, 0);
  if (list === undefined || list.length + 2 !== content.length) return invalid("malformed server name");
  const raw = vector16(list, 1);
  if (list[0] !== HOST_NAME || raw === undefined || raw.length + 3 !== list.length || raw.length === 0) {
    return invalid("malformed server name");
  }
  const name = latin1(raw).toLowerCase().replace(/\.$/, "");
  if (isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0) return "";
  return isDnsName(name) ? name : invalid("server name is not a DNS name");
}

function isDnsName(name: string): boolean {
  return name.length <= 253 && name.split(".").every((label) => /^[a-z0-9_-]{1,63}$/.test(label));
}

function parseAlpn(content: Uint8Array): readonly string[] | undefined {
  const list = vector16(content, 0);
  if (list === undefined || list.length + 2 !== content.length || list.length === 0) return undefined;
  const protocols: string[] = [];
  for (let at = 0; at < list.length; ) {
    const protocol = vector8(list, at);
    if (protocol === undefined || protocol.length === 0) return undefined;
    protocols.push(latin1(protocol));
    at += 1 + protocol.length;
  }
  return protocols;
}

/** A vector with a length of one byte at `at`; undefined when it does not fit. */
function vector8(bytes: Uint8Array, at: number): Uint8Array | undefined {
  const length = bytes[at];
  if (length === undefined || at + 1 + length > bytes.length) return undefined;
  return bytes.subarray(at + 1, at + 1 + length);
}

/** A vector with a length of two bytes at `at`; undefined when it does not fit. */
function vector16(bytes: Uint8Array, at: number): Uint8Array | undefined {
  if (at + 2 > bytes.length) return undefined;
  const length = uint16(bytes, at);
  return at + 2 + length > bytes.length ? undefined : bytes.subarray(at + 2, at + 2 + length);
}

function uint16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}

function uint24(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 16) | uint16(bytes, at + 1);
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

function concat(fragments: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const fragment of fragments) {
    whole.set(fragment, at);
    at += fragment.length;
  }
  return whole;
}

export interface ReadClientHelloOptions {
  /** 0 for no limit. */
  readonly timeoutMs: number;
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

export type HelloResult =
  | { readonly serverName?: string; readonly alpn: readonly string[] }
  | { readonly error: string };

/**
 * Reads just enough of a new connection to know its ClientHello, then puts every byte back: whoever
 * is given the socket next (TLS termination, a pipe to a backend) sees it as if nobody had looked.
 * On an error the socket is left to the caller to destroy; the caller keeps an `error` listener of
 * its own on the socket throughout.
 */
export function readClientHello(socket: Socket, options: ReadClientHelloOptions): Promise<HelloResult> {
  const maxBytes = options.maxBytes ?? MAX_HELLO_BYTES;
  const { signal } = options;
  return new Promise((resolve) => {
    let bytes: Buffer = Buffer.alloc(0);

    const settle = (result: HelloResult): void => {
      clearTimeout(timer);
      socket.off("readable", read).off("end", closed).off("close", closed).off("error", failed);
      signal?.removeEventListener("abort", aborted);
      // Synchronously, so that a FIN right behind the hello does not end the stream before its
      // bytes are back.
      if (bytes.length > 0 && !socket.destroyed) socket.unshift(bytes);
      // The stream leaves its "readable" mode on the next tick; only then may somebody else start
      // to read.
      process.nextTick(resolve, result);
    };
    const read = (): void => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      const hello = parseClientHello(bytes);
      if (hello.state === "need-more") {
        if (bytes.length >= maxBytes) settle({ error: "ClientHello is too long" });
      } else if (hello.state === "invalid") {
        settle({ error: hello.reason });
      } else {
        const { serverName, alpn } = hello;
        settle(serverName === undefined ? { alpn } : { serverName, alpn });
      }
    };
    const closed = (): void => settle({ error: CLOSED_EARLY });
    const failed = (error: Error): void => settle({ error: error.message });
    const aborted = (): void => settle({ error: "aborted" });
    const late = (): void => settle({ error: "no ClientHello in time" });
    const timer = options.timeoutMs > 0 ? setTimeout(late, options.timeoutMs) : undefined;

    if (signal?.aborted) return aborted();
    if (socket.destroyed || socket.readableEnded) return closed();
    signal?.addEventListener("abort", aborted);
    socket.on("readable", read).on("end", closed).on("close", closed).on("error", failed);
  });
}

/** The error of a connection that was closed by its client, or by a probe, without a word. */
export const CLOSED_EARLY = "closed before its ClientHello";
