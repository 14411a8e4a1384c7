import { once } from "node:events";
import type { Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import fc from "fast-check";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  MAX_HELLO_BYTES,
  parseClientHello,
  readClientHello,
} from "../../../../src/dataplanes/embedded/streams/client-hello.ts";
import { Sockets } from "../../support/sockets.ts";

const sockets = new Sockets();

/** The bytes that a real TLS client sends first. */
async function capture(options: ConnectionOptions): Promise<Buffer> {
  let port = 0;
  const bytes = new Promise<Buffer>((resolve) => {
    void sockets
      .serve((socket) => socket.once("data", (chunk) => resolve(chunk)))
      .then((bound) => {
        port = bound;
        const client = connectTls({ port, host: "127.0.0.1", ...options });
        sockets.keep(client);
      });
  });
  return await bytes;
}

/** The same hello in records of at most `size` bytes. */
function refragment(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const fragment = message.subarray(at, at + size);
    records.push(Buffer.from([22, 3, 1, fragment.length >> 8, fragment.length & 255]), fragment);
  }
  return Buffer.concat(records);
}

interface HelloParts {
  readonly extensions?: readonly (readonly [type: number, content: Buffer])[];
  readonly session?: number;
}

const u16 = (n: number): Buffer => Buffer.from([n >> 8, n & 255]);
const sized16 = (b: Buffer): Buffer => Buffer.concat([u16(b.length), b]);
const serverName = (name: string | Buffer): readonly [number, Buffer] => [
  0,
  sized16(Buffer.concat([Buffer.from([0]), sized16(Buffer.from(name))])),
];

function build({ extensions, session = 32 }: HelloParts): Buffer {
  const list = extensions?.map(([type, content]) => Buffer.concat([u16(type), sized16(content)]));
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    Buffer.from([session]),
    Buffer.alloc(session, 9),
    sized16(Buffer.from([0x13, 0x01])),
    Buffer.from([1, 0]),
    ...(list === undefined ? [] : [sized16(Buffer.concat(list))]),
  ]);
  return record(Buffer.concat([Buffer.from([1, 0]), u16(body.length), body]));
}

/** The same hello with a byte more than its extensions account for. */
function withRest(hello: Buffer): Buffer {
  const body = Buffer.concat([hello.subarray(9), Buffer.from([0])]);
  return record(Buffer.concat([Buffer.from([1, 0]), u16(body.length), body]));
}

function record(message: Buffer): Buffer {
  return Buffer.concat([Buffer.from([22, 3, 1]), sized16(message)]);
}

let named: Buffer;
let nameless: Buffer;
let old: Buffer;

beforeAll(async () => {
  named = await capture({ servername: "Shop.Example.COM", ALPNProtocols: ["h2", "http/1.1"] });
  nameless = await capture({ servername: "" });
  old = await capture({ servername: "old.example", maxVersion: "TLSv1.2" });
  await sockets.release();
});

