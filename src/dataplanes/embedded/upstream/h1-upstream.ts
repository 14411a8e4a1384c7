import type { Duplex } from "node:stream";
import { type Dispatcher, Pool } from "undici";
import { HeaderFields } from "../http/header-fields.ts";
import type { Limits } from "../options.ts";
import type { Connector } from "./connector.ts";
import type {
  Upstream,
  UpstreamCall,
  UpstreamFailure,
  UpstreamHandler,
  UpstreamRequest,
} from "./upstream.ts";

/** HTTP/1.1 over a pool of kept-alive connections. */
export class H1Upstream implements Upstream {
  readonly #pool: Pool;

  constructor(connector: Connector, limits: Limits) {
    // The scheme stays http: TLS, where there is any, is the connector's own business.
    this.#pool = new Pool("http://backend.invalid", {
      connections: limits.connectionsPerEndpoint,
      pipelining: 1,
      headersTimeout: limits.backendResponseTimeoutMs,
      bodyTimeout: limits.backendIdleTimeoutMs,
      keepAliveTimeout: 10_000,
      keepAliveMaxTimeout: 60_000,
      maxHeaderSize: limits.headerBytes,
      connect: (_options, callback) => {
        connector.connect("http/1.1", (error, socket) => {
          if (socket === undefined) callback(error ?? new Error("no connection"), null);
          else callback(null, socket);
        });
      },
    });
  }

  get idle(): boolean {
    const { running, pending, queued } = this.#pool.stats;
    return running === 0 && pending === 0 && queued === 0;
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const call = new H1Call(handler);
    const headers = ["host", request.authority];
    headers.push(...request.headers.flat);
    this.#pool.dispatch(
      {
        method: request.method as Dispatcher.HttpMethod,
        path: request.path,
        headers,
        body: request.body ?? null,
        upgrade: request.websocket ? "websocket" : null,
      },
      call,
    );
    return call;
  }

  close(): void {
    this.#pool.close().catch(ignore);
  }

  destroy(): void {
    this.#pool.destroy().catch(ignore);
  }
}

class H1Call implements UpstreamCall, Dispatcher.DispatchHandler {
  readonly #handler: UpstreamHandler;
  #controller: Dispatcher.DispatchController | undefined;
  #cancelled = false;

  constructor(handler: UpstreamHandler) {
    this.#handler = handler;
  }

  cancel(): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#controller?.abort(new Error("cancelled"));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#cancelled) controller.abort(new Error("cancelled"));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    // Informational answers other than the switch are for this hop only.
    if (this.#cancelled || status < 200) return;
    this.#handler.onAnswer(status, fieldsOf(controller.rawHeaders), controller);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#cancelled) this.#handler.onData(chunk, controller);
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#cancelled) return;
    const trailers = fieldsOf(controller.rawTrailers);
    this.#handler.onEnd(trailers.count > 0 ? trailers : undefined);
  }

  onRequestUpgrade(
    controller: Dispatcher.DispatchController,
    _status: number,
    _headers: unknown,
    socket: Duplex,
  ): void {
    if (this.#cancelled) socket.destroy();
    else this.#handler.onSwitch(fieldsOf(controller.rawHeaders), socket);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    if (!this.#cancelled) this.#handler.onFailure(failureOf(error, this.#controller !== undefined));
  }
}

function fieldsOf(raw: Dispatcher.DispatchController["rawHeaders"]): HeaderFields {
  const fields: string[] = [];
  if (Array.isArray(raw)) {
    for (let at = 0; at + 1 < raw.length; at += 2) {
      fields.push(String(raw[at]).toLowerCase(), latin1(raw[at + 1]));
    }
  }
  return new HeaderFields(fields);
}

function latin1(value: Buffer | string | undefined): string {
  return Buffer.isBuffer(value) ? value.toString("latin1") : (value ?? "");
}

function failureOf(error: Error & { readonly code?: string }, started: boolean): UpstreamFailure {
  const { code, message } = error;
  if (code === "UND_ERR_INVALID_ARG" || code === "UND_ERR_NOT_SUPPORTED") return { kind: "invalid", message };
  if (!started) return { kind: "connect", message };
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT")
    return { kind: "timeout", message };
  return { kind: "reset", message };
}

function ignore(): void {}
