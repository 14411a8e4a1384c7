import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectSession,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";
import { HeaderFields } from "../http/header-fields.ts";
import { isGrpc } from "../http/local-reply.ts";
import type { Limits } from "../options.ts";
import type { Connector } from "./connector.ts";
import type { Flow, Upstream, UpstreamCall, UpstreamHandler, UpstreamRequest } from "./upstream.ts";

const STREAMS_PER_SESSION = 256;
const SESSION_IDLE_MS = 60_000;
const WINDOW_BYTES = 1024 * 1024;

/** HTTP/2, with prior knowledge or by ALPN, over as many sessions as the streams need. */
export class H2Upstream implements Upstream {
  readonly #connector: Connector;
  readonly #limits: Limits;
  readonly #sessions: Set<ClientHttp2Session> = new Set();
  /** Calls that wait for a session; one is being opened as long as there are any. */
  #waiting: H2Call[] = [];
  #opening = 0;
  #active = 0;
  #closed = false;

  constructor(connector: Connector, limits: Limits) {
    this.#connector = connector;
    this.#limits = limits;
  }

  get idle(): boolean {
    return this.#active === 0;
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    this.#active++;
    const call = new H2Call(request, handler, () => this.#onCallEnd());
    const session = this.#freeSession();
    if (session !== undefined) call.start(session, this.#limits.backendResponseTimeoutMs);
    else {
      this.#waiting.push(call);
      if (this.#opening === 0 || this.#waiting.length > this.#opening * STREAMS_PER_SESSION) this.#open();
    }
    return call;
  }

  close(): void {
    this.#closed = true;
    if (this.#waiting.length > 0) return;
    for (const session of this.#sessions) session.close();
  }

  #onCallEnd(): void {
    this.#active--;
  }

  #freeSession(): ClientHttp2Session | undefined {
    for (const session of this.#sessions) {
      if (session.closed || session.destroyed) continue;
      const allowed = Math.min(
        session.remoteSettings?.maxConcurrentStreams ?? STREAMS_PER_SESSION,
        STREAMS_PER_SESSION,
      );
      if ((streamsOf.get(session) ?? 0) < allowed) return session;
    }
    return undefined;
  }

  #open(): void {
    this.#opening++;
    this.#connector.connect("h2", (error, socket) => {
      this.#opening--;
      if (socket === undefined) return this.#failWaiting(error?.message ?? "no connection");
      const session = connectSession("http://backend.invalid", {
        createConnection: () => socket,
        settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
        maxHeaderListPairs: this.#limits.headerCount,
      });
      session.setLocalWindowSize?.(WINDOW_BYTES * 4);
      this.#sessions.add(session);
      session.on("error", ignore);
      session.on("goaway", () => this.#sessions.delete(session));
      session.once("close", () => this.#sessions.delete(session));
      session.setTimeout(SESSION_IDLE_MS, () => {
        if ((streamsOf.get(session) ?? 0) === 0) session.close();
      });
      const waiting = this.#waiting.splice(0, STREAMS_PER_SESSION);
      for (const call of waiting) call.start(session, this.#limits.backendResponseTimeoutMs);
      if (this.#waiting.length > 0) this.#open();
      if (this.#closed) this.close();
    });
  }

  #failWaiting(message: string): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const call of waiting) call.fail("connect", message);
  }
}

/** Open streams per session; node:http2 does not tell. */
const streamsOf: WeakMap<ClientHttp2Session, number> = new WeakMap();

class H2Call implements UpstreamCall, Flow {
  readonly #request: UpstreamRequest;
  readonly #handler: UpstreamHandler;
  readonly #onEnd: () => void;
  #stream: ClientHttp2Stream | undefined;
  #trailers: HeaderFields | undefined;
  #answered = false;
  #over = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler, onEnd: () => void) {
    this.#request = request;
    this.#handler = handler;
    this.#onEnd = onEnd;
  }

  start(session: ClientHttp2Session, answerTimeoutMs: number): void {
    if (this.#over) return;
    const { body } = this.#request;
    let stream: ClientHttp2Stream;
    try {
      stream = session.request(this.#head(), {
        endStream: body === undefined,
        waitForTrailers: body !== undefined,
      });
    } catch (error) {
      const { code, message } = error as Error & { readonly code?: string };
      const kind =
        code?.startsWith("ERR_HTTP2_GOAWAY") || code === "ERR_HTTP2_INVALID_SESSION" ? "connect" : "invalid";
      this.fail(kind, message);
      return;
    }
    this.#stream = stream;
    streamsOf.set(session, (streamsOf.get(session) ?? 0) + 1);
    stream.once("close", () => {
      streamsOf.set(session, (streamsOf.get(session) ?? 1) - 1);
      this.#onClose(stream);
    });
    stream.once("response", (headers) => this.#onAnswer(headers));
    stream.on("data", (chunk: Buffer) => {
      if (!this.#over) this.#handler.onData(chunk, this);
    });
    stream.once("trailers", (trailers) => {
      this.#trailers = fieldsOf(trailers);
    });
    stream.once("end", () => this.#onStreamEnd(stream));
    stream.on("error", ignore);
    if (answerTimeoutMs > 0 && !isGrpc(this.#request.headers)) {
      stream.setTimeout(answerTimeoutMs, () => {
        if (this.#answered) return;
        this.fail("timeout", "no answer in time");
        stream.close(constants.NGHTTP2_CANCEL);
      });
    }
    if (body !== undefined) {
      stream.once("wantTrailers", () => stream.sendTrailers(this.#request.trailers()?.toObject() ?? {}));
      body.once("error", () => this.cancel());
      body.pipe(stream);
    }
  }

  pause(): void {
    this.#stream?.pause();
  }

  resume(): void {
    this.#stream?.resume();
  }

  cancel(): void {
    this.#finish(() => undefined);
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  }

  fail(kind: "connect" | "reset" | "timeout" | "invalid", message: string): void {
    this.#finish(() => this.#handler.onFailure({ kind, message }));
  }

  #head(): Record<string, string | string[]> {
    const { method, scheme, authority, path, headers } = this.#request;
    const head = headers.toObject();
    head[":method"] = method;
    head[":scheme"] = scheme;
    head[":authority"] = authority;
    head[":path"] = path;
    return head;
  }

  #onAnswer(headers: IncomingHttpHeaders & { readonly ":status"?: number | undefined }): void {
    this.#answered = true;
    if (!this.#over) this.#handler.onAnswer(headers[":status"] ?? 502, fieldsOf(headers), this);
  }

  #onStreamEnd(stream: ClientHttp2Stream): void {
    if (!this.#answered) return;
    this.#finish(() => this.#handler.onEnd(this.#trailers));
    // An answer before the end of the request: nobody reads the rest.
    if (!stream.writableFinished) stream.close(constants.NGHTTP2_NO_ERROR);
  }

  #onClose(stream: ClientHttp2Stream): void {
    const refused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM;
    this.fail(refused ? "connect" : "reset", `the backend closed the stream with code ${stream.rstCode}`);
  }

  #finish(last: () => void): void {
    if (this.#over) return;
    this.#over = true;
    this.#request.body?.unpipe();
    this.#onEnd();
    last();
  }
}

function fieldsOf(headers: IncomingHttpHeaders): HeaderFields {
  const fields: string[] = [];
  for (const name in headers) {
    if (name.charCodeAt(0) === 58) continue;
    const value = headers[name];
    if (Array.isArray(value)) for (const one of value) fields.push(name, one);
    else if (value !== undefined) fields.push(name, String(value));
  }
  return new HeaderFields(fields);
}

function ignore(): void {}
