import { createHash } from "node:crypto";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { answerOf, ask, textOf } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";
import { onlyIf, type Traits } from "./traits.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");

/** Bodies, trailers, interim answers and upgrades, as streams rather than as wholes. */
export function describeMessages(create: CreateDataPlane, traits: Traits): void {
  const stage = setStage(create);
  const startTo = (at: number): Promise<PlaneUnderTest> =>
    stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [at]),
    ]);
  const rawAsk = async (at: number, text: string): Promise<Socket> => {
    const socket = await stage.sockets.connect(at);
    socket.write(text);
    return socket;
  };

  test("streams a large body both ways, whole", async () => {
    const at = await stage.backends.http((incoming, response) => {
      response.setHeader("x-length", String(incoming.headers["content-length"]));
      incoming.pipe(response);
    });
    const plane = await startTo(at);
    const block = Buffer.alloc(64 * 1024, "0123456789abcdef");
    const sent = request({
      host: "127.0.0.1",
      port: plane.at(80),
      method: "PUT",
      headers: { host: "shop.example" },
      agent: false,
    });
    const hashes = { sent: createHash("sha256"), received: createHash("sha256") };
    const upload = (async () => {
      for (let count = 0; count < 256; count++) {
        hashes.sent.update(block);
        if (!sent.write(block)) await once(sent, "drain");
      }
      sent.end();
    })();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    for await (const chunk of response) hashes.received.update(chunk as Buffer);
    await upload;
    expect(response.headers["x-length"]).toBe("undefined");
    expect(hashes.received.digest("hex")).toBe(hashes.sent.digest("hex"));
    const record = await plane.record(({ method }) => method === "PUT");
    expect(record).toMatchObject({
      bytesReceived: 16 * 1024 * 1024,
      bytesSent: 16 * 1024 * 1024,
      status: 200,
    });
  });

  test("holds a backend back while the client does not read", async () => {
    let written = 0;
    let finished = false;
    const total = 64 * 1024 * 1024;
    const at = await stage.backends.http((_incoming, response) => {
      const block = Buffer.alloc(64 * 1024);
      const more = (): void => {
        while (written < total) {
          written += block.length;
          if (!response.write(block)) {
            response.once("drain", more);
            return;
          }
        }
        finished = true;
        response.end();
      };
      more();
    });
    const plane = await startTo(at);
    const client = await rawAsk(
      plane.at(80),
      "GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n",
    );
    client.pause();
    let before = -1;
    while (written !== before) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    expect(finished).toBe(false);
    expect(written).toBeLessThan(total / 2);
    let received = 0;
    for await (const chunk of client) received += (chunk as Buffer).length;
    expect(received).toBeGreaterThan(total);
  });

  test("passes trailers on", async () => {
    const at = await stage.backends.http((_incoming, response) => {
      response.writeHead(200, { trailer: "x-checksum" });
      response.write("body");
      response.addTrailers({ "x-checksum": "abc" });
      response.end();
    });
    const plane = await startTo(at);
    const answer = await ask(plane.at(80), { host: "shop.example" });
    expect(answer.body).toBe("body");
    expect(answer.trailers).toEqual({ "x-checksum": "abc" });
  });

  test("lets a client that waits for 100 Continue go on only when its body is wanted", async () => {
    const plane = await startTo(await stage.backends.echo("b"));
    const expectant = (hostname: string): ReturnType<typeof request> => {
      const sent = request({
        host: "127.0.0.1",
        port: plane.at(80),
        method: "POST",
        headers: { host: hostname, expect: "100-continue", "content-length": "5" },
        agent: false,
      });
      sent.on("error", () => {}).flushHeaders();
      stage.onRelease(() => sent.destroy());
      return sent;
    };
    const wanted = expectant("shop.example");
    await once(wanted, "continue");
    wanted.end("hello");
    const [response] = (await once(wanted, "response")) as [IncomingMessage];
    const answer = await answerOf(response);
    expect(answer.seen.body).toBe("hello");
    if (traits.allInterim) expect(answer.seen.headers).not.toHaveProperty("expect");

    const unwanted = expectant("nobody.example");
    let continued = false;
    unwanted.on("continue", () => {
      continued = true;
    });
    const [refusal] = (await once(unwanted, "response")) as [IncomingMessage];
    expect(refusal.statusCode).toBe(404);
    expect(continued).toBe(false);
  });

  test("answers without bodies keep the connection usable", async () => {
    const at = await stage.backends.http((incoming, response) => {
      const status = Number(incoming.url?.slice(1));
      response.writeHead(status, {
        "x-status": String(status),
        ...(incoming.method === "HEAD" ? { "content-length": "5" } : {}),
      });
      response.end();
    });
    const plane = await startTo(at);
    const client = await rawAsk(
      plane.at(80),
      ["HEAD /200", "GET /204", "GET /304", "GET /200"]
        .map((line) => `${line} HTTP/1.1\r\nHost: shop.example\r\n`)
        .join("\r\n")
        .concat("Connection: close\r\n\r\n"),
    );
    const text = await textOf(client);
    expect(text.match(/^HTTP\/1\.1 \d+/gm)).toEqual([
      "HTTP/1.1 200",
      "HTTP/1.1 204",
      "HTTP/1.1 304",
      "HTTP/1.1 200",
    ]);
    expect(text.match(/^content-length: \d+/gim)).toContain("content-length: 5");
  });

  test("passes on an answer that comes before the request is complete, and never reuses that connection", async () => {
    const connections = new Set<Socket>();
    const at = await stage.backends.http((incoming, response) => {
      connections.add(incoming.socket);
      if (incoming.method === "POST") {
        response.writeHead(413);
        response.end("too much");
      } else incoming.resume().on("end", () => response.end("fine"));
    });
    const plane = await startTo(at);
    const client = await rawAsk(
      plane.at(80),
      `POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 100000\r\n\r\n${"x".repeat(1000)}`,
    );
    const [first] = (await once(client, "data")) as [Buffer];
    expect(String(first)).toMatch(/^HTTP\/1\.1 413 /);
    const next = await Promise.all(
      Array.from({ length: 5 }, () => ask(plane.at(80), { host: "shop.example" })),
    );
    for (const answer of next) expect(answer).toMatchObject({ status: 200, body: "fine" });
    expect(connections.size).toBeGreaterThan(1);
  });

  test("cuts the answer off when the backend breaks off or lies about its length", async () => {
    const at = await stage.sockets.serve((socket) => {
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"));
    });
    const plane = await startTo(at);
    await expect(ask(plane.at(80), { host: "shop.example" })).rejects.toThrow();
    expect(await plane.record(({ path }) => path === "/")).toMatchObject({ reason: "BackendReset" });
  });

  test("502 when the backend closes without an answer, or talks nonsense", async () => {
    const at = await stage.sockets.serve((socket) =>
      socket.once("data", (bytes) => {
        if (String(bytes).startsWith("GET /nonsense")) socket.end("SSH-2.0-OpenSSH\r\n");
        else socket.destroy();
      }),
    );
    const plane = await startTo(at);
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(502);
    expect((await ask(plane.at(80), { host: "shop.example", path: "/nonsense" })).status).toBe(502);
  });

  test("keeps connections on both sides", async () => {
    const connections = new Set<Socket>();
    const at = await stage.backends.http((incoming, response) => {
      connections.add(incoming.socket);
      response.end("ok");
    });
    const plane = await startTo(at);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    stage.onRelease(() => agent.destroy());
    const ports = new Set<number | undefined>();
    for (let round = 0; round < 10; round++) {
      const sent = request({
        host: "127.0.0.1",
        port: plane.at(80),
        headers: { host: "shop.example" },
        agent,
      });
      sent.end();
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      ports.add(response.socket.localPort);
      await answerOf(response);
    }
    expect(ports.size).toBe(1);
    expect(connections.size).toBe(1);
  });

  test("switches to WebSocket and carries bytes both ways", async () => {
    const at = await webSocketEcho();
    const plane = await startTo(at);
    const client = await rawAsk(
      plane.at(80),
      "GET /chat HTTP/1.1\r\nHost: shop.example\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\nearly",
    );
    let text = "";
    client.on("data", (chunk) => {
      text += String(chunk);
    });
    const until = async (wanted: string): Promise<void> => {
      while (!text.endsWith(wanted)) await once(client, "data");
    };
    await until("early");
    expect(text).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
    expect(text).toMatch(/^upgrade: websocket\r$/im);
    expect(text).toMatch(/^sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r$/im);
    client.write(" and late");
    await until("early and late");
    client.end();
    await once(client, "close");
    expect(await plane.record(({ path }) => path === "/chat")).toMatchObject({ status: 101 });
  });

  test("what a backend says over a WebSocket before it leaves reaches a client that reads late", async () => {
    const words = Buffer.alloc(3 * 1024 * 1024, "0123456789abcdef");
    const at = await stage.sockets.serve((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        socket.end(words);
      });
    });
    const plane = await startTo(at);
    const client = await rawAsk(
      plane.at(80),
      "GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    const [head] = (await once(client, "data")) as [Buffer];
    client.pause();
    await pause(200);
    const pieces = [head];
    for await (const piece of client) pieces.push(piece as Buffer);
    const all = Buffer.concat(pieces);
    expect(all.subarray(all.indexOf("\r\n\r\n") + 4).equals(words)).toBe(true);
  });

  test("a refused upgrade gets the backend's answer; one to something else is served as if it were none", async () => {
    const plane = await startTo(await stage.backends.echo("b"));
    const upgrade = (to: string): Record<string, string> => ({ connection: "Upgrade", upgrade: to });
    const refused = await ask(plane.at(80), { host: "nobody.example", headers: upgrade("websocket") });
    expect(refused.status).toBe(404);
    const other = await ask(plane.at(80), {
      host: "shop.example",
      headers: upgrade("h2c"),
      method: "POST",
      body: "b",
    });
    expect(other.seen).toMatchObject({ method: "POST", body: "b" });
    expect(other.seen.headers).not.toHaveProperty("upgrade");
  });

  onlyIf(traits.endsUpgrades)("WebSocket over HTTP/2", async () => {
    const plane = await startTo(await webSocketEcho());
    const session = connectHttp2(`http://127.0.0.1:${plane.at(80)}`);
    stage.onRelease(() => session.destroy());
    await once(session, "remoteSettings");
    const stream = session.request({
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":scheme": "http",
      ":authority": "shop.example",
      ":path": "/chat",
      "sec-websocket-version": "13",
    });
    const [headers] = await once(stream, "response");
    expect(headers).toMatchObject({ ":status": 200 });
    stream.write("ping");
    const [echoed] = (await once(stream, "data")) as [Buffer];
    expect(String(echoed)).toBe("ping");
    stream.resume().end();
    await once(stream, "close");
  });

  async function webSocketEcho(): Promise<number> {
    return await stage.sockets.serve((socket) => {
      socket.once("data", (bytes) => {
        const [head = "", ...rest] = String(bytes).split("\r\n\r\n");
        const key = /^sec-websocket-key: (.*)$/im.exec(head)?.[1] ?? "";
        const accept = createHash("sha1")
          .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
          .digest("base64");
        const upgraded = /^upgrade: websocket$/im.test(head) && /^connection:.*\bupgrade$/im.test(head);
        socket.write(
          `HTTP/1.1 ${upgraded ? 101 : 400} x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n${rest.join("")}`,
        );
        socket.pipe(socket);
      });
    });
  }
}
