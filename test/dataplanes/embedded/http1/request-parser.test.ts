import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { corpusH1 } from "../hostile/corpus-h1.ts";
import { generatedRequests } from "./generated-messages.ts";
import { byteByByte, cut, HEADER_BYTES, type Reading, readRequests } from "./read-requests.ts";

const corpus = corpusH1.flatMap(([title, cases]) =>
  cases.map(({ name, send }) => [`${title}: ${name}`, Buffer.from(send, "latin1")] as const),
);
/**
 * Every boundary of a message of this size is tried; of a larger one, those around its edges and
 * some between.
 */
const EVERY_BOUNDARY_BYTES = 1_500;

function boundaries(bytes: Buffer): readonly number[] {
  if (bytes.length <= EVERY_BOUNDARY_BYTES) return Array.from(bytes, (_, at) => at);
  const spread = Array.from({ length: 20 }, (_, step) => Math.floor((bytes.length * step) / 20));
  const edges = [HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 1, bytes.length - 2, bytes.length - 1];
  return [...Array.from({ length: 40 }, (_, at) => at), ...spread, ...edges];
}

describe("a request is read the same wherever its bytes are cut", () => {
  it.each(corpus)("%s", (_name, bytes) => {
    const whole = readRequests([bytes]);
    for (const at of boundaries(bytes)) expect(readRequests(cut(bytes, at)), `cut at ${at}`).toEqual(whole);
    expect(readRequests(byteByByte(bytes))).toEqual(whole);
  });

  it("a generated request is read the same, whatever it is", () => {
    fc.assert(
      fc.property(generatedRequests, (text) => {
        const bytes = Buffer.from(text, "latin1");
        const whole = readRequests([bytes]);
        for (let at = 1; at < bytes.length; at++) expect(readRequests(cut(bytes, at))).toEqual(whole);
        expect(readRequests(byteByByte(bytes))).toEqual(whole);
      }),
      { numRuns: 300 },
    );
  });
});

describe("the parser of requests", () => {
  const read = (text: string, headerBytes?: number): Reading =>
    readRequests([Buffer.from(text, "latin1")], headerBytes);

  it("gives back what was sent, one request after the other", () => {
    const { requests, error, begun } = read(
      "\r\nPOST /a?b HTTP/1.1\r\nHost: a.example\r\nX-Two:  b \t\r\nx-two: c\r\nTransfer-Encoding: chunked\r\n\r\n" +
        "5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 1\r\n\r\nGET /next HTTP/1.0\r\nHost: b\r\nContent-Length: 0\r\n\r\n",
    );
    expect({ error, begun }).toEqual({ error: undefined, begun: false });
    expect(requests).toMatchObject([
      {
        method: "POST",
        target: "/a?b",
        version: "1.1",
        host: "a.example",
        fields: ["x-two", "b", "x-two", "c", "transfer-encoding", "chunked"],
        body: "hello world",
        trailers: ["x-sum", "1"],
        complete: true,
      },
      { method: "GET", target: "/next", version: "1.0", host: "b", body: "", complete: true },
    ]);
  });

  it("refuses a head at its limit, and not before", () => {
    const head = (length: number): string => {
      const start = "GET / HTTP/1.1\r\nHost: a\r\nA: ";
      return `${start}${"b".repeat(length - start.length - 4)}\r\n\r\n`;
    };
    expect(read(head(100), 100)).toMatchObject({ error: undefined, requests: [{ complete: true }] });
    expect(read(head(101), 100)).toMatchObject({ error: 431, requests: [] });
    expect(readRequests(byteByByte(Buffer.from(head(101))), 100)).toMatchObject({ error: 431, requests: [] });
  });

  it("says at once that something can never become a request", () => {
    for (const text of ["\x16\x03\x01", "GET /\n", "GET / HTTP/1.1\rX", "\n", "\0"]) {
      expect(read(text).error, JSON.stringify(text)).toBe(400);
    }
    expect(read("GET / HTTP/1.1\r")).toMatchObject({ error: undefined, begun: true });
  });

  it("reads nothing behind a request that means two things", () => {
    const { requests, error } = read(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    expect(error).toBeUndefined();
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({ invalid: expect.any(String), complete: false, host: undefined });
  });

  it("keeps names that it has seen in bounds, and all of them right", () => {
    for (let round = 0; round < 3_000; round += 20) {
      const fields = Array.from({ length: 20 }, (_, index) => `X-Name-${round + index}: ${round}\r\n`);
      const { requests } = read(`GET / HTTP/1.1\r\nHost: a\r\n${fields.join("")}\r\n`);
      expect(requests[0]?.fields).toHaveLength(40);
      expect(requests[0]?.fields.at(-2)).toBe(`x-name-${round + 19}`);
    }
  });
});
