import { isToken } from "../http1/field-block.ts";
import { fieldLines } from "../http1/head-writer.ts";
import type { Deadlines, Timed } from "../limits/deadlines.ts";
import type { H1Connection } from "./h1-connection.ts";
import type {
  AnswerFlow,
  UpstreamCall,
  UpstreamFailure,
  UpstreamHandler,
  UpstreamRequest,
} from "./upstream.ts";

const unsafe = /[^!-~]/;

/** One request to an HTTP/1 backend. */
export class H1Call implements UpstreamCall, AnswerFlow, Timed {
  readonly request: UpstreamRequest;
  readonly handler: UpstreamHandler;
  /** The request line and header, as they are sent. */
  readonly head: string;
  /** The call is over or cancelled. */
  over = false;
  complete = false;
  /** A paused connection is not read. */
  readonly unreadBytes = 0;
  deadline: number = Number.POSITIVE_INFINITY;
  #connection: H1Connection | undefined;
  #waitsWith: Deadlines | undefined;

  /** Throws if the request cannot be written in HTTP/1.1. */
  constructor(request: UpstreamRequest, handler: UpstreamHandler) {
    this.request = request;
    this.handler = handler;
    this.head = headOf(request);
  }

  /** For a connection, no longer than the backend may take for its answer. */
  waitForRoom(deadlines: Deadlines): void {
    this.deadline = deadlines.after(this.request.timeouts.responseMs);
    this.#waitsWith = deadlines;
    deadlines.add(this);
  }

  onDeadline(): void {
    this.fail("full", "no connection to the backend was free in time");
  }

  startOn(connection: H1Connection): void {
    this.#stopWaiting();
    this.#connection = connection;
  }

  get unsentBytes(): number {
    return this.#connection?.unsentBytes ?? 0;
  }

  pause(): void {
    this.#connection?.pause(this);
  }

  resume(): void {
    this.#connection?.resume(this);
  }

  cancel(): void {
    if (this.over) return;
    this.over = true;
    this.#stopWaiting();
    this.#connection?.abandon(this);
  }

  fail(kind: UpstreamFailure["kind"], message: string): void {
    if (this.over) return;
    this.over = true;
    this.#stopWaiting();
    this.handler.onFailure({ kind, message });
  }

  #stopWaiting(): void {
    this.#waitsWith?.delete(this);
    this.#waitsWith = undefined;
  }
}

function headOf({ method, path, authority, headers, websocket, body }: UpstreamRequest): string {
  if (!isToken(method) || path === "" || unsafe.test(path) || authority === "" || unsafe.test(authority)) {
    throw new TypeError("the request line cannot be sent");
  }
  const length = headers.get("content-length");
  const head = `${method} ${path} HTTP/1.1\r\nhost: ${authority}\r\n${fieldLines(headers)}`;
  if (body !== undefined) {
    return length === undefined ? `${head}transfer-encoding: chunked\r\n\r\n` : `${head}\r\n`;
  }
  if (length !== undefined && Number(length) !== 0) throw new TypeError("a length without a body");
  if (websocket) return `${head}connection: upgrade\r\nupgrade: websocket\r\n\r\n`;
  return length === undefined && usuallyHasBody(method) ? `${head}content-length: 0\r\n\r\n` : `${head}\r\n`;
}

/** RFC 9110 8.6: without a length some servers would wait for one. */
function usuallyHasBody(method: string): boolean {
  return method === "POST" || method === "PUT" || method === "PATCH";
}
