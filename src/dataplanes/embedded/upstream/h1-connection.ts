/**
 * One connection to a backend that speaks HTTP/1: one request after the other, never two at a time.
 *
 * It is used for another request only if the one before ended cleanly: the request was sent
 * completely, the response ended by its own framing, the backend keeps the connection open, and no
 * byte followed the response.
 */

import type { Socket } from "node:net";
import { type AnswerSink, type ReceivedAnswer, ResponseParser } from "../http1/response-parser.ts";
import type { Deadlines, Timed } from "../limits/deadlines.ts";
import type { Limits } from "../limits/options.ts";
import type { HeaderFields } from "../message/header-fields.ts";
import type { H1Call } from "./h1-call.ts";
import type { Link } from "./link.ts";
import { RequestSender, type SendProgress } from "./request-sender.ts";
import type { AnswerTimeouts, UpstreamFailure } from "./upstream.ts";

/** How long backends are expected to keep an idle connection, without a Keep-Alive header. */
const KEPT_MS = 10_000;
const KEPT_AT_MOST_MS = 60_000;
/**
 * A connection is not used shortly before the backend closes it: the request and the close could
 * cross.
 */
const MARGIN_MS = 1_000;

/** The pool that owns the connection. */
export interface ConnectionOwner {
  /** Ready for the next request. */
  onFree(connection: H1Connection): void;
  /** Not to be used any more. */
  onGone(connection: H1Connection): void;
}

export class H1Connection implements AnswerSink, Timed {
  deadline: number;
  readonly #link: Link;
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #deadlines: Deadlines;
  readonly #parser: ResponseParser;
  /** A request is in flight, also a cancelled one. */
  #busy = false;
  #call: H1Call | undefined;
  #sender: RequestSender | undefined;
  #paused = false;
  #answered = false;
  /** The answer has ended as its own framing says. */
  #complete = false;
  /** How long the backend waits for another request; 0: not at all. */
  #keepMs = 0;
  #timeouts: AnswerTimeouts = { responseMs: 0, idleMs: 0 };
  #switched: HeaderFields | undefined;
  #released = false;

