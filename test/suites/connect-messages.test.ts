import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import {
  framed,
  readFramed,
  readServerPort,
  readServerRequest,
  serverResponse,
} from "../../suites/connect/messages.ts";

/** protocol 1, HTTP version 2, TLS, a receive limit of 200 KiB and credentials of two bytes. */
const request = Buffer.from([0x08, 1, 0x10, 2, 0x20, 1, 0x30, 0x80, 0xc0, 0x0c, 0x3a, 2, 0xff, 0xfe]);

test("a request for TLS becomes one for cleartext, and keeps everything else", () => {
  const { http2, tls, cleartext } = readServerRequest(request);
  expect({ http2, tls }).toEqual({ http2: true, tls: true });
  expect([...cleartext]).toEqual([0x08, 1, 0x10, 2, 0x30, 0x80, 0xc0, 0x0c]);
});

test("a request over HTTP/1.1 without TLS is read as such", () => {
  const { http2, tls } = readServerRequest(Buffer.from([0x08, 1, 0x10, 1]));
  expect({ http2, tls }).toEqual({ http2: false, tls: false });
});

test("a response carries its port and survives framing in pieces", async () => {
  const stream = new PassThrough();
  const read = readFramed(stream);
  for (const byte of framed(serverResponse(28_443, "PEM"))) stream.write(Buffer.of(byte));
  expect(readServerPort(await read)).toBe(28_443);
});
