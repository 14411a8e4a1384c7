import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls, createServer, TLSSocket } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { identityError } from "../../../../src/dataplanes/backend-tls.ts";
import { readClientHello } from "../../../../src/dataplanes/embedded/streams/client-hello.ts";
import type { StreamEnd } from "../../../../src/dataplanes/embedded/streams/proxy-stream.ts";
import { serveStream } from "../../../../src/dataplanes/embedded/streams/serve-stream.ts";
import { RoutingTable } from "../../../../src/matching/routing-table.ts";
import type { BackendTls } from "../../../../src/plan/backend.ts";
import type { PlanItem } from "../../../../src/plan/plan.ts";
import { authority, issue, selfSigned } from "../../support/certificates.ts";
import { readAll, Sockets, seeded } from "../../support/sockets.ts";
import {
  streamBackend,
  streamHost,
  streamListener,
  streamPort,
  streamRule,
} from "../../support/stream-table.ts";

let sockets = new Sockets();
let stop = new AbortController();
const closers: (() => void)[] = [];

afterEach(async () => {
  stop.abort();
  for (const close of closers.splice(0)) close();
  await sockets.release();
  sockets = new Sockets();
  stop = new AbortController();
});

const ca = authority();

/** A backend that terminates TLS itself and answers with its own name. */
async function tlsBackend(name: string, names: readonly string[], options = {}): Promise<number> {
  const server = createServer({ ...issue(ca, names), ...options, allowHalfOpen: true }, (socket) => {
    sockets.keep(socket);
    void readAll(socket).then(
      (question) => socket.end(`${name}: ${question}`),
      () => {},
    );
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

interface Front {
  readonly port: number;
  readonly ends: readonly StreamEnd[];
}

/**
 * The way of a TLS connection through the data plane: hello, listener, then passthrough or
 * termination.
 */
async function front(
  items: readonly PlanItem[],
  certificate?: { cert: string; key: string },
): Promise<Front> {
  const table = new RoutingTable();
  table.apply({ upserts: [streamPort("p", "tls"), streamListener("l", "p", "TLS"), ...items], removes: [] });
  const ends: StreamEnd[] = [];
  const serve = async (socket: Socket): Promise<void> => {
    const hello = await readClientHello(socket, { timeoutMs: 10_000, signal: stop.signal });
    if ("error" in hello) return void socket.destroy();
    const rule = table.streamRule("l", hello.serverName);
    let client: Socket = socket;
    if (certificate !== undefined) {
      client = new TLSSocket(socket, { isServer: true, ...certificate });
      sockets.keep(client);
    }
    await serveStream({
      client,
      rule,
      table,
      passthrough: certificate === undefined,
      timeouts: { connectTimeoutMs: 5_000, idleTimeoutMs: 60_000 },
      random: seeded(1),
      signal: stop.signal,
      onEnd: (end) => ends.push(end),
    });
  };
  return { port: await sockets.serve((socket) => void serve(socket)), ends };
}

async function ask(port: number, options: ConnectionOptions, question = "who?"): Promise<string> {
  const socket = await sockets.connect(port);
  const client = connectTls({ socket, ca: ca.cert, ...options });
  sockets.keep(client);
  await once(client, "secureConnect");
  client.end(question);
  return (await readAll(client)).toString();
}

describe("TLS passthrough", () => {
  it("brings each name to its own backend, whose certificate the client sees", async () => {
    const shop = await tlsBackend("shop", ["shop.example"]);
    const bank = await tlsBackend("bank", ["*.bank.example"]);
    const { port } = await front([
      streamHost("l", [streamRule(["shop", 1])], "shop.example"),
      streamHost("l", [streamRule(["bank", 1])], "*.bank.example"),
      streamBackend("shop", [shop]),
      streamBackend("bank", [bank]),
    ]);
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      expect(await ask(port, { servername: "shop.example", maxVersion })).toBe("shop: who?");
      expect(await ask(port, { servername: "a.bank.example", maxVersion })).toBe("bank: who?");
    }
    const large = "x".repeat(300_000);
    expect(await ask(port, { servername: "shop.example" }, large)).toBe(`shop: ${large}`);
    await expect(ask(port, { servername: "other.example" })).rejects.toThrow();
    await expect(ask(port, { servername: "" })).rejects.toThrow();
  });

  it("adds no TLS of its own, whatever the backend's policy says", async () => {
    const shop = await tlsBackend("shop", ["shop.example"]);
    const tls: BackendTls = { hostname: "inner.example", subjectAltNames: [], authorities: [ca.cert] };
    const { port } = await front([
      streamHost("l", [streamRule(["shop", 1])], "shop.example"),
      streamBackend("shop", [shop], { tls }),
    ]);
    expect(await ask(port, { servername: "shop.example" })).toBe("shop: who?");
  });
});

describe("TLS terminate", () => {
  const outer = issue(ca, ["shop.example"]);
  const to = (port: number, tls?: BackendTls): readonly PlanItem[] => [
    streamHost("l", [streamRule(["b", 1])], "shop.example"),
    streamBackend("b", [port], tls && { tls }),
  ];
  const policy = (overrides: Partial<BackendTls>): BackendTls => ({
    hostname: "inner.example",
    subjectAltNames: [],
    authorities: [ca.cert],
    ...overrides,
  });

  it("hands the plain bytes to the backend, with half a close", async () => {
    const plain = await sockets.serve((socket) => {
      void readAll(socket).then((question) => socket.end(`plain: ${question}`));
    });
    const { port, ends } = await front(to(plain), outer);
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      expect(await ask(port, { servername: "shop.example", maxVersion })).toBe("plain: who?");
    }
    await expect.poll(() => ends.length).toBe(2);
    expect(ends.map((end) => [end.reason, end.bytesFromClient, end.bytesFromBackend])).toEqual([
      ["closed", 4, 11],
      ["closed", 4, 11],
    ]);
  });

  it("resets the client when the backend resets", async () => {
    const rude = await sockets.serve((socket) => socket.once("data", () => socket.resetAndDestroy()));
    const { port } = await front(to(rude), outer);
    await expect(ask(port, { servername: "shop.example" })).rejects.toMatchObject({ code: "ECONNRESET" });
  });

  it("speaks TLS to a backend with a policy, and presents its name", async () => {
    const asked: (string | false | null)[] = [];
    const inner = await tlsBackend("inner", ["inner.example", "spiffe://cluster/shop"], {
      SNICallback: (name: string, done: (error: null) => void) => {
        asked.push(name);
        done(null);
      },
    });
    for (const tls of [
      policy({}),
      policy({ hostname: "sni.example", subjectAltNames: [{ type: "Hostname", value: "inner.example" }] }),
      policy({ hostname: "sni.example", subjectAltNames: [{ type: "URI", value: "spiffe://cluster/shop" }] }),
    ]) {
      const { port } = await front(to(inner, tls), outer);
      expect(await ask(port, { servername: "shop.example" })).toBe("inner: who?");
    }
    expect(asked).toEqual(["inner.example", "sni.example", "sni.example"]);
  });

  it.each<[string, Partial<BackendTls>]>([
    ["another name", { hostname: "elsewhere.example" }],
    ["another authority", { authorities: [authority().cert] }],
    ["no authority", { authorities: [] }],
    ["none of the names wanted", { subjectAltNames: [{ type: "Hostname", value: "no.example" }] }],
    ["no such URI", { subjectAltNames: [{ type: "URI", value: "inner.example" }] }],
  ])("sends nothing to a backend with %s", async (_title, overrides) => {
    let bytes = 0;
    const server = createServer({ ...issue(ca, ["inner.example"]) }, (socket) => {
      sockets.keep(socket);
      socket.on("data", (chunk) => {
        bytes += chunk.length;
      });
    });
    server.on("tlsClientError", () => {});
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    closers.push(() => server.close());
    const { port, ends } = await front(to((server.address() as AddressInfo).port, policy(overrides)), outer);
    await expect(ask(port, { servername: "shop.example" })).rejects.toThrow();
    await expect.poll(() => ends.length).toBe(1);
    expect(ends[0]?.reason).toBe("unreachable");
    expect(bytes).toBe(0);
  });
});

describe("identityError", () => {
  const certificate = async (names: readonly string[]): Promise<Parameters<typeof identityError>[1]> => {
    const pair = names.length > 0 ? selfSigned(names) : selfSigned([]);
    const server = createServer(pair).listen(0, "127.0.0.1");
    closers.push(() => server.close());
    await once(server, "listening");
    const client = connectTls({
      port: (server.address() as AddressInfo).port,
      host: "127.0.0.1",
      rejectUnauthorized: false,
    });
    sockets.keep(client);
    await once(client, "secureConnect");
    return client.getPeerCertificate();
  };
  const wants = (value: string, type: "Hostname" | "URI" = "Hostname"): BackendTls => ({
    hostname: "unused.example",
    subjectAltNames: [{ type, value }],
    authorities: [],
  });

  it("knows wildcards, of the certificate and of the policy", async () => {
    const wild = await certificate(["*.shop.example"]);
    expect(identityError(wants("a.shop.example"), wild)).toBeUndefined();
    expect(identityError(wants("*.shop.example"), wild)).toBeUndefined();
    expect(identityError(wants("*.SHOP.example"), wild)).toBeUndefined();
    expect(identityError(wants("shop.example"), wild)).toBeDefined();
    expect(identityError(wants("a.b.shop.example"), wild)).toBeDefined();
  });

  it("believes neither the common name nor names hidden in others", async () => {
    expect(identityError(wants("nobody"), await certificate([]))).toBeDefined();
    const sly = await certificate(["spiffe://x/a, DNS:shop.example", 'spiffe://x/b", URI:spiffe://y']);
    expect(identityError(wants("shop.example"), sly)).toBeDefined();
    expect(identityError(wants("spiffe://y", "URI"), sly)).toBeDefined();
    expect(identityError(wants("spiffe://x/a, DNS:shop.example", "URI"), sly)).toBeUndefined();
  });
});
