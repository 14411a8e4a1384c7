import { once } from "node:events";
import { connect, constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { expect, test } from "vitest";
import { type Seen, textOf } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");

const get = (line: string, fields = ""): string =>
  `${line}\r\nHost: shop.example\r\n${fields}Connection: close\r\n\r\n`;
const post = (fields: string, body: string): string =>
  `POST / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n${fields}\r\n${body}`;

/** Requests that two parsers could read differently. None may reach a backend. */
const refused: Readonly<Record<string, string>> = {
  "Content-Length beside Transfer-Encoding": post(
    "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
    "0\r\n\r\n",
  ),
  "two equal Content-Lengths": post("Content-Length: 1\r\nContent-Length: 1\r\n", "x"),
  "two different Content-Lengths": post("Content-Length: 1\r\nContent-Length: 2\r\n", "xx"),
  "a list of Content-Lengths": post("Content-Length: 1, 1\r\n", "x"),
  "a signed Content-Length": post("Content-Length: +1\r\n", "x"),
  "a hexadecimal Content-Length": post("Content-Length: 0x1\r\n", "x"),
  "an empty Content-Length": post("Content-Length:\r\n", ""),
  "another coding before chunked": post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
  "chunked twice": post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
  "chunked in two fields": post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
  "a coding after chunked": post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
  "an unknown coding": post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
  "a quoted coding": post('Transfer-Encoding: "chunked"\r\n', "0\r\n\r\n"),
  "a vertical tab before the coding": post("Transfer-Encoding:\x0bchunked\r\n", "0\r\n\r\n"),
  "Transfer-Encoding in HTTP/1.0":
    "POST / HTTP/1.0\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "a space before the colon": post("Content-Length : 1\r\n", "x"),
  "a folded line": get("GET / HTTP/1.1", "X-A: 1\r\n 2\r\n"),
  "a line that begins with a space": "GET / HTTP/1.1\r\n Host: shop.example\r\n\r\n",
  "bare line feeds": "GET / HTTP/1.1\nHost: shop.example\n\n",
  "a bare carriage return": get("GET / HTTP/1.1", "X-A: 1\rX-B: 2\r\n"),
  "a null in a value": get("GET / HTTP/1.1", "X-A: 1\x002\r\n"),
  "a field name that is no token": get("GET / HTTP/1.1", "X(A): 1\r\n"),
  "a field without a colon": get("GET / HTTP/1.1", "X-A\r\n"),
  "no Host": "GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
  "no Host in HTTP/1.0": "GET / HTTP/1.0\r\n\r\n",
  "two Hosts": get("GET / HTTP/1.1", "Host: shop.example\r\n"),
  "a Host with user information": "GET / HTTP/1.1\r\nHost: a@shop.example\r\n\r\n",
  "a Host with a path": "GET / HTTP/1.1\r\nHost: shop.example/x\r\n\r\n",
  "a Host with a comma": "GET / HTTP/1.1\r\nHost: shop.example, b\r\n\r\n",
  "an empty Host": "GET / HTTP/1.1\r\nHost:\r\n\r\n",
  "HTTP/0.9": "GET /\r\n\r\n",
  "HTTP/1.2": get("GET / HTTP/1.2"),
  "HTTP/2.0 in words": get("GET / HTTP/2.0"),
  "a chunk size that is no number": post("Transfer-Encoding: chunked\r\n", "zz\r\nx\r\n0\r\n\r\n"),
  "a chunk size of many digits": post(
    "Transfer-Encoding: chunked\r\n",
    "fffffffffffffffff\r\nx\r\n0\r\n\r\n",
  ),
  "a chunk longer than its size": post("Transfer-Encoding: chunked\r\n", "1\r\nxy\r\n0\r\n\r\n"),
  "a signed chunk size": post("Transfer-Encoding: chunked\r\n", "+1\r\nx\r\n0\r\n\r\n"),
  "a chunk line with a bare line feed": post("Transfer-Encoding: chunked\r\n", "1\nx\r\n0\r\n\r\n"),
  "a backslash in the path": get("GET /a\\b HTTP/1.1"),
  "a fragment": get("GET /a#b HTTP/1.1"),
  "a broken escape": get("GET /a%2 HTTP/1.1"),
  "an escape that is no number": get("GET /a%zz HTTP/1.1"),
  "an escaped null": get("GET /a%00b HTTP/1.1"),
  "bytes beyond ASCII in the path": get("GET /\xff HTTP/1.1"),
  "a tab in the request line": get("GET\t/ HTTP/1.1"),
  "a path without a slash": get("GET a HTTP/1.1"),
  "another scheme": get("GET ftp://shop.example/ HTTP/1.1"),
  CONNECT: "CONNECT shop.example:80 HTTP/1.1\r\nHost: shop.example\r\n\r\n",
};

/** Requests that are odd but clear; what the backend must see of them. */
const normalised: Readonly<Record<string, readonly [request: string, url: string, body?: string]>> = {
  "dot segments": [get("GET /a/./b/../c HTTP/1.1"), "/a/c"],
  "dot segments that climb too far": [get("GET /../../a HTTP/1.1"), "/a"],
  "escaped dot segments": [get("GET /a/%2e%2E/b HTTP/1.1"), "/b"],
  "trailing dot segments": [get("GET /a/b/.. HTTP/1.1"), "/a/"],
  "slashes in a row": [get("GET //a///b HTTP/1.1"), "/a/b"],
  "escaped letters": [get("GET /%61%7E HTTP/1.1"), "/a~"],
  "escaped slashes, which stay": [get("GET /a%2fb HTTP/1.1"), "/a%2Fb"],
  "the query, untouched": [get("GET /?a=%zz&b=/../%61 HTTP/1.1"), "/?a=%zz&b=/../%61"],
  "a whole URL, whose host counts": [
    "GET http://shop.example/a?b HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n",
    "/a?b",
  ],
  "a blank line before the request": [`\r\n${get("GET /a HTTP/1.1")}`, "/a"],
  "chunk extensions": [post("Transfer-Encoding: chunked\r\n", "1;a=b\r\nx\r\n0\r\n\r\n"), "/", "x"],
  "the coding in capitals": [post("Transfer-Encoding: Chunked\r\n", "1\r\nx\r\n0\r\n\r\n"), "/", "x"],
};

export function describeStrictness(create: CreateDataPlane): void {
  const stage = setStage(create);
  const seen: Seen[] = [];
  const startEcho = async (): Promise<PlaneUnderTest> => {
    seen.length = 0;
    const at = await stage.backends.http(async (request, response) => {
      const { method = "", url = "", rawHeaders } = request;
      const headers = request.headers as Seen["headers"];
      seen.push({
        backend: "b",
        method,
        url,
        headers,
        rawHeaders,
        body: await textOf(request).catch(() => "cut off"),
      });
      response.end("reached");
    });
    return await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ path: "/", action: forwardTo("b") })]),
      backend("b", [at]),
    ]);
  };
  const talk = async (at: number, text: string): Promise<string> => {
    const socket = await stage.sockets.connect(at);
    socket.write(Buffer.from(text, "latin1"));
    return await textOf(socket);
  };

  test("refuses what two parsers could read differently", async () => {
    const plane = await startEcho();
    const outcomes: Record<string, string> = {};
    for (const [name, text] of Object.entries(refused)) {
      const answer = await talk(plane.at(80), text);
      outcomes[name] = /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? "closed";
    }
    const expected = Object.fromEntries(
      Object.keys(refused).map((name) => [name, name === "CONNECT" ? "405" : "400"]),
    );
    expect(outcomes).toEqual(expected);
    expect(seen.filter(({ body }) => body !== "cut off")).toEqual([]);
  });

  test("passes on exactly what it routed on", async () => {
    const plane = await startEcho();
    for (const [name, [text, url, body = ""]] of Object.entries(normalised)) {
      seen.length = 0;
      expect(await talk(plane.at(80), text), name).toMatch(/^HTTP\/1\.1 200 /);
      expect(seen, name).toHaveLength(1);
      expect(seen[0], name).toMatchObject({ url, body, headers: { host: "shop.example" } });
    }
  });

  test("is as strict over HTTP/2", async () => {
    const plane = await startEcho();
    const session = connect(`http://127.0.0.1:${plane.at(80)}`);
    stage.onRelease(() => session.destroy());
    session.on("error", () => {});
    const statusOf = async (headers: OutgoingHttpHeaders): Promise<number | string> => {
      const stream = session.request({ ":authority": "shop.example", ":path": "/", ...headers });
      const closed = new Promise<string>((resolve) => {
        stream.on("error", () => {}).on("close", () => resolve(`reset ${stream.rstCode}`));
      });
      const answered = once(stream, "response")
        .catch(() => new Promise<never>(() => {}))
        .then(([head]) => (head as IncomingHttpHeaders & { ":status": number })[":status"]);
      return await Promise.race([answered, closed]);
    };
    const refused = `reset ${constants.NGHTTP2_PROTOCOL_ERROR}`;
    expect(await statusOf({})).toBe(200);
    seen.length = 0;
    expect(await statusOf({ host: "other.example" })).toBe(400);
    expect(await statusOf({ ":path": "/a\\b" })).toBe(400);
    expect(await statusOf({ ":path": "/a%0" })).toBe(400);
    expect(await statusOf({ ":path": "http://shop.example/" })).toBe(refused);
    expect(await statusOf({ ":authority": "user@shop.example" })).toBe(refused);
    expect(await statusOf({ ":authority": "shop.example/x" })).toBe(refused);
    expect(await statusOf({ ":method": "CONNECT", ":path": undefined, ":scheme": undefined })).toBe(405);
    expect(await statusOf({ "content-length": "5" })).toBe(refused);
    expect(seen).toEqual([]);
    expect(await statusOf({ ":path": "//a/../b/%2e/c" })).toBe(200);
    expect(seen[0]?.url).toBe("/b/c");
  });
}
