import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";
import { HeaderFields } from "../http/header-fields.ts";
import { isGrpc } from "../http/local-reply.ts";
import type { Flow, UpstreamCall, UpstreamFailure, UpstreamHandler, UpstreamRequest } from "./upstream.ts";

/** One request on its own stream of an HTTP/2 session. */
export class H2Call implements UpstreamCall, Flow {
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

  /** `onOpen` gets the stream as soon as there is one. */
  start(
    session: ClientHttp2Session,
    answerTimeoutMs: number,
    onOpen: (stream: ClientHttp2Stream) => void,
  ): void {
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
        code?.startsWith("ERR_HTTP2_GOAWAY") || code === "ERR_HTTP2_INVALID_SESSION" ? "refused" : "invalid";
      this.fail(kind, message);
      return;
    }
    this.#stream = stream;
    onOpen(stream);
    stream.once("close", () => this.#onClose(stream));
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
      stream.once("wantTrailers", () => this.#sendTrailers(stream));
      body.once("error", () => this.cancel());
      body.pipe(stream);
    }
  }

  /** Nobody waits for it any more. */
  get over(): boolean {
    return this.#over;
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

  fail(kind: UpstreamFailure["kind"], message: string): void {
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

  #sendTrailers(stream: ClientHttp2Stream): void {
    try {
      stream.sendTrailers(this.#request.trailers()?.toObject() ?? {});
    } catch {
      // Not what HTTP/2 takes for a field: the request goes without.
      stream.sendTrailers({});
    }
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
    this.fail(refused ? "refused" : "reset", `the backend closed the stream with code ${stream.rstCode}`);
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
