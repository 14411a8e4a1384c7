import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { generatedAnswer } from "./generated-messages.ts";
import { type AnswerReading, readAnswer } from "./read-answer.ts";
import { byteByByte, cut } from "./read-requests.ts";

const read = (text: string, method = "GET", mayBeSwitch = false): AnswerReading =>
  readAnswer([Buffer.from(text, "latin1")], method, mayBeSwitch);

describe("the parser of answers", () => {
  it("reads the same wherever the bytes are cut", () => {
    fc.assert(
      fc.property(generatedAnswer, fc.constantFrom("GET", "HEAD"), (text, method) => {
        const bytes = Buffer.from(text, "latin1");
        const whole = readAnswer([bytes], method);
        for (let at = 1; at < bytes.length; at++) expect(readAnswer(cut(bytes, at), method)).toEqual(whole);
        expect(readAnswer(byteByByte(bytes), method)).toEqual(whole);
      }),
      { numRuns: 500 },
    );
  });

  it("counts what comes behind the end", () => {
    const behind = "HTTP/1.1 200 OK\r\n\r\n";
    expect(read(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok${behind}`)).toMatchObject({
      answer: { body: "ok", complete: true },
      excess: behind.length,
    });
    expect(read(`HTTP/1.1 204 No Content\r\n\r\n${behind}`).excess).toBe(behind.length);
    expect(read(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello`, "HEAD").excess).toBe(5);
  });

  it("knows whether a connection can be used again", () => {
    expect(read("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").keepAlive).toBe(true);
    expect(read("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").keepAlive).toBe(false);
    expect(read("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n").keepAlive).toBe(
      false,
    );
    expect(read("HTTP/1.1 200 OK\r\n\r\nuntil the end")).toMatchObject({
      answer: { body: "until the end", complete: true },
      keepAlive: false,
    });
  });

  it("takes an end of the connection for the end of no other answer", () => {
    expect(read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell").answer?.complete).toBe(false);
    expect(read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").answer?.complete).toBe(
      false,
    );
    expect(read("HTTP/1.1 200 OK\r\n").answer).toBeUndefined();
  });

  it("takes a switch only where one was asked for, and only to WebSocket", () => {
    const to = (protocol: string): string =>
      `HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: ${protocol}\r\n\r\nframes`;
    expect(read(to("WebSocket"), "GET", true)).toMatchObject({ switched: true, malformed: false, excess: 6 });
    expect(read(to("websocket"), "GET", false)).toMatchObject({ switched: false, malformed: true });
    expect(read(to("h2c"), "GET", true)).toMatchObject({ switched: false, malformed: true });
  });
});
