import { once } from "node:events";
import type { Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../../src/dataplanes/embedded/embedded-data-plane.ts";
import { authority, issue } from "../../support/certificates.ts";
import { Backends } from "../../support/http-peers.ts";
import { backend, certificate, forwardTo, host, port, rule, secure } from "../../support/plan-builder.ts";
import { PlaneUnderTest } from "../../support/plane-under-test.ts";
import { Sockets } from "../../support/sockets.ts";

/**
 * What RFC 8446, RFC 5246 and RFC 9113, 9.2 ask of a server, beyond what its TLS library does by
 * itself.
 */

const ca = authority();
const tls = port(443, "tls");
const cert = certificate("c", issue(ca, ["a.example"]), ["a.example"]);
const a = secure("a", tls, "a.example", [cert]);
const backends = new Backends();
const sockets = new Sockets();
let plane: PlaneUnderTest;

beforeAll(async () => {
  const socketBackend = await sockets.serve((socket) => {
    socket.once("data", () => {
      socket.write("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      socket.pipe(socket);
    });
  });
  plane = await PlaneUnderTest.start(
    (options) => createEmbeddedDataPlane({ ...options, workers: 0 }),
    [
      tls,
      cert,
      a,
      host(a, "a.example", [
        rule({ path: "/socket", action: forwardTo("socket") }),
        rule({ action: forwardTo("b") }),
      ]),
      backend("b", [await backends.echo("b")]),
      backend("socket", [socketBackend]),
    ],
    { limits: { headerTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000 } },
  );
});

afterAll(async () => {
  await plane.close();
  await sockets.release();
  await backends.release();
});

function client(options: ConnectionOptions = {}): TLSSocket {
  const socket = connectTls({
    port: plane.at(443),
    host: "127.0.0.1",
    servername: "a.example",
    ca: ca.cert,
    ...options,
  });
  sockets.keep(socket);
  return socket;
}

describe("renegotiation", () => {
  test.each([["http/1.1"], ["h2"]])("by a client of TLS 1.2 is refused, under %s", async (protocol) => {
    const socket = client({ maxVersion: "TLSv1.2", ALPNProtocols: [protocol] });
    await once(socket, "secureConnect");
    const outcome = await new Promise<Error | null>((resolve) => {
      socket.renegotiate({}, resolve);
      socket.once("error", resolve);
      socket.once("close", () => resolve(new Error("closed")));
    });
    expect(outcome).toBeInstanceOf(Error);
  });
});

describe("a fatal TLS error", () => {
  /**
   * A client behind a relay: what goes to the gateway can be changed on the way, and its close be
   * seen.
   */
  async function relayed(options: ConnectionOptions): Promise<{ above: TLSSocket; toGateway: Socket }> {
    const toGateway = await sockets.connect(plane.at(443));
    const at = await sockets.serve((socket) => {
      socket.on("data", (bytes) => toGateway.write(bytes));
      toGateway.on("data", (bytes) => socket.write(bytes));
    });
    return { above: client({ ...options, port: at }), toGateway };
  }

  test.each([
    ["TLSv1.2", "http/1.1"],
    ["TLSv1.2", "h2"],
    ["TLSv1.3", "http/1.1"],
    ["TLSv1.3", "h2"],
  ] as const)("after the handshake ends the connection (%s, %s)", async (version, protocol) => {
    const { above, toGateway } = await relayed({
      minVersion: version,
      maxVersion: version,
      ALPNProtocols: [protocol],
    });
    // The answer, or the server's settings: its handshake is over, too.
    if (protocol === "http/1.1") above.write("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    await once(above, "data");
    // Application data that no key of this connection has made.
    toGateway.write(Buffer.concat([Buffer.from([23, 3, 3, 0, 64]), Buffer.alloc(64, 7)]));
    await once(toGateway, "end");
  });

  test("in the handshake ends the connection", async () => {
    const { above, toGateway } = await relayed({
      ciphers: "ECDHE-RSA-AES128-GCM-SHA256",
      maxVersion: "TLSv1.2",
    });
    above.on("error", () => {});
    await once(toGateway, "end");
  });
});

describe("key exchange", () => {
  test.each([
    ["X25519MLKEM768", true],
    ["X25519", true],
    ["P-256", true],
    ["P-384", true],
    ["P-521", false],
    ["X448", false],
  ])("with %s: %s", async (ecdhCurve, served) => {
    const socket = client({ ecdhCurve });
    const outcome = await new Promise<boolean>((resolve) => {
      socket.once("secureConnect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    expect(outcome).toBe(served);
  });
});

test("WebSockets over TLS raise no warning of too many listeners", async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error): void => void warnings.push(warning);
  process.on("warning", warned);
  for (let round = 0; round < 3; round++) {
    const socket = client();
    socket.write(
      "GET /socket HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    const [head] = (await once(socket, "data")) as [Buffer];
    expect(head.toString()).toMatch(/^HTTP\/1\.1 101 /);
    socket.write("ping");
    const [echo] = (await once(socket, "data")) as [Buffer];
    expect(echo.toString()).toBe("ping");
    socket.end();
    await once(socket, "close");
  }
  process.off("warning", warned);
  expect(warnings.map(({ message }) => message)).toEqual([]);
});
