import { once } from "node:events";
import { createServer as createHttp1Server } from "node:http";
import { connect, createServer as createHttp2Server, type IncomingHttpHeaders } from "node:http2";
import { expect, test } from "vitest";
import type { Filters } from "../../../src/plan/rule.ts";
import { textOf } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";
import { onlyIf, type Traits } from "./traits.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const protocols = ["http/1.1", "http/2"] as const;
type Protocol = (typeof protocols)[number];

/** What a backend saw, or a client: the value of `Trailer`, and the fields behind the body. */
interface Trailed {
  readonly announced: string | undefined;
  readonly trailers: Readonly<Record<string, unknown>>;
}

interface Trailing {
  readonly announced: string;
  readonly trailers: Readonly<Record<string, string>>;
}

const filters: Filters = {
  requestHeaders: [
    { op: "set", name: "x-user", value: "nobody" },
    { op: "remove", name: "x-debug-mode" },
  ],
  responseHeaders: [
    { op: "remove", name: "x-internal" },
    { op: "set", name: "x-frame-options", value: "DENY" },
  ],
};

/**
 * Behind a body nobody may say what is cleaned in front of it, or what must be known before it (RFC
 * 9110, 6.5.1).
 */
const unwantedOfClients = [
  "Authorization",
  "Cache-Control",
  "Content-Encoding",
  "Content-Type",
  "Cookie",
  "Expect",
  "Forwarded",
  "Host",
  "If-Match",
  "Keep-Alive",
  "Max-Forwards",
  "Proxy",
  "Proxy-Authorization",
  "Range",
  "X-Debug-Mode",
  "X-Debug_Mode",
  "X-Envoy-Retry-On",
  "X-Forwarded-Client-Cert",
  "X-Forwarded-For",
  "X-Real-IP",
  "X-Request-Id",
  "X-User",
  "X_Forwarded_For",
  "X_User",
];
const unwantedOfBackends = [
  "Content-Encoding",
  "Content-Type",
  "Set-Cookie",
  "WWW-Authenticate",
  "X-Frame-Options",
  "X-Internal",
];

/** Without what Node adds under symbols. */
function named(fields: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(fields));
}

