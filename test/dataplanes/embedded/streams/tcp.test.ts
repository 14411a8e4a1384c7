import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { StreamEnd } from "../../../../src/dataplanes/embedded/streams/proxy-stream.ts";
import { TcpPort, type TcpPortOptions } from "../../../../src/dataplanes/embedded/streams/tcp-port.ts";
import { RoutingTable } from "../../../../src/matching/routing-table.ts";
import type { PlanItem } from "../../../../src/plan/plan.ts";
import { lastingPort } from "../../support/lasting-port.ts";
import { readAll, Sockets, seeded } from "../../support/sockets.ts";
import {
  streamBackend,
  streamHost,
  streamListener,
  streamPort,
  streamRule,
} from "../../support/stream-table.ts";

let sockets = new Sockets();
let opened: TcpPort[] = [];

afterEach(async () => {
  await Promise.all(opened.map((port) => port.close()));
  await sockets.release();
  sockets = new Sockets();
  opened = [];
});

interface Served {
  readonly tcp: TcpPort;
  readonly port: number;
  readonly table: RoutingTable;
  readonly ends: readonly StreamEnd[];
  /** Resolves with the end of the next connection that has none yet. */
  ended(count: number): Promise<void>;
}

async function serve(items: readonly PlanItem[], options: Partial<TcpPortOptions> = {}): Promise<Served> {
  const table = new RoutingTable();
  table.apply({ upserts: [streamPort("p", "tcp"), streamListener("l", "p", "TCP"), ...items], removes: [] });
  const ends: StreamEnd[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const tcp = new TcpPort({
    port: "p",
    table,
    timeouts: { connectTimeoutMs: 5_000, idleTimeoutMs: 60_000 },
    maxConnections: 100,
    random: seeded(1),
    onEnd: (end) => {
      ends.push(end);
      for (const { count, resolve } of waiting) if (ends.length >= count) resolve();
    },
    ...options,
  });
  opened.push(tcp);
  const port = await tcp.listen({ address: "127.0.0.1", port: 0 });
  const ended = (count: number): Promise<void> =>
    new Promise((resolve) => (ends.length >= count ? resolve() : waiting.push({ count, resolve })));
  return { tcp, port, table, ends, ended };
}

const toOne = (port: number): readonly PlanItem[] => [
  streamHost("l", [streamRule(["b", 1])]),
  streamBackend("b", [port]),
];

/** "end" or the code of the error with which a socket went. */
async function endOf(socket: Socket): Promise<string> {
  socket.resume();
  return await new Promise((resolve) => {
    socket.once("end", () => resolve("end"));
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.once("close", () => resolve("close"));
  });
}

/**
 * What becomes of a connection that says nothing; the reset may come before the connection is even
 * reported.
 */
async function endAt(port: number): Promise<string> {
  return await endOf(sockets.keep(connect({ port, host: "127.0.0.1" })));
}

describe("TcpPort", () => {
  it("carries bytes both ways and counts them", async () => {
    const echo = await sockets.serve((socket) => socket.pipe(socket));
    const { port, ends, ended } = await serve(toOne(echo));
    const client = await sockets.connect(port);
    client.end("hello");
    expect((await readAll(client)).toString()).toBe("hello");
    await ended(1);
    expect(ends).toEqual([
      {
        reason: "closed",
        endpoint: { address: "127.0.0.1", port: echo },
        bytesFromClient: 5,
        bytesFromBackend: 5,
      },
    ]);
  });

  it("passes on half a close, in either direction", async () => {
    // Answers only when it has seen the end of the question.
    const late = await sockets.serve((socket) => {
      void readAll(socket).then((question) => socket.end(`${question.length} bytes`));
    });
    const first = await serve(toOne(late));
    const client = await sockets.connect(first.port);
    client.end("question");
    expect((await readAll(client)).toString()).toBe("8 bytes");

    // Says everything first, and listens on.
    const heard = Promise.withResolvers<string>();
    const early = await sockets.serve((socket) => {
      socket.end("opening");
      void readAll(socket).then((rest) => heard.resolve(rest.toString()));
    });
    const second = await serve(toOne(early));
    const polite = await sockets.connect(second.port);
    expect((await readAll(polite)).toString()).toBe("opening");
    polite.end("thanks");
    expect(await heard.promise).toBe("thanks");
    await second.ended(1);
    expect(second.ends[0]?.reason).toBe("closed");
  });

  it("moves 50 MB both ways at the pace of the slower side, within bounded memory", async () => {
    const size = 50 * 1024 * 1024;
    const block = Buffer.alloc(64 * 1024, "mergeway");
    const hashOf = async (socket: Socket, pauses: boolean): Promise<{ bytes: number; hash: string }> => {
      const hash = createHash("sha256");
      let bytes = 0;
      let chunks = 0;
      for await (const chunk of socket) {
        hash.update(chunk as Buffer);
        bytes += (chunk as Buffer).length;
        if (pauses && ++chunks % 64 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
      }
      return { bytes, hash: hash.digest("hex") };
    };
    const fill = async (socket: Socket): Promise<void> => {
      for (let sent = 0; sent < size; sent += block.length) {
        if (!socket.write(block)) await once(socket, "drain");
      }
      socket.end();
    };
    const atBackend = Promise.withResolvers<{ bytes: number; hash: string }>();
    const backend = await sockets.serve((socket) => {
      void fill(socket);
      void hashOf(socket, true).then(atBackend.resolve);
    });
    const { port, ends, ended } = await serve(toOne(backend));
    const client = await sockets.connect(port);
    const [, down, up] = await Promise.all([fill(client), hashOf(client, false), atBackend.promise]);
    const expected = createHash("sha256");
    for (let sent = 0; sent < size; sent += block.length) expected.update(block);
    const hash = expected.digest("hex");
    expect(down).toEqual({ bytes: size, hash });
    expect(up).toEqual({ bytes: size, hash });
    await ended(1);
    expect(ends[0]).toMatchObject({ reason: "closed", bytesFromClient: size, bytesFromBackend: size });
  });

  it("stops reading from a backend whose client reads nothing", async () => {
    let sent = 0;
    const full = Promise.withResolvers<void>();
    const backend = await sockets.serve((socket) => {
      const block = Buffer.alloc(64 * 1024);
      // A socket that stays full for a while is one that nobody reads.
      const write = (): void => {
        const quiet = setTimeout(full.resolve, 1_000);
        socket.once("drain", () => {
          clearTimeout(quiet);
          write();
        });
        while (sent < 1024 * 1024 * 1024) {
          sent += block.length;
          if (!socket.write(block)) return;
        }
      };
      write();
    });
    const { port } = await serve(toOne(backend));
    const client = await sockets.connect(port);
    client.pause();
    await full.promise;
    // Kernel buffers of two loopback connections, never the gigabyte.
    expect(sent).toBeLessThan(100 * 1024 * 1024);
  });

  it("passes on a reset of the client and of the backend", async () => {
    const clientEnd = Promise.withResolvers<string>();
    const patient = await sockets.serve((socket) => void endOf(socket).then(clientEnd.resolve));
    const first = await serve(toOne(patient));
    const client = await sockets.connect(first.port);
    client.write("x");
    await new Promise((resolve) => setTimeout(resolve, 50));
    client.resetAndDestroy();
    expect(await clientEnd.promise).toBe("ECONNRESET");
    await first.ended(1);
    expect(first.ends[0]).toMatchObject({ reason: "client-lost", bytesFromClient: 1 });

    const rude = await sockets.serve((socket) => socket.once("data", () => socket.resetAndDestroy()));
    const second = await serve(toOne(rude));
    const victim = await sockets.connect(second.port);
    victim.write("x");
    expect(await endOf(victim)).toBe("ECONNRESET");
    await second.ended(1);
    expect(second.ends[0]?.reason).toBe("backend-lost");
  });

  it("delivers the whole answer of a backend that does not read the question to its end", async () => {
    const answer = Buffer.alloc(4 * 1024 * 1024, "a");
    const backend = await sockets.serve((socket) => {
      socket.once("data", () => socket.end(answer, () => setTimeout(() => socket.destroy(), 50)));
    });
    const { port } = await serve(toOne(backend));
    const client = await sockets.connect(port);
    const flood = setInterval(() => client.write(Buffer.alloc(1024)), 1);
    const received = await readAll(client).finally(() => clearInterval(flood));
    expect(received.length).toBe(answer.length);
  });

  it("tries the next endpoint when one refuses", async () => {
    const echo = await sockets.serve((socket) => socket.pipe(socket));
    const items = [
      streamHost("l", [streamRule(["b", 1])]),
      streamBackend("b", [await lastingPort(), await lastingPort(), echo]),
    ];
    const { port, ends, ended } = await serve(items);
    for (let i = 1; i <= 6; i++) {
      const client = await sockets.connect(port);
      client.end("again");
      expect((await readAll(client)).toString()).toBe("again");
      await ended(i);
      expect(ends[i - 1]?.endpoint?.port).toBe(echo);
    }
  });

  it.each<[string, readonly PlanItem[], StreamEnd["reason"]]>([
    ["no rule", [], "refused"],
    ["a sum of weights of 0", [streamHost("l", [streamRule(["b", 0])]), streamBackend("b", [1])], "refused"],
    ["an invalid reference", [streamHost("l", [streamRule([undefined, 1])])], "refused"],
    ["a backend that is not there", [streamHost("l", [streamRule(["gone", 1])])], "refused"],
    ["no endpoints", [streamHost("l", [streamRule(["b", 1])]), streamBackend("b", [])], "refused"],
    [
      "a policy that cannot be applied",
      [streamHost("l", [streamRule(["b", 1])]), streamBackend("b", [1], { refused: "no authority" })],
      "refused",
    ],
    [
      "endpoints that all refuse",
      [streamHost("l", [streamRule(["b", 1])]), streamBackend("b", [1])],
      "unreachable",
    ],
  ])("resets a connection with %s", async (_title, items, reason) => {
    const { port, ends, ended, tcp } = await serve(items);
    expect(await endAt(port)).toBe("ECONNRESET");
    await ended(1);
    expect(ends[0]?.reason).toBe(reason);
    await tcp.drain(1_000);
    expect(tcp.connections).toBe(0);
  });

  it("shares connections by weight, an invalid share is reset", async () => {
    const one = await sockets.serve((socket) => socket.end("one"));
    const two = await sockets.serve((socket) => socket.end("two"));
    const rule = streamRule(["a", 3], ["b", 1], [undefined, 1]);
    const { port } = await serve(
      [streamHost("l", [rule]), streamBackend("a", [one]), streamBackend("b", [two])],
      {
        maxConnections: 1_000,
      },
    );
    const seen = { one: 0, two: 0, reset: 0 };
    for (let i = 0; i < 300; i++) {
      const client = sockets.keep(connect({ port, host: "127.0.0.1" }));
      const text = (await readAll(client).catch(() => "reset")).toString() as keyof typeof seen;
      seen[text] += 1;
      client.destroy();
    }
    expect(seen.one).toBeGreaterThan(130);
    expect(seen.one).toBeLessThan(230);
    expect(seen.two).toBeGreaterThan(25);
    expect(seen.reset).toBeGreaterThan(25);
  });

  it("serves by the rule of the moment and leaves older connections alone", async () => {
    const one = await sockets.serve((socket) => socket.on("data", (data) => socket.write(`one ${data}`)));
    const two = await sockets.serve((socket) => socket.on("data", (data) => socket.write(`two ${data}`)));
    const { port, table } = await serve(toOne(one));
    const before = await sockets.connect(port);
    before.write("a");
    expect(String((await once(before, "data"))[0])).toBe("one a");
    table.apply({ upserts: [streamBackend("b", [two])], removes: [] });
    const after = await sockets.connect(port);
    after.write("b");
    expect(String((await once(after, "data"))[0])).toBe("two b");
    before.write("c");
    expect(String((await once(before, "data"))[0])).toBe("one c");
  });

  it("cuts connections that are idle", async () => {
    const silent = await sockets.serve(() => {});
    const { port, ends, ended } = await serve(toOne(silent), {
      timeouts: { connectTimeoutMs: 5_000, idleTimeoutMs: 100 },
    });
    const client = await sockets.connect(port);
    expect(await endOf(client)).toBe("ECONNRESET");
    await ended(1);
    expect(ends[0]?.reason).toBe("idle");
  });

  it("takes no more connections than it may, and takes again when one has gone", async () => {
    const echo = await sockets.serve((socket) => socket.pipe(socket));
    const { port, ended } = await serve(toOne(echo), { maxConnections: 2 });
    const first = await sockets.connect(port);
    const second = await sockets.connect(port);
    for (const client of [first, second]) {
      client.write("x");
      await once(client, "data");
    }
    const third = await sockets.connect(port);
    expect(["end", "close", "ECONNRESET"]).toContain(await endOf(third));
    first.end();
    await readAll(first);
    await ended(1);
    const fourth = await sockets.connect(port);
    fourth.write("y");
    expect(String((await once(fourth, "data"))[0])).toBe("y");
  });

  it("has no bound on connections where it was given none", async () => {
    const echo = await sockets.serve((socket) => socket.pipe(socket));
    const { port } = await serve(toOne(echo), { maxConnections: 0 });
    const client = await sockets.connect(port);
    client.end("hello");
    expect((await readAll(client)).toString()).toBe("hello");
  });

  it("drains: nobody new, those that are here may finish, until the limit", async () => {
    const echo = await sockets.serve((socket) => socket.pipe(socket));
    const { port, tcp, ends, ended } = await serve(toOne(echo));
    const finishing = await sockets.connect(port);
    const staying = await sockets.connect(port);
    for (const client of [finishing, staying]) {
      client.write("x");
      await once(client, "data");
    }
    // Being asked twice, with another limit, ends both.
    const drained = Promise.all([tcp.drain(50_000), tcp.drain(1_500)]);
    await expect(sockets.connect(port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
    finishing.end("last words");
    expect((await readAll(finishing)).toString()).toBe("last words");
    expect(await endOf(staying)).toBe("ECONNRESET");
    await drained;
    await ended(2);
    expect(ends.map((end) => end.reason)).toEqual(["closed", "aborted"]);
    expect(tcp.connections).toBe(0);
  });

  describe("while the backend's handshake hangs", () => {
    const tls = { hostname: "shop.example", subjectAltNames: [], authorities: [] };
    const hanging = async (): Promise<{
      readonly items: readonly PlanItem[];
      readonly left: Promise<string>;
    }> => {
      const left = Promise.withResolvers<string>();
      const port = await sockets.serve((socket) => void endOf(socket).then(left.resolve));
      return {
        items: [streamHost("l", [streamRule(["b", 1])]), streamBackend("b", [port], { tls })],
        left: left.promise,
      };
    };

    it("gives up when the client leaves", async () => {
      const { items, left } = await hanging();
      const { port, ends, ended } = await serve(items, {
        timeouts: { connectTimeoutMs: 59_000, idleTimeoutMs: 0 },
      });
      const client = await sockets.connect(port);
      setTimeout(() => client.resetAndDestroy(), 50);
      await ended(1);
      expect(ends[0]?.reason).toBe("client-lost");
      expect(["end", "close", "ECONNRESET"]).toContain(await left);
    });

    it("gives up after the time to connect", async () => {
      const { items, left } = await hanging();
      const { port, ends } = await serve(items, { timeouts: { connectTimeoutMs: 100, idleTimeoutMs: 0 } });
      expect(await endAt(port)).toBe("ECONNRESET");
      expect(ends[0]).toMatchObject({
        reason: "unreachable",
        error: { message: "connecting took too long" },
      });
      expect(["end", "close", "ECONNRESET"]).toContain(await left);
    });

    it("gives up when the port closes", async () => {
      const { items, left } = await hanging();
      const { port, tcp, ends, ended } = await serve(items);
      const client = await sockets.connect(port);
      const clientEnd = endOf(client);
      setTimeout(() => void tcp.close(), 50);
      await ended(1);
      expect(ends[0]?.reason).toBe("aborted");
      expect(await clientEnd).toBe("ECONNRESET");
      expect(["end", "close", "ECONNRESET"]).toContain(await left);
    });
  });

  it("tells when a port cannot be bound", async () => {
    const { port, table } = await serve([]);
    const second = new TcpPort({
      port: "p",
      table,
      timeouts: { connectTimeoutMs: 1, idleTimeoutMs: 1 },
      maxConnections: 1,
    });
    await expect(second.listen({ address: "127.0.0.1", port })).rejects.toMatchObject({ code: "EADDRINUSE" });
    await second.close();
  });
});
