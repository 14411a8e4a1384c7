import type { Duplex, Readable } from "node:stream";
import type { HeaderFields } from "../message/header-fields.ts";

/** One endpoint of one backend in one protocol, with its own connections. */
export interface Upstream {
  /** Nothing is in flight. */
  readonly idle: boolean;
  /** Requests that wait or are under way. */
  readonly active: number;
  /** Requests that wait for a connection. */
  readonly waiting: number;
  /** Whether another request would wait. */
  readonly isBusy: boolean;
  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall;
  /** Drains: accepts no more requests, and closes after the last one. */
  close(): void;
  /** Closes at once. */
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
 * The last call is exactly one of `onEnd`, `onSwitch` and `onFailure`. After a cancellation nothing
 * is called.
 */
export interface UpstreamHandler {
  /** An interim response (1xx except 101), any number of times before `onAnswer`. */
  onInterim(status: number, headers: HeaderFields): void;
  onAnswer(status: number, headers: HeaderFields, flow: AnswerFlow): void;
  /** The chunk is valid during the call only. */
  onData(chunk: Buffer, flow: AnswerFlow): void;
  /** More of the answer has come while it is paused, and is kept. */
  onKept?(flow: AnswerFlow): void;
  onEnd(trailers: HeaderFields | undefined): void;
  /** The backend agreed to switch protocols. */
  onSwitch(headers: HeaderFields, stream: Duplex): void;
  onFailure(failure: UpstreamFailure): void;
}

/**
 * Backpressure: pauses the response while the client is slow. `pause` is called within `onAnswer`
 * and `onData`, `resume` at any time.
 */
export interface AnswerFlow {
  /** Known with the header: nothing comes after it, neither a body nor trailers. */
  readonly complete: boolean;
  /** Bytes of the answer that are kept while it is paused. */
  readonly unreadBytes: number;
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
  /** Bytes of the request that the backend has not taken yet. */
  readonly unsentBytes: number;
  cancel(): void;
}
