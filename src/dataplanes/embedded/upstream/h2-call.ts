import type { AnswerHandler, ClientSession } from "../http2/client-session.ts";
import { CONNECTION_LOST, errorCode } from "../http2/protocol.ts";
import type { Stream } from "../http2/stream.ts";
import type { Deadlines, Timed } from "../limits/deadlines.ts";
import type { Limits } from "../limits/options.ts";
import { isGrpc } from "../message/grpc.ts";
import type { HeaderFields } from "../message/header-fields.ts";
import type {
  AnswerFlow,
  UpstreamCall,
  UpstreamFailure,
  UpstreamHandler,
  UpstreamRequest,
} from "./upstream.ts";

export interface H2CallParts {
  readonly request: UpstreamRequest;
  readonly handler: UpstreamHandler;
  readonly deadlines: Deadlines;
  readonly limits: Limits;
  /** Called once, before the last call of the handler. */
  readonly onOver: () => void;
  /** Whether waiting for a stream makes sense: some are in use, and will end. */
  readonly mayGetRoom: () => boolean;
}

/** The time limit for a stream if connecting has none. */
const ROOM_MS = 5_000;

/** One request on its own stream. */
export class H2Call implements UpstreamCall, AnswerFlow, AnswerHandler, Timed {
  answered = false;
  complete = false;
  deadline: number = Number.POSITIVE_INFINITY;
  readonly #parts: H2CallParts;
  /** False for gRPC calls, which may take any time. */
  readonly #timed: boolean;
  #stream: Stream | undefined;
  #over = false;
  /** When waiting for a stream ends at the latest. */
  #waitsUntil = 0;

  constructor(parts: H2CallParts) {
    this.#parts = parts;
    this.#timed = !isGrpc(parts.request.headers);
  }

  /** The call is over or cancelled. */
  get over(): boolean {
    return this.#over;
  }

  get unsentBytes(): number {
    return this.#stream?.unsentBytes ?? 0;
  }

  get unreadBytes(): number {
    return this.#stream?.unreadBytes ?? 0;
  }

  /** Until `start`. */
  waitForRoom(): void {
    const { deadlines, limits } = this.#parts;
    const mostMs = Math.max(limits.connectTimeoutMs || ROOM_MS, limits.backendResponseTimeoutMs);
    deadlines.add(this);
    this.#waitsUntil = deadlines.after(mostMs);
    this.deadline = deadlines.after(limits.connectTimeoutMs || ROOM_MS);
  }

  start(session: ClientSession): void {
    this.deadline = Number.POSITIVE_INFINITY;
    const { method, scheme, authority, path, headers, body } = this.#parts.request;
    const pseudo = [":method", method, ":scheme", scheme, ":authority", authority, ":path", path];
    try {
      this.#stream = session.request(pseudo, headers.flat, {
        handler: this,
        endStream: body === undefined,
        isHead: method === "HEAD",
      });
    } catch (error) {
      this.fail("invalid", error instanceof Error ? error.message : "a field that cannot be sent");
      return;
    }
    if (this.#timed) {
      const { deadlines, request } = this.#parts;
      deadlines.add(this);
      this.deadline = deadlines.after(request.timeouts.responseMs);
    }
    if (body === undefined) return;
    body.on("data", this.#onPiece).once("end", this.#onBodyEnd).once("close", this.#onBodyClose);
  }

  pause(): void {
    this.#stream?.pause();
    this.deadline = Number.POSITIVE_INFINITY;
  }

  resume(): void {
    this.#expectMore();
    this.#stream?.resume();
  }

  cancel(): void {
    this.#finish();
    // Both sides have ended the stream: there is nothing to cancel.
    if (this.complete && this.#stream?.localEnded === true) return;
    this.#stream?.reset(errorCode.cancel);
  }

  fail(kind: UpstreamFailure["kind"], message: string, code?: number): void {
    if (this.#over) return;
    this.#finish();
    this.#parts.handler.onFailure({ kind, message, ...(code === undefined ? {} : { code }) });
  }

  onDeadline(): void {
    if (this.#stream === undefined) {
      this.#onWaited();
      return;
    }
    this.fail("timeout", this.answered ? "no more of the answer in time" : "no answer in time");
    this.#stream?.reset(errorCode.cancel);
  }

  onInterim(status: number, headers: HeaderFields): void {
    if (!this.#over) this.#parts.handler.onInterim(status, headers);
  }

  onAnswer(status: number, headers: HeaderFields, endStream: boolean): void {
    this.answered = true;
    this.complete = endStream;
    this.#expectMore();
    if (!this.#over) this.#parts.handler.onAnswer(status, headers, this);
  }

  onData(chunk: Buffer): void {
    this.#expectMore();
    if (!this.#over) this.#parts.handler.onData(chunk, this);
  }

  onKept(): void {
    if (!this.#over) this.#parts.handler.onKept?.(this);
  }

  onEnd(trailers: HeaderFields | undefined): void {
    if (this.#over) return;
    this.#finish();
    this.#parts.handler.onEnd(trailers);
    // A response before the end of the request: the backend does not read the rest.
    if (this.#stream?.localEnded === false) this.#stream.reset(errorCode.noError);
  }

  onWritable(): void {
    if (!this.#over) this.#parts.request.body?.resume();
  }

  onClosed(code: number | undefined): void {
    if (code === CONNECTION_LOST) this.fail("reset", "the connection to the backend is lost");
    else {
      const kind = code === errorCode.refusedStream ? "refused" : "reset";
      this.fail(kind, `the backend closed the stream with code ${code ?? 0}`, code ?? errorCode.noError);
    }
  }

  readonly #onPiece = (piece: Buffer): void => {
    if (this.#stream?.write(piece) === false) this.#parts.request.body?.pause();
  };

  readonly #onBodyEnd = (): void => {
    this.#parts.request.body?.off("close", this.#onBodyClose);
    this.#stream?.end(this.#parts.request.trailers());
  };

  /** Cancels before the end: the client has gone, or the request is retried elsewhere. */
  readonly #onBodyClose = (): void => {
    this.cancel();
  };

  #onWaited(): void {
    const { deadlines, limits, mayGetRoom } = this.#parts;
    if (deadlines.now < this.#waitsUntil && mayGetRoom()) {
      this.deadline = Math.min(this.#waitsUntil, deadlines.after(limits.connectTimeoutMs || ROOM_MS));
    } else this.fail("full", "the backend gave no stream in time");
  }

  #expectMore(): void {
    if (!this.#timed) return;
    const { deadlines, request } = this.#parts;
    this.deadline = deadlines.after(request.timeouts.idleMs);
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#parts.deadlines.delete(this);
    this.#parts.request.body
      ?.off("data", this.#onPiece)
      .off("end", this.#onBodyEnd)
      .off("close", this.#onBodyClose);
    this.#parts.onOver();
  }
}
