/**
 * HTTP/1 answers of backends, bytes in, events out; as strict as the reading of requests, because
 * what one reader takes for the end of an answer another could take for the beginning of the next
 * (RFC 9112 6.3).
 *
 * Interim answers are told as they come; a switch of protocols is one only where it was asked for.
 */

import { HeaderFields } from "../message/header-fields.ts";
import { BodyDecoder, type BodyFraming, type BodySink } from "./body-decoder.ts";
import { asksToClose } from "./connection-options.ts";
import { readFields } from "./field-block.ts";
import { HeadScanner } from "./head-scanner.ts";

export interface ReceivedAnswer {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly hasBody: boolean;
  /** The backend takes another request on this connection. */
  readonly keepAlive: boolean;
}

/** `onEnd` follows every answer but a switch. */
export interface AnswerSink extends BodySink {
  /** An answer that informs, before the answer itself. */
  onInterim(status: number, headers: HeaderFields): void;
  onAnswer(answer: ReceivedAnswer): void;
  /** Bytes behind the head belong to the other protocol: `read` leaves them. */
  onSwitch(answer: ReceivedAnswer): void;
}

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: .*)?$/;
const length = /^\d{1,15}$/;

export class ResponseParser {
  readonly #sink: AnswerSink;
  readonly #scanner: HeadScanner;
  readonly #body: BodyDecoder;
  #untilClose = false;
  #withoutBody = false;
  #mayBeSwitch = false;
  #expecting = false;

  constructor(sink: AnswerSink, headerBytes: number) {
    this.#sink = sink;
    this.#scanner = new HeadScanner(headerBytes);
    this.#body = new BodyDecoder(sink, headerBytes);
  }

  /** The next bytes answer a request; nothing else may come before the one after it. */
  expect(method: string, mayBeSwitch: boolean): void {
    this.#scanner.begin(false);
    this.#withoutBody = method === "HEAD";
    this.#mayBeSwitch = mayBeSwitch;
    this.#untilClose = false;
    this.#expecting = true;
  }

  /**
   * The index behind what was read, which is all of it unless the answer has ended before; -1 if it
   * is malformed.
   */
  read(bytes: Buffer, from: number): number {
    let at = from;
    while (this.#expecting && at >= 0 && at < bytes.length) {
      if (this.#body.active) {
        at = this.#body.read(bytes, at);
        if (!this.#body.active) this.#expecting = false;
      } else at = this.#readHead(bytes, at);
    }
    return at;
  }

  /** The connection has ended: whether that is how the answer ends. */
  finish(): boolean {
    if (!this.#untilClose || !this.#body.active) return false;
    this.stop();
    this.#sink.onEnd(undefined);
    return true;
  }

  stop(): void {
    this.#expecting = false;
    this.#body.stop();
  }

  #readHead(bytes: Buffer, from: number): number {
    const scanner = this.#scanner;
    const verdict = scanner.scan(bytes, from);
    if (verdict === "incomplete") return bytes.length;
    if (verdict !== "complete") return -1;
    const { text, lineEnds, next } = scanner;
    scanner.begin(false);
    const line = statusLine.exec(text.slice(0, lineEnds[0] ?? 0));
    const fields = readFields(text, lineEnds, 1);
    if (line === null || fields === undefined) return -1;
    const headers = new HeaderFields(fields as string[]);
    return this.#take(Number(line[2]), headers, line[1] === "1") ? next : -1;
  }

  #take(status: number, headers: HeaderFields, current: boolean): boolean {
    if (status === 101) {
      if (!this.#mayBeSwitch || headers.get("upgrade")?.toLowerCase() !== "websocket") return false;
      this.stop();
      this.#sink.onSwitch({ status, headers, hasBody: false, keepAlive: false });
      return true;
    }
    if (status < 200) {
      this.#sink.onInterim(status, headers);
      return true;
    }
    const framing = this.#framing(status, headers, current);
    if (framing === undefined) return false;
    this.#untilClose = framing === "until-close";
    const keepAlive = current && !this.#untilClose && !asksToClose(headers.get("connection"));
    if (framing !== 0) this.#body.begin(framing);
    else this.#expecting = false;
    this.#sink.onAnswer({ status, headers, hasBody: framing !== 0, keepAlive });
    if (framing === 0) this.#sink.onEnd(undefined);
    return true;
  }

  #framing(status: number, headers: HeaderFields, current: boolean): BodyFraming | undefined {
    const coding = headers.get("transfer-encoding");
    const said = headers.get("content-length");
    if (coding !== undefined) {
      if (!current || coding.toLowerCase() !== "chunked" || said !== undefined) return undefined;
    } else if (said !== undefined && !length.test(said)) return undefined;
    if (this.#withoutBody || status === 204 || status === 304) return 0;
    if (coding !== undefined) return "chunked";
    return said === undefined ? "until-close" : Number(said);
  }
}
