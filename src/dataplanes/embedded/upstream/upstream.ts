import type { Duplex, Readable } from "node:stream";
import type { HeaderFields } from "../message/header-fields.ts";

/** One endpoint of one backend, spoken to in one protocol over connections of its own. */
export interface Upstream {
  /** Nothing is in flight. */
  readonly idle: boolean;
  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall;
  /** Takes no more requests and goes away when the last one is done. */
  close(): void;
  /** Goes away at once. */
  destroy(): void;
}

export interface UpstreamRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly scheme: "http" | "https";
  readonly authority: string;
  readonly headers: HeaderFields;
  readonly body: Readable | undefined;
  /** Fields to send after the body, asked for when it has ended. */
  readonly trailers: () => HeaderFields | undefined;
  readonly websocket: boolean;
  readonly timeouts: AnswerTimeouts;
}

/** How long a backend may keep a request waiting, in milliseconds; 0 is without bound. */
export interface AnswerTimeouts {
  /** Until the header of the answer. */
  readonly responseMs: number;
  /** Between two pieces of the answer. */
  readonly idleMs: number;
}

/**
 * Exactly one of `onEnd`, `onSwitch` and `onFailure` comes last, unless the call is cancelled: then
 * nothing comes any more.
 */
export interface UpstreamHandler {
  /** An answer that informs (1xx but 101), any number of times before `onAnswer`. */
  onInterim(status: number, headers: HeaderFields): void;
  onAnswer(status: number, headers: HeaderFields, flow: Flow): void;
  /** The chunk is lent for the time of the call. */
  onData(chunk: Buffer, flow: Flow): void;
  onEnd(trailers: HeaderFields | undefined): void;
  /** The backend agreed to switch protocols. */
  onSwitch(headers: HeaderFields, stream: Duplex): void;
  onFailure(failure: UpstreamFailure): void;
}

/**
 * Holds the answer back while the client is slow; called from within `onAnswer` and `onData`,
 * resumed from anywhere.
 */
export interface Flow {
  /** Known with the header: nothing comes after it, neither a body nor trailers. */
  readonly complete: boolean;
  pause(): void;
  resume(): void;
}

export interface UpstreamFailure {
  /**
   * `connect`, `full` and `refused`: the backend has not begun with the request; `full` is not
   * worth another try at the same endpoint. `timeout`: no answer, or no more of it.
   */
  readonly kind: "connect" | "full" | "refused" | "reset" | "timeout" | "invalid";
  readonly message: string;
  /** Of the HTTP/2 stream that the backend has reset. */
  readonly code?: number;
}

export interface UpstreamCall {
  cancel(): void;
}