  constructor(
    link: Link,
    owner: ConnectionOwner,
    { limits, deadlines }: { readonly limits: Limits; readonly deadlines: Deadlines },
  ) {
    const { socket } = link;
    this.#link = link;
    this.#socket = socket;
    this.#owner = owner;
    this.#deadlines = deadlines;
    this.#parser = new ResponseParser(this, limits.headerBytes);
    this.deadline = deadlines.after(KEPT_MS);
    deadlines.add(this);
    socket.on("error", ignore).on("end", this.#onSocketEnd).on("close", this.#onClose);
    socket.on("drain", this.#onDrain);
    link.onBytes = this.#onData;
  }

  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  send(call: H1Call): void {
    const { method, websocket, body, timeouts } = call.request;
    this.#busy = true;
    this.#timeouts = timeouts;
    this.#call = call;
    this.#answered = false;
    this.#complete = false;
    this.#parser.expect(method, websocket);
    call.startOn(this);
    if (body === undefined) {
      this.deadline = this.#deadlines.after(this.#timeouts.responseMs);
      this.#socket.write(call.head, "latin1");
    } else {
      this.deadline = Number.POSITIVE_INFINITY;
      this.#sender = new RequestSender(this.#socket, call, body, this.#onProgress);
    }
  }

  pause(call: H1Call): void {
    if (call !== this.#call) return;
    this.#paused = true;
    this.deadline = Number.POSITIVE_INFINITY;
    this.#socket.pause();
  }

  resume(call: H1Call): void {
    if (call !== this.#call || !this.#paused) return;
    this.#paused = false;
    this.deadline = this.#deadlines.after(this.#timeouts.idleMs);
    this.#socket.resume();
  }

  /** Cancels: closing the connection is cheaper than reading the rest of the response. */
  abandon(call: H1Call): void {
    if (call !== this.#call) return;
    this.#call = undefined;
    if (!this.#complete) this.destroy();
  }

  /** Closes without a call of any handler. */
  destroy(): void {
    this.#release();
    this.#socket.destroy();
  }

  onDeadline(): void {
    if (this.#call === undefined) this.destroy();
    else this.#fail("timeout", this.#answered ? "no more of the answer in time" : "no answer in time");
  }

  // What the parser finds.

  onInterim(status: number, headers: HeaderFields): void {
    this.#call?.handler.onInterim(status, headers);
  }

  onAnswer({ status, headers, hasBody, keepAlive }: ReceivedAnswer): void {
    this.#answered = true;
    this.#complete = !hasBody;
    this.#keepMs = keepAlive ? keptFor(headers.get("keep-alive")) : 0;
    this.deadline = this.#deadlines.after(this.#timeouts.idleMs);
    const call = this.#call;
    if (call === undefined) return;
    call.complete = !hasBody;
    call.handler.onAnswer(status, headers, call);
  }

  onBody(piece: Buffer): void {
    if (!this.#paused) this.deadline = this.#deadlines.after(this.#timeouts.idleMs);
    const call = this.#call;
    call?.handler.onData(piece, call);
  }

  onEnd(trailers: HeaderFields | undefined): void {
    this.#complete = true;
    const call = this.#call;
    this.#call = undefined;
    if (call === undefined || call.over) return;
    call.over = true;
    call.handler.onEnd(trailers);
  }

  onSwitch({ headers }: ReceivedAnswer): void {
    this.#switched = headers;
  }

  // What the socket tells.

  readonly #onData = (bytes: Buffer): void => {
    // Data without a request must not become the response to the next one.
    if (!this.#busy) {
      this.destroy();
      return;
    }
    const at = this.#parser.read(bytes, 0);
    if (at < 0) this.#fail("reset", "the answer of the backend is malformed");
    else if (this.#complete) this.#settle(at === bytes.length);
    else if (this.#switched !== undefined) this.#handOver(this.#switched, bytes.subarray(at));
  };

  readonly #onSocketEnd = (): void => {
    if (this.#busy) this.#parser.finish();
    if (this.#call === undefined) this.destroy();
    else this.#fail("reset", "the backend ended the connection before its answer");
  };

  readonly #onDrain = (): void => this.#sender?.onDrain();

  readonly #onClose = (): void => this.#fail("reset", "the backend broke the connection");

  readonly #onProgress = (progress: SendProgress): void => {
    if (progress === "broken") this.#fail("reset", "the body of the request is not as long as it was to be");
    else if (!this.#answered) {
      const waits = progress === "blocked" || progress === "sent";
      this.deadline = this.#deadlines.after(waits ? this.#timeouts.responseMs : 0);
    }
    if (progress === "sent") this.#sender = undefined;
  };

  #settle(clean: boolean): void {
    if (!clean || this.#keepMs === 0 || this.#sender !== undefined || !this.#socket.writable) {
      this.destroy();
      return;
    }
    this.#busy = false;
    this.deadline = this.#deadlines.after(this.#keepMs);
    if (this.#paused) {
      this.#paused = false;
      this.#socket.resume();
    }
    this.#owner.onFree(this);
  }

  #handOver(headers: HeaderFields, rest: Buffer): void {
    const call = this.#call;
    this.#call = undefined;
    this.#release();
    if (call === undefined || call.over) this.destroy();
    else {
      call.over = true;
      call.handler.onSwitch(headers, this.#link.toStream(rest));
    }
  }

  #fail(kind: UpstreamFailure["kind"], message: string): void {
    const call = this.#call;
    this.#call = undefined;
    this.#parser.stop();
    this.destroy();
    call?.fail(kind, message);
  }

  /** Called first, so that a connection that is closing is not used for another request. */
  #release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#sender?.stop();
    this.#sender = undefined;
    this.#deadlines.delete(this);
    this.#socket.off("end", this.#onSocketEnd).off("close", this.#onClose);
    this.#socket.off("drain", this.#onDrain);
    this.#link.onBytes = ignore;
    this.#owner.onGone(this);
  }
}

/** `Keep-Alive: timeout=5` in seconds. */
function keptFor(said: string | undefined): number {
  const seconds = said === undefined ? undefined : /(?:^|[ ,;])timeout=(\d{1,9})/i.exec(said)?.[1];
  if (seconds === undefined) return KEPT_MS;
  return Math.max(0, Math.min(Number(seconds) * 1_000 - MARGIN_MS, KEPT_AT_MOST_MS));
}

function ignore(): void {}
