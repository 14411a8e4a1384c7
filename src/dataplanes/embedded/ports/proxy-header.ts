/**
 * The PROXY protocol, versions 1 and 2, as a receiver: a header in front of everything else on a
 * connection, by which a load balancer names its client.
 * https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt
 *
 * Strict, because the header decides who a client is. Fields behind the addresses are skipped, as
 * is their checksum: nobody but the balancer could have changed them.
 */

import { isIPv4, isIPv6, type Socket, SocketAddress } from "node:net";
import { addressWords, ipv4Text } from "../guards/ip-address.ts";

export type ProxyHeader =
  | { readonly state: "need-more" }
  | { readonly state: "absent" }
  | { readonly state: "invalid" }
  /** Without an address the client is the peer: a health check of the balancer, or unknown. */
  | { readonly state: "header"; readonly length: number; readonly address?: string };

const LINE_START: Buffer = Buffer.from("PROXY ", "latin1");
const LONGEST_LINE = 107;
const SIGNATURE: Buffer = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const FIXED_BYTES = 16;
/** Of version 2, with all fields. */
const MAX_BYTES: number = 16 * 1024;

const LOCAL = 0x20;
const PROXY = 0x21;
/** Family and transport, with the least length of the addresses. Others are not defined. */
const ADDRESS_BYTES: ReadonlyMap<number, number> = new Map([
  [0x00, 0],
  [0x11, 12],
  [0x12, 12],
  [0x21, 36],
  [0x22, 36],
  [0x31, 216],
  [0x32, 216],
]);
const TCP_OVER_IPV4 = 0x11;
const TCP_OVER_IPV6 = 0x21;

const needMore: ProxyHeader = { state: "need-more" };
const invalid: ProxyHeader = { state: "invalid" };

export function parseProxyHeader(bytes: Buffer): ProxyHeader {
  if (beginsWith(bytes, LINE_START)) return bytes.length < LINE_START.length ? needMore : parseLine(bytes);
  if (beginsWith(bytes, SIGNATURE)) return bytes.length < FIXED_BYTES ? needMore : parseFrame(bytes);
  return { state: "absent" };
}

/** As far as they have come. */
function beginsWith(bytes: Buffer, start: Buffer): boolean {
  const known = Math.min(bytes.length, start.length);
  return bytes.compare(start, 0, known, 0, known) === 0;
}

function parseLine(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, LONGEST_LINE).indexOf("\r\n");
  if (end < 0) return bytes.length < LONGEST_LINE ? needMore : invalid;
  const length = end + 2;
  const [family, source = "", target = "", ...ports] = bytes
    .toString("latin1", LINE_START.length, end)
    .split(" ");
  if (family === "UNKNOWN") return { state: "header", length };
  const isAddress = family === "TCP4" ? isIPv4 : family === "TCP6" ? isIPv6 : () => false;
  const isValid =
    isAddress(source) &&
    isAddress(target) &&
    !source.includes("%") &&
    ports.length === 2 &&
    ports.every(isPort);
  return isValid ? { state: "header", length, address: canonical(source) } : invalid;
}

function isPort(text: string): boolean {
  return /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;
}

function parseFrame(bytes: Buffer): ProxyHeader {
  const command = bytes[12] ?? 0;
  const family = bytes[13] ?? 0;
  const behind = bytes.readUInt16BE(14);
  const length = FIXED_BYTES + behind;
  if ((command !== LOCAL && command !== PROXY) || length > MAX_BYTES) return invalid;
  const least = ADDRESS_BYTES.get(family);
  // A local connection may have any family, which does not count.
  if (command === PROXY && (least === undefined || behind < least)) return invalid;
  if (bytes.length < length) return needMore;
  if (command === PROXY && family === TCP_OVER_IPV4) {
    return { state: "header", length, address: ipv4Text(bytes.readUInt32BE(FIXED_BYTES)) };
  }
  if (command === PROXY && family === TCP_OVER_IPV6) {
    const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(FIXED_BYTES + index * 2));
    return {
      state: "header",
      length,
      address: canonical(groups.map((group) => group.toString(16)).join(":")),
    };
  }
  return { state: "header", length };
}

/** As the address of a socket would be written; IPv4-mapped addresses as IPv4. */
function canonical(text: string): string {
  const [word, ...more] = addressWords(text) ?? [];
  if (word !== undefined && more.length === 0) return ipv4Text(word);
  return new SocketAddress({ address: text, family: "ipv6" }).address;
}

export interface ReadProxyHeaderOptions {
  readonly required: boolean;
  readonly timeoutMs: number;
}

/**
 * Takes the header off a new connection and leaves everything behind it to whoever serves next. The
 * socket is closed when the header is broken, late, or missing where it is required.
 */
export function readProxyHeader(
  socket: Socket,
  { required, timeoutMs }: ReadProxyHeaderOptions,
  serve: (address: string | undefined) => void,
): void {
  let bytes: Buffer = Buffer.alloc(0);
  const close = (): void => {
    release();
    socket.destroy();
  };
  const timer = setTimeout(close, timeoutMs);
  const release = (): void => {
    clearTimeout(timer);
    socket.off("readable", read).off("end", close).off("close", release);
  };
  const read = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const header = parseProxyHeader(bytes);
    if (header.state === "need-more") return;
    if (header.state === "invalid" || (header.state === "absent" && required)) {
      close();
      return;
    }
    release();
    const rest = header.state === "header" ? bytes.subarray(header.length) : bytes;
    // Synchronously, so that a FIN right behind does not end the stream before the bytes are back.
    if (rest.length > 0) socket.unshift(rest);
    // The stream leaves its "readable" mode on the next tick; only then may somebody else start to
    // read.
    process.nextTick(() => {
      if (!socket.destroyed) serve(header.state === "header" ? header.address : undefined);
    });
  };
  socket.on("readable", read).on("end", close).on("close", release);
}
