import { once } from "node:events";
import { connect as connectHttp2, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { expect, test } from "vitest";
import { ask, textOf } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const wild = listener("wild", http, "*.wild.example");
const all = listener("all", http, "");

/** Some tools read them as one host, others as another. */
const notHosts: readonly string[] = [
  "",
  "shop.example:",
  "shop.example:x",
  "shop.example:+80",
  "shop.example:-1",
  "shop.example:65536",
  "shop.example:99999",
  "shop.example:000080",
  "shop.example:80:80",
  "shop.example:@evil.example",
  "shop.example:80@evil.example",
  "evil.example@shop.example",
  "shop.example/x",
  "shop.example:80/x",
  "shop.example?x",
  "shop.example#x",
  "shop.example\\x",
  "shop.example,evil.example",
  "shop.example, evil.example",
  "shop.example;x",
  "shop%2eexample",
  "shop .example",
  "a.wild.example:@evil.example",
  "a@b.wild.example",
  "a!b.wild.example",
  "(a).wild.example",
  "[a].wild.example",
  "*.wild.example",
];
const hosts: readonly string[] = [
  "shop.example",
  "shop.example:80",
  "shop.example:65535",
  "SHOP.example.",
  "a_b.wild.example",
  "a~b.wild.example",
  "[::1]",
  "[::1]:80",
];

/** Clients as they are met: old, careless, hostile. */
export function describeClients(create: CreateDataPlane): void {
  const stage = setStage(create);
  const seen: (string | undefined)[] = [];
  const start = async (): Promise<PlaneUnderTest> => {
    seen.length = 0;
    const at = await stage.backends.http(({ headers }, response) => {
      seen.push(headers.host);
      response.end(headers.host);
    });
    return stage.start([
      http,
      shop,
      wild,
      all,
      ...[shop, wild, all].map((each) => host(each, each.hostname, [rule({ action: forwardTo("b") })])),
      backend("b", [at]),
    ]);
  };
  const talk = async (at: number, text: string): Promise<string> => {
    const socket = await stage.sockets.connect(at);
    socket.write(text);
    return await textOf(socket);
  };
  /** Without waiting for the end of the connection. */
  const statusAt = async (at: number, text: string): Promise<string> => {
    const socket = await stage.sockets.connect(at);
    socket.write(text);
    const [head] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    return statusOf(String(head));
  };
  const statusOf = (answer: string): string => /^HTTP\/1\.[01] (\d+)/.exec(answer)?.[1] ?? "closed";

  test("serves HTTP/1.0, which needs a Host as well", async () => {
    const plane = await start();
    const answer = await talk(plane.at(80), "GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n");
    expect(statusOf(answer)).toBe("200");
    expect(answer).toMatch(/\r\n\r\nshop\.example$/);
    expect(await plane.record(({ status }) => status === 200)).toMatchObject({ protocol: "HTTP/1.0" });
    expect(await statusAt(plane.at(80), "GET / HTTP/1.0\r\n\r\n")).toBe("400");
    const coded =
      "POST / HTTP/1.0\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    expect(await statusAt(plane.at(80), coded)).toBe("400");
    expect(seen).toEqual(["shop.example"]);
  });

  test("refuses hosts that two readers could take for different ones, and passes on those that are none of these", async () => {
    const plane = await start();
    const outcome = async (name: string): Promise<string> =>
      await statusAt(plane.at(80), `GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`);
    const outcomes: Record<string, string> = {};
    for (const name of [...notHosts, ...hosts]) outcomes[name] = await outcome(name);
    expect(outcomes).toEqual({
      ...Object.fromEntries(notHosts.map((name) => [name, "400"])),
      ...Object.fromEntries(hosts.map((name) => [name, "200"])),
    });
    expect(seen).toEqual(hosts);
    const refused = await plane.record(({ status }) => status === 400);
    expect(refused).toMatchObject({ reason: "Refused" });
  });

  test("refuses two Host fields, equal or not", async () => {
    const plane = await start();
    for (const second of ["shop.example", "evil.example"]) {
      const fields = `Host: shop.example\r\nHost: ${second}\r\nConnection: close\r\n\r\n`;
      expect(await statusAt(plane.at(80), `GET / HTTP/1.1\r\n${fields}`)).toBe("400");
    }
    expect(seen).toEqual([]);
  });

  test("refuses the same hosts over HTTP/2", async () => {
    const plane = await start();
    const outcome = async (headers: OutgoingHttpHeaders): Promise<number | "reset"> => {
      const session = connectHttp2(`http://127.0.0.1:${plane.at(80)}`);
      session.on("error", () => {});
      stage.onRelease(() => session.destroy());
      const stream = session.request({ ":path": "/", ...headers });
      const closed = new Promise<"reset">((resolve) => {
        stream.on("error", () => {}).on("close", () => resolve("reset"));
      });
      const answered = new Promise<number>((resolve) => {
        stream.on("response", (head: IncomingHttpHeaders & { ":status"?: number }) =>
          resolve(head[":status"] ?? 0),
        );
      });
      return await Promise.race([answered, closed]);
    };
    for (const name of notHosts)
      expect([400, "reset"], name).toContain(await outcome({ ":authority": name }));
    expect(seen).toEqual([]);
    expect(await outcome({ ":authority": "shop.example" })).toBe(200);
  });

  test("switches to WebSocket only if Connection says so", async () => {
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
    const answer = await ask(plane.at(80), {
      host: "shop.example",
      headers: { upgrade: "websocket", connection: "close", "sec-websocket-version": "13" },
    });
    expect(answer.status).toBe(200);
    expect(answer.seen.headers).not.toHaveProperty("upgrade");
  });

  test("a WebSocket over HTTP/2 has a key when it reaches a backend that speaks HTTP/1.1", async () => {
    // As servers do it (RFC 6455, 4.2.1): a handshake without a key is a bad request.
    const at = await stage.sockets.serve((socket) => {
      socket.once("data", (bytes) => {
        const keys = [...String(bytes).matchAll(/^sec-websocket-key: *(.*)\r$/gim)].map(([, key]) => key);
        const valid = keys.length === 1 && Buffer.from(keys[0] ?? "", "base64").length === 16;
        if (!valid) socket.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        else socket.write("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello");
      });
    });
    const plane = await stage.start([
      http,
      shop,
      wild,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      host(wild, "*.wild.example", [rule({ action: forwardTo("b") })]),
      backend("b", [at]),
    ]);
    for (const authority of ["shop.example", "SHOP.example", "x.wild.example"]) {
      const session = connectHttp2(`http://127.0.0.1:${plane.at(80)}`);
      stage.onRelease(() => session.destroy());
      await once(session, "remoteSettings");
      const stream = session.request({
        ":method": "CONNECT",
        ":protocol": "websocket",
        ":scheme": "http",
        ":authority": authority,
        ":path": "/chat",
        "sec-websocket-version": "13",
      });
      const firstData = once(stream, "data");
      const [headers] = await once(stream, "response");
      expect(headers, authority).toMatchObject({ ":status": 200 });
      expect(String(((await firstData) as [Buffer])[0])).toBe("hello");
    }
  });
}