export function describeTrailers(create: CreateDataPlane, traits: Traits): void {
  const stage = setStage(create);

  /** Answers with what it has seen, and with the trailers that it is told to. */
  const trailingBackend = async (protocol: Protocol, { announced, trailers }: Trailing): Promise<number> => {
    if (protocol === "http/1.1") {
      return await stage.backends.listen(
        createHttp1Server(async (incoming, response) => {
          await textOf(incoming).catch(() => "cut off");
          response.writeHead(200, { trailer: announced });
          response.write(
            JSON.stringify({ announced: incoming.headers.trailer, trailers: incoming.trailers }),
          );
          response.addTrailers(trailers);
          response.end();
        }),
      );
    }
    const server = createHttp2Server();
    server.on("stream", async (stream, headers) => {
      let received: IncomingHttpHeaders = {};
      stream.on("trailers", (fields) => {
        received = named(fields);
      });
      await textOf(stream).catch(() => "cut off");
      if (stream.destroyed) return;
      stream.respond({ ":status": 200, trailer: announced }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers(trailers));
      stream.end(JSON.stringify({ announced: headers.trailer, trailers: received }));
    });
    return await stage.backends.listen(server);
  };

  const askOverHttp1 = async (at: number, { announced, trailers }: Trailing): Promise<[Trailed, Trailed]> => {
    const socket = await stage.sockets.connect(at);
    const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(
      `POST / HTTP/1.1\r\nHost: shop.example\r\nTE: trailers\r\nConnection: close, TE\r\nTrailer: ${announced}\r\n` +
        `Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n${lines.join("")}\r\n`,
    );
    const text = await textOf(socket);
    const [, head = "", body = "", behind = ""] =
      /^(.*?\r\n)\r\n[0-9a-f]+\r\n(.*?)\r\n0\r\n(.*)\r\n$/s.exec(text) ?? [];
    const answered = behind.split("\r\n").filter((line) => line !== "");
    return [
      JSON.parse(body) as Trailed,
      {
        announced: /^trailer: (.*)\r$/im.exec(head)?.[1],
        trailers: Object.fromEntries(answered.map((line) => line.toLowerCase().split(": "))),
      },
    ];
  };

  const askOverHttp2 = async (at: number, { announced, trailers }: Trailing): Promise<[Trailed, Trailed]> => {
    const session = connect(`http://127.0.0.1:${at}`);
    stage.onRelease(() => session.destroy());
    const stream = session.request(
      { ":method": "POST", ":authority": "shop.example", ":path": "/", te: "trailers", trailer: announced },
      { waitForTrailers: true },
    );
    stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    const answered: { announced: string | undefined; trailers: IncomingHttpHeaders } = {
      announced: undefined,
      trailers: {},
    };
    stream.on("response", (headers) => {
      answered.announced = headers.trailer;
    });
    stream.on("trailers", (fields) => {
      answered.trailers = named(fields);
    });
    stream.end("x");
    return [JSON.parse(await textOf(stream)) as Trailed, answered];
  };

  const start = async (to: Protocol, answering: Trailing): Promise<PlaneUnderTest> =>
    stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b", { filters }) })]),
      backend("b", [await trailingBackend(to, answering)], { protocol: to === "http/2" ? "h2c" : "http" }),
    ]);

  for (const from of protocols) {
    for (const to of protocols) {
      const ask = from === "http/2" ? askOverHttp2 : askOverHttp1;

      test(`announces trailers before it passes them on, from ${from} to ${to}`, async () => {
        const plane = await start(to, { announced: "X-Answer", trailers: { "x-answer": "2" } });
        const sent = { announced: "X-Sum, X-More", trailers: { "x-sum": "1", "x-more": "2" } };
        const [seen, answered] = await ask(plane.at(80), sent);
        expect(seen.announced?.toLowerCase()).toBe("x-sum, x-more");
        expect(seen.trailers).toEqual({ "x-sum": "1", "x-more": "2" });
        expect(answered.announced?.toLowerCase()).toBe("x-answer");
        expect(answered.trailers).toEqual({ "x-answer": "2" });
      });

      test(`passes on no trailer that could change the message, from ${from} to ${to}`, async () => {
        const naming = (names: readonly string[]): Trailing => ({
          announced: [...names, "X-Sum"].join(", "),
          trailers: Object.fromEntries([...names, "X-Sum"].map((name) => [name.toLowerCase(), "1"])),
        });
        const plane = await start(to, naming(unwantedOfBackends));
        const allowed = (name: string): boolean => from === "http/1.1" || name !== "Keep-Alive";
        const [seen, answered] = await ask(plane.at(80), naming(unwantedOfClients.filter(allowed)));
        expect(seen.trailers).toEqual({ "x-sum": "1" });
        expect(answered.trailers).toEqual({ "x-sum": "1" });
        if (!traits.ownHttp) return;
        expect(seen.announced?.toLowerCase()).toBe("x-sum");
        expect(answered.announced?.toLowerCase()).toBe("x-sum");
      });
    }
  }

  test("a length or a coding behind a body is refused or removed, whatever the backend speaks", async () => {
    for (const to of protocols) {
      const plane = await start(to, { announced: "X-Answer", trailers: { "x-answer": "2" } });
      for (const line of ["Content-Length: 5", "Transfer-Encoding: chunked", "Trailer: x", "Upgrade: h2c"]) {
        const socket = await stage.sockets.connect(plane.at(80));
        socket.write(
          "POST / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" +
            `1\r\nx\r\n0\r\n${line}\r\n\r\n`,
        );
        const [answer] = (await once(socket, "data")) as [Buffer];
        socket.destroy();
        expect(String(answer), line).toMatch(/^HTTP\/1\.1 (?:400 |200 .*"trailers":\{\})/s);
      }
    }
  });

  onlyIf(traits.ownHttp)(
    "announced trailers follow a message of known length, whatever protocols it passes",
    async () => {
      const server = createHttp2Server();
      server.on("stream", async (stream, headers) => {
        let received: IncomingHttpHeaders = {};
        stream.on("trailers", (fields) => {
          received = named(fields);
        });
        await textOf(stream);
        const body = JSON.stringify({ announced: headers.trailer, trailers: received });
        const head = { ":status": 200, trailer: "x-answer", "content-length": body.length };
        if (headers[":method"] === "HEAD") {
          stream.respond(head, { endStream: true });
          return;
        }
        stream.respond(head, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "x-answer": "2" }));
        stream.end(body);
      });
      const plane = await stage.start([
        http,
        shop,
        host(shop, "shop.example", [
          rule({ path: "/1", action: forwardTo("one") }),
          rule({ path: "/2", action: forwardTo("two") }),
        ]),
        backend("one", [await trailingBackend("http/1.1", { announced: "x-answer", trailers: {} })]),
        backend("two", [await stage.backends.listen(server)], { protocol: "h2c" }),
      ]);
      const session = connect(`http://127.0.0.1:${plane.at(80)}`);
      stage.onRelease(() => session.destroy());
      for (const path of ["/1", "/2"]) {
        const stream = session.request(
          {
            ":method": "POST",
            ":authority": "shop.example",
            ":path": path,
            trailer: "x-sum",
            "content-length": 1,
          },
          { waitForTrailers: true },
        );
        stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "1" }));
        let answered: IncomingHttpHeaders = {};
        stream.on("trailers", (fields) => {
          answered = named(fields);
        });
        stream.end("x");
        expect(JSON.parse(await textOf(stream))).toEqual({ announced: "x-sum", trailers: { "x-sum": "1" } });
        expect(answered).toEqual(path === "/2" ? { "x-answer": "2" } : {});
      }
      const socket = await stage.sockets.connect(plane.at(80));
      socket.write("GET /2 HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");
      expect(await textOf(socket)).toMatch(/\r\n0\r\nx-answer: 2\r\n\r\n$/);
      const head = await stage.sockets.connect(plane.at(80));
      head.write("HEAD /2 HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");
      expect(await textOf(head)).toMatch(/^content-length: \d+\r$/im);
    },
  );

  onlyIf(traits.ownHttp)("announces no trailers where none can follow", async () => {
    const at = await stage.sockets.serve((socket) =>
      socket.once("data", (bytes) => {
        const body = `announced: ${/^trailer:/im.test(String(bytes))}`;
        socket.end(`HTTP/1.1 200 OK\r\nTrailer: x-sum\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      }),
    );
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [at]),
    ]);
    for (const [line, fields] of [
      ["GET / HTTP/1.0", "\r\n"],
      ["POST / HTTP/1.0", "Content-Length: 1\r\n\r\nx"],
    ]) {
      const socket = await stage.sockets.connect(plane.at(80));
      socket.write(`${line}\r\nHost: shop.example\r\nConnection: close\r\nTrailer: x-sum\r\n${fields}`);
      const text = await textOf(socket);
      expect(text).toMatch(/\r\n\r\nannounced: false$/);
      expect(text).not.toMatch(/^trailer:/im);
    }
  });
}
