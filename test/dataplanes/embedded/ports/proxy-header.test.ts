import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseProxyHeader, readProxyHeader } from "../../../../src/dataplanes/embedded/ports/proxy-header.ts";
import { proxyField, proxyFrame, proxyFrameOf, proxyLine } from "../../support/proxy-protocol.ts";
import { readAll, Sockets } from "../../support/sockets.ts";

const line = (text: string): Buffer => Buffer.from(`${text}\r\n`, "latin1");
const LONGEST =
  "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535";

describe("the header of the PROXY protocol", () => {
  test("version 1 names a client, or nobody", () => {
    const addressOf = (text: string): unknown => parseProxyHeader(line(text));
    const length = (text: string): number => text.length + 2;
    for (const [text, address] of [
      ["PROXY TCP4 192.0.2.1 192.0.2.2 1 65535", "192.0.2.1"],
      ["PROXY TCP4 192.0.2.1 192.0.2.2 0 0", "192.0.2.1"],
      ["PROXY TCP6 2001:DB8:0::1 ::1 1 2", "2001:db8::1"],
      ["PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2", "192.0.2.1"],
      ["PROXY TCP6 ::ffff:c000:201 ::1 1 2", "192.0.2.1"],
      [LONGEST, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ] as const) {
      expect(addressOf(text), text).toEqual({ state: "header", length: length(text), address });
    }
    for (const text of ["PROXY UNKNOWN", "PROXY UNKNOWN ffff::1 whatever 1"]) {
      expect(addressOf(text), text).toEqual({ state: "header", length: length(text) });
    }
  });

  test("version 1 is refused when it is not exactly as it must be", () => {
    for (const text of [
      "PROXY ",
      "PROXY TCP4",
      "PROXY TCP4 192.0.2.1 192.0.2.2 1",
      "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3",
      "PROXY TCP4  192.0.2.1 192.0.2.2 1 2",
      "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 ",
      "PROXY TCP4 192.0.2.1 192.0.2.2 01 2",
      "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2",
      "PROXY TCP4 192.0.2.1 192.0.2.2 1 65536",
      "PROXY TCP4 192.0.2.01 192.0.2.2 1 2",
      "PROXY TCP4 192.0.2.1 192.0.2 1 2",
      "PROXY TCP4 ::1 ::1 1 2",
      "PROXY TCP6 192.0.2.1 192.0.2.2 1 2",
      "PROXY TCP6 fe80::1%eth0 ::1 1 2",
      "PROXY tcp4 192.0.2.1 192.0.2.2 1 2",
      "PROXY UDP4 192.0.2.1 192.0.2.2 1 2",
      "PROXY TCP4\t192.0.2.1 192.0.2.2 1 2",
    ]) {
      expect(parseProxyHeader(line(text)), text).toEqual({ state: "invalid" });
    }
    expect(LONGEST.length).toBe(102);
    expect(parseProxyHeader(Buffer.from(`PROXY UNKNOWN ${"x".repeat(91)}\r\n`)).state).toBe("header");
    expect(parseProxyHeader(Buffer.from(`PROXY UNKNOWN ${"x".repeat(92)}\r\n`)).state).toBe("invalid");
    expect(parseProxyHeader(Buffer.from(`PROXY UNKNOWN ${"x".repeat(92)}`)).state).toBe("need-more");
    expect(parseProxyHeader(Buffer.from(`PROXY UNKNOWN ${"x".repeat(93)}`)).state).toBe("invalid");
  });

  test("version 2 names a client, or nobody, and what stands behind the addresses is skipped", () => {
    const field = proxyField(0x03, Buffer.alloc(4, 0xff));
    expect(parseProxyHeader(proxyFrameOf("192.0.2.1", field))).toEqual({
      state: "header",
      length: 16 + 12 + 7,
      address: "192.0.2.1",
    });
    expect(parseProxyHeader(proxyFrameOf("2001:db8:0:0:0:0:0:1"))).toEqual({
      state: "header",
      length: 16 + 36,
      address: "2001:db8::1",
    });
    expect(parseProxyHeader(proxyFrameOf("0:0:0:0:0:ffff:c000:201"))).toMatchObject({ address: "192.0.2.1" });
    for (const [command, family, bytes] of [
      [0, 0x00, 0],
      [0, 0x11, 12],
      [0, 0xff, 3],
      [1, 0x00, 0],
      [1, 0x00, 50],
      [1, 0x12, 12],
      [1, 0x31, 216],
    ] as const) {
      const frame = proxyFrame(command, family, Buffer.alloc(bytes, 9));
      expect(parseProxyHeader(frame)).toEqual({ state: "header", length: 16 + bytes });
    }
  });

  test("version 2 is refused as soon as its first bytes cannot be right", () => {
    for (const [command, family, bytes] of [
      [1, 0x11, 11],
      [1, 0x21, 35],
      [1, 0x31, 215],
      [1, 0x13, 12],
      [1, 0x41, 100],
      [2, 0x11, 12],
      [0x10 | 1, 0x11, 12],
      [1, 0x11, 16 * 1024],
    ] as const) {
      const frame = proxyFrame(command, family, Buffer.alloc(bytes));
      expect(parseProxyHeader(frame.subarray(0, 16)), `${command} ${family} ${bytes}`).toEqual({
        state: "invalid",
      });
    }
  });

  test("wherever a header is cut, more is waited for; anything else is none from its first byte on", () => {
    const field = proxyField(0x02, Buffer.from("shop.example"));
    for (const header of [proxyLine("192.0.2.1"), line("PROXY UNKNOWN"), proxyFrameOf("192.0.2.1", field)]) {
      for (let cut = 0; cut < header.length; cut++) {
        expect(parseProxyHeader(header.subarray(0, cut)).state, String(cut)).toBe("need-more");
      }
      const whole = Buffer.concat([header, Buffer.from("GET /")]);
      expect(parseProxyHeader(whole)).toMatchObject({ state: "header", length: header.length });
    }
    for (const other of ["G", "PRI * HTTP/2.0\r\n", "PROXY\r\n", "PROXYv2", "\x16\x03\x01", "\r\n\r\nGET"]) {
      expect(parseProxyHeader(Buffer.from(other, "latin1")).state, other).toBe("absent");
    }
  });
});

describe("a connection that begins with it", () => {
  let sockets: Sockets;
  beforeEach(() => {
    sockets = new Sockets();
  });
  afterEach(() => sockets.release());

  /** Tells what was found, then everything that is behind the header. */
  async function serve(required: boolean, timeoutMs = 5_000): Promise<number> {
    return await sockets.serve((socket: Socket) => {
      readProxyHeader(socket, { required, timeoutMs }, (address) => {
        socket.write(`${address}:`);
        if (socket.readableEnded) socket.end();
        socket.on("data", (bytes) => socket.write(bytes)).on("end", () => socket.end());
      });
    });
  }
  async function say(at: number, pieces: readonly Buffer[]): Promise<string> {
    const socket = await sockets.connect(at);
    for (const piece of pieces) {
      socket.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    socket.end();
    return await readAll(socket).then(String, () => "reset");
  }

  test("gives what is behind the header to whoever serves it, however the bytes come", async () => {
    const at = await serve(true);
    for (const header of [proxyLine("192.0.2.1"), proxyFrameOf("192.0.2.1")]) {
      expect(await say(at, [Buffer.concat([header, Buffer.from("hello")])])).toBe("192.0.2.1:hello");
      expect(await say(at, [header, Buffer.from("hello")])).toBe("192.0.2.1:hello");
      expect(
        await say(
          at,
          [...header].map((byte) => Buffer.from([byte])),
        ),
      ).toBe("192.0.2.1:");
      expect(await say(at, [header])).toBe("192.0.2.1:");
    }
  });

  test("is closed without it only where it is required", async () => {
    expect(await say(await serve(false), [Buffer.from("PRIVATE")])).toBe("undefined:PRIVATE");
    expect(await say(await serve(true), [Buffer.from("PRIVATE")])).toMatch(/^(reset)?$/);
    expect(await say(await serve(false), [line("PROXY TCP4 nobody")])).toMatch(/^(reset)?$/);
    expect(await say(await serve(false), [])).toBe("");
  });

  test("is closed when the header does not come in time", async () => {
    const at = await serve(false, 50);
    for (const beginning of ["", "PROXY TCP4 192.0.2.1"]) {
      const socket = await sockets.connect(at);
      socket.write(beginning);
      socket.resume();
      await once(socket, "end");
      socket.destroy();
    }
  });

  test("an end right behind the header is not lost", async () => {
    // Both in one segment: the server sees the end together with the header.
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const accepted = once(server, "connection") as Promise<[Socket]>;
    const client = await sockets.connect(typeof address === "object" ? (address?.port ?? 0) : 0);
    client.end(proxyLine("192.0.2.1"));
    const [socket] = await accepted;
    sockets.keep(socket);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const found = new Promise((resolve) => {
      readProxyHeader(socket, { required: true, timeoutMs: 5_000 }, resolve);
    });
    expect(await found).toBe("192.0.2.1");
    socket.resume();
    if (!socket.readableEnded) await once(socket, "end");
    server.close();
  });
});
