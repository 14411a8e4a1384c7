/** Headers of HAProxy's PROXY protocol, as a load balancer writes them. */

import { isIPv6 } from "node:net";

const SIGNATURE = Buffer.from("0d0a0d0a000d0a515549540a", "hex");

/** Version 1: a line of text. */
export function proxyLine(from: string): Buffer {
  const [family, to] = isIPv6(from) ? ["TCP6", "2001:db8::ffff"] : ["TCP4", "192.0.2.255"];
  return Buffer.from(`PROXY ${family} ${from} ${to} 40000 443\r\n`);
}

/** Version 2: `rest` is the addresses, the ports, and whatever stands behind them. */
export function proxyFrame(command: number, family: number, rest: Buffer): Buffer {
  const head = Buffer.from([0x20 | command, family, rest.length >> 8, rest.length & 0xff]);
  return Buffer.concat([SIGNATURE, head, rest]);
}

/** Version 2 for a client over IPv4 or, as eight groups without `::`, over IPv6. */
export function proxyFrameOf(from: string, behind: Buffer = Buffer.alloc(0)): Buffer {
  const ports = Buffer.from([0x9c, 0x40, 0x01, 0xbb]);
  const v6 = isIPv6(from);
  const source = v6
    ? Buffer.from(
        from
          .split(":")
          .map((group) => group.padStart(4, "0"))
          .join(""),
        "hex",
      )
    : Buffer.from(from.split(".").map(Number));
  const rest = Buffer.concat([source, Buffer.alloc(source.length, 7), ports, behind]);
  return proxyFrame(1, v6 ? 0x21 : 0x11, rest);
}

/** A field behind the addresses: type, length, value. */
export function proxyField(type: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type, value.length >> 8, value.length & 0xff]), value]);
}
