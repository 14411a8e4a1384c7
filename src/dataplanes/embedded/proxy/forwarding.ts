/**
 * One request to one backend: attempts, timeouts, and the answer on its way back.
 *
 * - `requestMs` bounds everything, `backendRequestMs` each attempt; both end in 504, or in a
 *   cut-off answer if it had begun. `idleMs` bounds the time without a byte in either direction.
 * - The route's retry policy covers its codes, failed connections, resets and timed-out attempts.
 *   Without one, a request of which nothing was sent goes to the next endpoint, and one that is
 *   safe to repeat gets a second try after a reset: a kept-alive connection may have been closed by
 *   the backend at the very moment of its reuse. Both are bounded: src/plan/retry-limits.ts.
 * - A body that is no longer complete in memory is never sent again.
 */

import type { Duplex } from "node:stream";
import type { BackendItem, Endpoint } from "../../../plan/backend.ts";
import { retryOfMethod } from "../../../plan/retry-limits.ts";
import type { Filters, ForwardAction, WeightedBackend } from "../../../plan/rule.ts";
import { addAnswerFields, applyEdits } from "../message/edit-headers.ts";
import type { HeaderFields } from "../message/header-fields.ts";
import { removeHopByHop } from "../message/hop-by-hop.ts";
import { cleanInterim } from "../message/interim.ts";
import type { RequestBody } from "../message/request-body.ts";
import { answerTrailerTest, cleanTrailers, passingNames, requestTrailerTest } from "../message/trailers.ts";
import { answerTimeouts } from "../upstream/answer-timeouts.ts";
import { sessionEndpoint, sessionField } from "../upstream/sessions.ts";
import type { AnswerFlow, UpstreamCall, UpstreamFailure, UpstreamHandler } from "../upstream/upstream.ts";
import { AnswerCompressor, type AnswerTarget } from "./compression/answer-compressor.ts";
import { compressionOf, markCompressed } from "./compression/compressible.ts";
import { addCorsHeaders } from "./cors.ts";
import { replyAtBackendLimit, replyCrowded, replyLocally } from "./local-reply.ts";
import { Retries } from "./retries.ts";
import type { RoutedRequest } from "./routed-request.ts";
import type { Serving } from "./serve-request.ts";
import type { RequestHead } from "./upstream-request.ts";

/** Tries beyond the route's own policy. */
const IMPLICIT_TRIES = 3;

export interface ForwardingParts {
  readonly request: RoutedRequest;
  readonly action: ForwardAction;
  readonly entry: WeightedBackend;
  readonly backend: BackendItem;
  readonly head: RequestHead;
  readonly body: RequestBody | undefined;
}

const failures: Readonly<
  Record<UpstreamFailure["kind"], readonly [status: number, reason: string, message: string]>
> = {
  connect: [503, "BackendUnreachable", "the backend cannot be reached"],
  full: [503, "BackendRefused", "the backend takes no more requests now"],
  refused: [503, "BackendRefused", "the backend does not take this request now"],
  reset: [502, "BackendReset", "the backend broke off"],
  timeout: [504, "BackendTimeout", "the backend did not answer in time"],
  invalid: [500, "InvalidRequest", "the request cannot be passed on"],
};