describe("parseClientHello", () => {
  it("reads what a real client asks for", () => {
    expect(parseClientHello(named)).toEqual({
      state: "hello",
      serverName: "shop.example.com",
      alpn: ["h2", "http/1.1"],
    });
    expect(parseClientHello(nameless)).toEqual({ state: "hello", alpn: [] });
    expect(parseClientHello(old)).toEqual({ state: "hello", serverName: "old.example", alpn: [] });
  });

  it("needs more for every proper prefix, and ignores what follows", () => {
    for (const hello of [named, nameless, old]) {
      for (let end = 0; end < hello.length; end++) {
        expect(parseClientHello(hello.subarray(0, end)), `prefix of ${end}`).toEqual({ state: "need-more" });
      }
      expect(parseClientHello(Buffer.concat([hello, Buffer.alloc(70_000, 0xff)]))).toEqual(
        parseClientHello(hello),
      );
    }
  });

  it("joins a hello that is spread over records of any size", () => {
    for (const size of [1, 2, 3, 4, 5, 50, 200]) {
      const spread = refragment(named, size);
      expect(parseClientHello(spread)).toEqual(parseClientHello(named));
      for (let end = 0; end < spread.length; end++) {
        expect(parseClientHello(spread.subarray(0, end))).toEqual({ state: "need-more" });
      }
    }
  });

  it("passes over GREASE and unknown extensions", () => {
    const grease = build({
      extensions: [
        [0x0a0a, Buffer.alloc(0)],
        serverName("a.example"),
        [0xfe0d, Buffer.alloc(40)],
        [0x1a1a, Buffer.from([0])],
      ],
    });
    expect(parseClientHello(grease)).toEqual({ state: "hello", serverName: "a.example", alpn: [] });
  });

  it("accepts a hello without extensions", () => {
    expect(parseClientHello(build({}))).toEqual({ state: "hello", alpn: [] });
  });

  it.each([
    ["A.Example.", "a.example"],
    ["_dmarc.example", "_dmarc.example"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["localhost", "localhost"],
  ])("normalises the name %s", (given, expected) => {
    expect(parseClientHello(build({ extensions: [serverName(given)] }))).toEqual({
      state: "hello",
      serverName: expected,
      alpn: [],
    });
  });

  it.each(["192.0.2.1", "::1", "[2001:db8::1]"])("takes the address %s for no name", (address) => {
    expect(parseClientHello(build({ extensions: [serverName(address)] }))).toEqual({
      state: "hello",
      alpn: [],
    });
  });

  const name = (n: string | Buffer): Buffer => build({ extensions: [serverName(n)] });
  const twoNames = sized16(Buffer.from([0, 0, 1, 97, 0, 0, 1, 98]));
  it.each<[string, Buffer]>([
    ["an empty name", name("")],
    ["a dot alone", name(".")],
    ["an empty label", name("a..example")],
    ["two trailing dots", name("a.example..")],
    ["a space", name("a b.example")],
    ["a NUL", name("a\0.example")],
    ["a slash", name("a/b")],
    ["a wildcard", name("*.example.com")],
    ["bytes beyond ASCII", name(Buffer.from([0xe4, 0x2e, 0x61]))],
    ["a label of 64", name(`${"a".repeat(64)}.example`)],
    ["a name of 255", name(`${"a.".repeat(127)}a`)],
    ["two names", build({ extensions: [[0, twoNames]] })],
    ["a name of unknown type", build({ extensions: [[0, sized16(Buffer.from([1, 0, 1, 97]))]] })],
    ["an empty name list", build({ extensions: [[0, sized16(Buffer.alloc(0))]] })],
    ["an empty name extension", build({ extensions: [[0, Buffer.alloc(0)]] })],
    ["a name longer than its list", build({ extensions: [[0, sized16(Buffer.from([0, 0, 9, 97]))]] })],
    ["a list shorter than its extension", build({ extensions: [[0, Buffer.concat([twoNames, u16(0)])]] })],
    ["the name twice", build({ extensions: [serverName("a.example"), serverName("b.example")] })],
    [
      "GREASE twice",
      build({
        extensions: [
          [0x0a0a, Buffer.alloc(0)],
          [0x0a0a, Buffer.alloc(0)],
        ],
      }),
    ],
    ["ALPN with an empty protocol", build({ extensions: [[16, sized16(Buffer.from([0]))]] })],
    ["ALPN without protocols", build({ extensions: [[16, sized16(Buffer.alloc(0))]] })],
    ["ALPN beyond its list", build({ extensions: [[16, sized16(Buffer.from([5, 97]))]] })],
    ["a session id of 33", build({ session: 33 })],
    ["a record of another type", Buffer.from([23, 3, 1, 0, 1, 0])],
    [
      "an alert between fragments",
      Buffer.concat([Buffer.from([22, 3, 1, 0, 1, 1]), Buffer.from([21, 3, 1, 0, 2, 1, 0])]),
    ],
    ["an unknown record version", Buffer.from([22, 2, 1])],
    ["SSL 2.0", Buffer.from([0x80, 0x2e, 1, 3, 1])],
    ["plain HTTP", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["an empty record", Buffer.from([22, 3, 1, 0, 0])],
    ["a ServerHello", record(Buffer.from([2, 0, 0, 0]))],
    ["an empty hello", record(Buffer.from([1, 0, 0, 0]))],
    ["a hello longer than is taken", record(Buffer.from([1, 0xff, 0xff, 0xff]))],
    ["a record longer than is taken", Buffer.from([22, 3, 1, 0x40, 0x00])],
    ["bytes behind the extensions", withRest(build({ extensions: [serverName("a.example")] }))],
    [
      "bytes behind the hello in its record",
      record(Buffer.concat([build({}).subarray(5), Buffer.from([1])])),
    ],
  ])("refuses %s", (_title, bytes) => {
    expect(parseClientHello(bytes).state).toBe("invalid");
  });

  it("refuses every length that is off by one", () => {
    const base = build({ extensions: [serverName("a.example"), [16, sized16(Buffer.from([2, 104, 50]))]] });
    // Session id, cipher suites, compression, all extensions, the name's extension, list and name.
    for (const at of [43, 76 + 1, 80, 82 + 1, 86 + 1, 88 + 1, 91 + 1]) {
      for (const step of [-1, 1]) {
        const broken = Buffer.from(base);
        broken[at] = (broken[at] ?? 0) + step;
        expect(parseClientHello(broken).state, `byte ${at} ${step}`).toBe("invalid");
      }
    }
  });

  it("decides within its limit, whatever arrives", () => {
    const endless = Buffer.concat([
      Buffer.from([22, 3, 1, 0, 4, 1, 0, 0x3f, 0x00]),
      ...Array.from({ length: 4_000 }, () => Buffer.from([22, 3, 1, 0, 1, 3])),
    ]);
    expect(parseClientHello(endless.subarray(0, MAX_HELLO_BYTES + 6)).state).toBe("invalid");
  });

  it("never throws, and never looks beyond its bytes", () => {
    const edits = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 8 });
    const mutated = fc.tuple(fc.constantFrom(0, 1, 2), edits).map(([which, changes]) => {
      const bytes = Buffer.from([named, nameless, refragment(named, 40)][which] ?? named);
      for (const [at, value] of changes) bytes[at % bytes.length] = value;
      return bytes;
    });
    const random = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes));
    const framed = random.map((bytes) => record(Buffer.concat([Buffer.from([1]), bytes])));
    fc.assert(
      fc.property(fc.oneof(mutated, random, framed), fc.nat(), (bytes, cut) => {
        const result = parseClientHello(bytes);
        if (result.state === "hello" && result.serverName !== undefined) {
          expect(result.serverName).toMatch(/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/);
        }
        // What lies behind the bytes in the same memory changes nothing.
        const room = Buffer.alloc(bytes.length + 64, 0x16);
        bytes.copy(room);
        expect(parseClientHello(room.subarray(0, bytes.length))).toEqual(result);
        // Once it is decided, more bytes do not change it.
        const early = parseClientHello(bytes.subarray(0, cut % (bytes.length + 1)));
        if (early.state !== "need-more") expect(result).toEqual(early);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("readClientHello", () => {
  const open = new Sockets();
  afterEach(() => open.release());

  async function pair(): Promise<{ readonly client: Socket; readonly server: Socket }> {
    const accepted = Promise.withResolvers<Socket>();
    const port = await open.serve(accepted.resolve);
    const client = await open.connect(port);
    return { client, server: await accepted.promise };
  }
  const listeners = (socket: Socket): Record<string, number> =>
    Object.fromEntries(
      ["readable", "data", "end", "close", "error"].map((name) => [name, socket.listenerCount(name)]),
    );

  it("reads the hello and leaves every byte, split at each boundary", async () => {
    for (let at = 1; at < named.length; at += 1) {
      const { client, server } = await pair();
      const before = listeners(server);
      const result = readClientHello(server, { timeoutMs: 10_000 });
      client.write(named.subarray(0, at));
      // Only when the first piece has been looked at, the second one goes.
      await once(server, "readable");
      client.write(named.subarray(at));
      expect(await result).toEqual({ serverName: "shop.example.com", alpn: ["h2", "http/1.1"] });
      expect(listeners(server)).toEqual(before);
      client.end("after");
      const all: Buffer[] = [];
      for await (const chunk of server) all.push(chunk as Buffer);
      expect(Buffer.concat(all)).toEqual(Buffer.concat([named, Buffer.from("after")]));
      client.destroy();
      server.destroy();
    }
  });

  it("keeps a hello whose end comes at once", async () => {
    const { client, server } = await pair();
    client.end(named);
    expect(await readClientHello(server, { timeoutMs: 10_000 })).toHaveProperty("serverName");
    const all: Buffer[] = [];
    for await (const chunk of server) all.push(chunk as Buffer);
    expect(Buffer.concat(all)).toEqual(named);
  });

  it("flows again for a plain data listener", async () => {
    const { client, server } = await pair();
    client.write(named);
    await readClientHello(server, { timeoutMs: 10_000 });
    const [chunk] = await once(server, "data");
    expect(chunk).toEqual(named);
  });

  it("cuts a client that trickles", async () => {
    const { client, server } = await pair();
    let sent = 0;
    const trickle = setInterval(() => client.write(named.subarray(sent, ++sent)), 20);
    const before = listeners(server);
    const result = await readClientHello(server, { timeoutMs: 200 });
    clearInterval(trickle);
    expect(result).toEqual({ error: "no ClientHello in time" });
    expect(listeners(server)).toEqual(before);
  });

  it("tells a client that closes, resets or talks something else", async () => {
    const closing = await pair();
    closing.client.end(named.subarray(0, 100));
    expect(await readClientHello(closing.server, { timeoutMs: 10_000 })).toEqual({
      error: "closed before its ClientHello",
    });

    const resetting = await pair();
    const before = listeners(resetting.server);
    const read = readClientHello(resetting.server, { timeoutMs: 10_000 });
    resetting.client.resetAndDestroy();
    expect(await read).toHaveProperty("error");
    expect(listeners(resetting.server)).toEqual(before);

    const plain = await pair();
    plain.client.write("GET / HTTP/1.1\r\n\r\n");
    expect(await readClientHello(plain.server, { timeoutMs: 10_000 })).toEqual({
      error: "not a TLS handshake",
    });

    const gone = await pair();
    gone.server.destroy();
    expect(await readClientHello(gone.server, { timeoutMs: 10_000 })).toHaveProperty("error");
  });

  it("stops at its own limit and at the signal", async () => {
    const long = await pair();
    long.client.write(named.subarray(0, 200));
    expect(await readClientHello(long.server, { timeoutMs: 10_000, maxBytes: 100 })).toEqual({
      error: "ClientHello is too long",
    });

    const aborted = await pair();
    const stop = new AbortController();
    const result = readClientHello(aborted.server, { timeoutMs: 10_000, signal: stop.signal });
    stop.abort();
    expect(await result).toEqual({ error: "aborted" });
    expect(await readClientHello(aborted.server, { timeoutMs: 10_000, signal: stop.signal })).toEqual({
      error: "aborted",
    });
  });
});
