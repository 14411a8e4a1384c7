import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect, createServer, type IncomingHttpHeaders } from "node:http2";
import { expect, test } from "vitest";
import { textOf } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";
import { onlyIf, type Traits } from "./traits.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const protocols = ["http/1.1", "http/2"] as const;
type Protocol = (typeof protocols)[number];

interface Interim {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
}

/**
 * Interim answers (RFC 9110, 15.2): a proxy passes them on, but for 100 and 101, which are between
 * neighbours.
 */
export function describeInterim(create: CreateDataPlane, traits: Traits): void {
  const stage = setStage(create);

  /** Says 100, 102, and 103 twice before it answers. */
  const hintingBackend = async (protocol: Protocol): Promise<number> => {
    if (protocol === "http/1.1") {
      return await stage.sockets.serve((socket) =>
        socket.once("data", () =>
          socket.end(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" +
              "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n" +
              "HTTP/1.1 103 Early Hints\r\nLink: </b.css>; rel=preload\r\nX-Internal: 1\r\nContent-Length: 9\r\n\r\n" +
              "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine",
          ),
        ),
      );
    }
    const server = createServer();
    server.on("stream", (stream) => {
      stream.additionalHeaders({ ":status": 100 });
      stream.additionalHeaders({ ":status": 102 });
      stream.additionalHeaders({ ":status": 103, link: "</a.css>; rel=preload" });
      stream.additionalHeaders({ ":status": 103, link: "</b.css>; rel=preload", "x-internal": "1" });
      stream.respond({ ":status": 200 });
      stream.end("fine");
    });
    return await stage.backends.listen(server);
  };

  const start = async (protocol: Protocol): Promise<PlaneUnderTest> =>
    stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({
          action: forwardTo("b", {
            filters: {
              responseHeaders: [
                { op: "remove", name: "x-internal" },
                { op: "add", name: "x-final", value: "1" },
              ],
            },
          }),
        }),
      ]),
      backend("b", [await hintingBackend(protocol)], { protocol: protocol === "http/2" ? "h2c" : "http" }),
    ]);

  const askOverHttp1 = async (at: number): Promise<readonly [readonly Interim[], string]> => {
    const interim: Interim[] = [];
    const sent = request({ host: "127.0.0.1", port: at, headers: { host: "shop.example" }, agent: false });
    sent.on("information", ({ statusCode, headers }) =>
      interim.push({ status: statusCode, headers: { ...headers } }),
    );
    sent.end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    return [interim, `${response.statusCode} ${response.headers["x-final"]} ${await textOf(response)}`];
  };

  const askOverHttp2 = async (at: number): Promise<readonly [readonly Interim[], string]> => {
    const interim: Interim[] = [];
    const session = connect(`http://127.0.0.1:${at}`);
    stage.onRelease(() => session.destroy());
    const stream = session.request({ ":authority": "shop.example", ":path": "/" });
    stream.on("headers", (fields: IncomingHttpHeaders) => {
      const { ":status": status, ...headers } = Object.fromEntries(Object.entries(fields));
      interim.push({ status: Number(status), headers });
    });
    const [head] = (await once(stream, "response")) as [IncomingHttpHeaders];
    return [interim, `${head[":status"]} ${head["x-final"]} ${await textOf(stream)}`];
  };

  for (const from of protocols) {
    for (const to of protocols) {
      onlyIf(traits.allInterim)(
        `passes on hints of an ${from} backend to an ${to} client before the answer`,
        async () => {
          const plane = await start(from);
          const [interim, answer] = await (to === "http/2" ? askOverHttp2 : askOverHttp1)(plane.at(80));
          expect(interim).toEqual([
            { status: 102, headers: {} },
            { status: 103, headers: { link: "</a.css>; rel=preload" } },
            { status: 103, headers: { link: "</b.css>; rel=preload" } },
          ]);
          expect(answer).toBe("200 1 fine");
        },
      );
    }
  }

  test("passes on a hint that comes alone, to clients of HTTP/1.1 and of HTTP/2", async () => {
    const at = await stage.backends.http((_incoming, response) =>
      response.writeEarlyHints({ link: "</a.css>; rel=preload" }, () => response.end("fine")),
    );
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [at]),
    ]);
    for (const ask of [askOverHttp1, askOverHttp2]) {
      const [interim, answer] = await ask(plane.at(80));
      expect(interim).toEqual([{ status: 103, headers: { link: "</a.css>; rel=preload" } }]);
      expect(answer).toBe("200 undefined fine");
    }
  });

  onlyIf(traits.allInterim)("a client of HTTP/1.0 gets the answer alone", async () => {
    const plane = await start("http/1.1");
    const socket = await stage.sockets.connect(plane.at(80));
    socket.write("GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n");
    const text = await textOf(socket);
    expect(text.match(/(?<=HTTP\/1\.\d )\d+/g)).toEqual(["200"]);
  });
}