export class Forwarding implements UpstreamHandler {
  readonly #serving: Serving;
  readonly #parts: ForwardingParts;
  readonly #endpoints: readonly Endpoint[];
  /** Where the client's session is; undefined: nowhere yet. */
  readonly #session: Endpoint | undefined;
  #call: UpstreamCall | undefined;
  /** Where the body of the answer goes. */
  #sink: AnswerTarget;
  #compressor: AnswerCompressor | undefined;
  readonly #retries: Retries;
  #tries = 0;
  #over = false;
  /** The client is slow; what had been read already may still come. */
  #held = false;
  #requestTimer: NodeJS.Timeout | undefined;
  #attemptTimer: NodeJS.Timeout | undefined;
  #backoffTimer: NodeJS.Timeout | undefined;
  #stallTimer: NodeJS.Timeout | undefined;
  readonly #idleMs: number;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(serving: Serving, parts: ForwardingParts) {
    this.#serving = serving;
    this.#parts = parts;
    this.#sink = parts.request.exchange;
    this.#idleMs = parts.action.timeouts.idleMs ?? 0;
    this.#session = sessionEndpoint(parts.backend, parts.request);
    this.#endpoints = serving.upstreams.order(parts.backend, parts.request, this.#session);
    const budget = serving.upstreams.retryBudget(parts.backend.id);
    const policy = retryOfMethod(parts.action.retry, parts.request.method);
    this.#retries = new Retries(serving, parts.request, policy, budget);
  }

  start(): void {
    const { request, action, body } = this.#parts;
    const { requestMs } = action.timeouts;
    if (requestMs !== undefined && requestMs > 0) {
      this.#requestTimer = setTimeout(
        () => this.#fail(504, "RequestTimeout", "the request took too long"),
        requestMs,
      );
    }
    if (this.#idleMs > 0) {
      this.#idleTimer = setTimeout(() => this.#onIdle(), this.#idleMs);
      body?.onProgress(() => this.#idleTimer?.refresh());
    }
    body?.onRefused((refusal) => {
      request.exchange.closeAfterAnswer();
      if (refusal === "crowded") this.#refuse(replyCrowded);
      else if (refusal === "large") this.#fail(413, "BodyTooLarge", "the request body is too large");
      else this.#fail(408, "SlowBody", "the request body came too slowly");
    });
    if (!this.#serving.upstreams.takeRequest(this.#parts.backend)) {
      this.#refuse(replyAtBackendLimit);
      return;
    }
    request.exchange.onClose(() => {
      this.#stop();
      this.#serving.upstreams.giveBackRequest(this.#parts.backend);
    });
    this.#attempt();
  }

  /** Of whoever was to say something. */
  #onIdle(): void {
    const { body } = this.#parts;
    if (body === undefined || body.ended)
      this.#fail(504, "IdleTimeout", "the backend did not answer in time");
    else {
      this.#parts.request.exchange.closeAfterAnswer();
      this.#fail(408, "IdleTimeout", "the request body came too slowly");
    }
  }

  onInterim(status: number, headers: HeaderFields): void {
    this.#idleTimer?.refresh();
    // 100 is between neighbours, and the client has had its own.
    if (status === 100 || this.#over) return;
    cleanInterim(headers, this.#filters());
    try {
      this.#parts.request.exchange.inform(status, headers);
    } catch {
      // A field that cannot be sent; the answer itself is still to come.
    }
  }

  onAnswer(status: number, headers: HeaderFields, flow: AnswerFlow): void {
    this.#idleTimer?.refresh();
    const wait = this.#retries.wants(status) ? this.#nextRetry() : undefined;
    if (wait !== undefined) {
      this.#call?.cancel();
      this.#retryAfter(wait);
      return;
    }
    const { request, body } = this.#parts;
    body?.forget();
    const { exchange } = request;
    // What ends with its header is passed on so: gRPC has its status there (Trailers-Only).
    const hasBody = !flow.complete && mayHaveBody(exchange.method, status);
    this.#finishHead(headers, hasBody);
    this.#compress(status, headers, hasBody);
    try {
      exchange.answer(status, headers, hasBody);
    } catch {
      // A header of the backend, or one that the route adds, that cannot be sent.
      this.#fail(502, "InvalidAnswer", "the answer of the backend cannot be passed on");
    }
  }

  onData(chunk: Buffer, flow: AnswerFlow): void {
    this.#idleTimer?.refresh();
    const { buffered } = this.#parts.request;
    const more = this.#sink.write(chunk);
    if (this.#held || !more) this.onKept(flow);
    if (this.#held || more) return;
    this.#held = true;
    flow.pause();
    const { clientStallTimeoutMs } = this.#serving.limits;
    if (clientStallTimeoutMs > 0) {
      this.#stallTimer = setTimeout(
        () => this.#fail(408, "ClientStalled", "the answer was not taken in time"),
        clientStallTimeoutMs,
      );
    }
    this.#sink.onDrain(() => {
      this.#idleTimer?.refresh();
      this.#held = false;
      buffered?.set("answer", 0);
      clearTimeout(this.#stallTimer);
      flow.resume();
    });
  }

  onKept(flow: AnswerFlow): void {
    this.#parts.request.buffered?.set("answer", this.#sink.unsentBytes + flow.unreadBytes);
  }

  onEnd(trailers: HeaderFields | undefined): void {
    this.#call = undefined;
    this.#parts.body?.close();
    const { exchange } = this.#parts.request;
    this.#clearTimers();
    if (!mayHaveBody(exchange.method, exchange.status)) return;
    try {
      this.#sink.end(trailers && cleanTrailers(trailers, answerTrailerTest(this.#filters())));
    } catch {
      exchange.abort();
    }
  }

  onSwitch(headers: HeaderFields, stream: Duplex): void {
    this.#call = undefined;
    this.#clearTimers();
    removeHopByHop(headers);
    const { exchange, buffered, answerFields } = this.#parts.request;
    this.#keepSession(headers);
    addAnswerFields(headers, answerFields);
    exchange.switchProtocols(headers, {
      backend: stream,
      idleMs: this.#idleMs,
      onWaiting: (receiver, bytes) => buffered?.set(receiver === "backend" ? "body" : "answer", bytes),
    });
  }

  onFailure(failure: UpstreamFailure): void {
    this.#call = undefined;
    clearTimeout(this.#attemptTimer);
    if (this.#over) return;
    const unanswered = this.#parts.request.exchange.status === 0 && failure.kind !== "invalid";
    const wait = unanswered ? this.#nextRetry() : undefined;
    if (wait !== undefined) this.#retryAfter(wait);
    else if (unanswered && this.#mayTryAnother(failure)) this.#attempt();
    else this.#fail(...failures[failure.kind], failure.code);
  }

  #attempt(): void {
    const { backend, head, body, request, action } = this.#parts;
    const endpoint = this.#endpoints[this.#tries % this.#endpoints.length];
    if (endpoint === undefined || this.#over) return;
    this.#tries++;
    request.attempts = this.#tries;
    request.endpoint = endpoint;
    const upstream = this.#serving.upstreams.to(backend, endpoint, head.protocol);
    if (!this.#serving.upstreams.mayWait(backend, upstream)) {
      this.#refuse(replyAtBackendLimit);
      return;
    }
    const { backendRequestMs } = action.timeouts;
    if (backendRequestMs !== undefined && backendRequestMs > 0) {
      this.#attemptTimer = setTimeout(() => this.#onAttemptTimeout(), backendRequestMs);
    }
    const call = upstream.send(
      {
        method: head.method,
        path: head.path,
        scheme: backend.tls === undefined ? "http" : "https",
        authority: head.authority,
        headers: head.headers,
        body: body?.open(() => this.#call?.unsentBytes ?? 0),
        trailers: body === undefined ? noTrailers : this.#requestTrailers,
        websocket: head.websocket,
        timeouts: answerTimeouts(action.timeouts, this.#serving.limits),
      },
      this,
    );
    // A request that fails at once has gone on to its next attempt, or is over, before `send`
    // returns.
    if (!this.#over && this.#call === undefined) this.#call = call;
  }

  readonly #requestTrailers = (): HeaderFields | undefined => {
    const trailers = this.#parts.request.exchange.trailers();
    const { hides } = this.#parts.request;
    return trailers && cleanTrailers(trailers, requestTrailerTest(this.#filters(), hides));
  };

  #onAttemptTimeout(): void {
    this.#call?.cancel();
    this.onFailure({ kind: "timeout", message: "the attempt took too long" });
  }

  #nextRetry(): number | undefined {
    return this.#parts.body?.replayable === false ? undefined : this.#retries.next();
  }

  #retryAfter(wait: number): void {
    clearTimeout(this.#attemptTimer);
    this.#call = undefined;
    this.#backoffTimer = setTimeout(() => {
      if (this.#retries.stillServed(this.#parts.backend.id)) this.#attempt();
      else this.#fail(404, "NoRoute", "no route for this request");
    }, wait);
  }

  #mayTryAnother(failure: UpstreamFailure): boolean {
    const { body, request } = this.#parts;
    if (body !== undefined && !body.replayable) return false;
    if (failure.kind === "connect" || failure.kind === "full")
      return this.#tries < Math.min(this.#endpoints.length, IMPLICIT_TRIES);
    if (failure.kind === "refused") return this.#tries < IMPLICIT_TRIES;
    const safe = request.method === "GET" || request.method === "HEAD" || request.method === "OPTIONS";
    return failure.kind === "reset" && safe && body === undefined && this.#tries === 1;
  }

  #finishHead(headers: HeaderFields, hasBody: boolean): void {
    const { action, entry, request } = this.#parts;
    const announced = headers.get("trailer");
    removeHopByHop(headers);
    applyEdits(headers, action.filters.responseHeaders);
    applyEdits(headers, entry.filters.responseHeaders);
    const { cors } = action.filters;
    if (cors !== undefined) addCorsHeaders(headers, cors, request.headers.get("origin"));
    this.#keepSession(headers);
    addAnswerFields(headers, request.answerFields);
    if (announced === undefined || !hasBody) return;
    const names = passingNames(announced, answerTrailerTest(this.#filters()));
    if (names !== "" && request.exchange.expectTrailers(headers)) headers.add("trailer", names);
  }

  /** Behind all edits, which decide about the answer as they do about any other. */
  #compress(status: number, headers: HeaderFields, hasBody: boolean): void {
    const { action, request } = this.#parts;
    const { exchange, buffered } = request;
    if (action.compression === undefined || exchange.websocket) return;
    const accepted = request.headers.get("accept-encoding");
    const algorithm = compressionOf(action.compression, accepted, { status, headers, hasBody });
    if (algorithm === undefined || !this.#serving.compressors.take(buffered)) return;
    markCompressed(headers, algorithm);
    this.#compressor = new AnswerCompressor(exchange, {
      algorithm,
      stallMs: this.#serving.limits.clientStallTimeoutMs,
      onStalled: () => this.#fail(408, "ClientStalled", "the answer was not taken in time"),
      onFailure: () => this.#fail(500, "CompressionFailed", "the answer cannot be compressed"),
    });
    this.#sink = this.#compressor;
  }

  /** Behind all edits: a route cannot take the session from its client. */
  #keepSession(headers: HeaderFields): void {
    const { backend, request } = this.#parts;
    const { persistence } = backend;
    const { endpoint, exchange } = request;
    if (persistence === undefined || endpoint === undefined || endpoint === this.#session) return;
    const [name, value] = sessionField(persistence, endpoint, exchange.connection.secure);
    if (persistence.type === "header") headers.set(name, value);
    else headers.add(name, value);
  }

  #filters(): readonly Filters[] {
    return [this.#parts.action.filters, this.#parts.entry.filters];
  }

  #fail(status: number, reason: string, message: string, resetCode?: number): void {
    if (this.#over) return;
    this.#stop();
    replyLocally(this.#parts.request, status, { reason, message, resetCode });
  }

  #refuse(reply: (request: RoutedRequest) => void): void {
    if (this.#over) return;
    this.#stop();
    reply(this.#parts.request);
  }

  /** The client has its answer, or has gone. */
  #stop(): void {
    this.#over = true;
    this.#clearTimers();
    this.#retries.end();
    this.#call?.cancel();
    this.#call = undefined;
    this.#parts.body?.close();
    if (this.#compressor === undefined) return;
    this.#compressor.destroy();
    this.#compressor = undefined;
    this.#serving.compressors.giveBack(this.#parts.request.buffered);
  }

  #clearTimers(): void {
    clearTimeout(this.#requestTimer);
    clearTimeout(this.#attemptTimer);
    clearTimeout(this.#backoffTimer);
    clearTimeout(this.#stallTimer);
    clearTimeout(this.#idleTimer);
    this.#idleTimer = undefined;
  }
}

function noTrailers(): undefined {
  return undefined;
}

function mayHaveBody(method: string, status: number): boolean {
  return method !== "HEAD" && status !== 204 && status !== 304;
}
