import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { ApiError } from "./api-error.ts";
import { type CredentialOptions, type Credentials, findCredentials } from "./credentials.ts";
import { jsonLines, parseJson } from "./json-lines.ts";
import type { KubernetesObserver } from "./observer.ts";

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface ApiRequest {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
  /** Of the body; `application/json` without it. */
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export interface WatchRequest extends Omit<ApiRequest, "method" | "body" | "contentType" | "timeoutMs"> {
  readonly signal: AbortSignal;
  /**
   * A stream that is silent for longer counts as dead: the server sends a bookmark about every
   * minute.
   */
  readonly idleMs: number;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: unknown;
}

export const MERGE_PATCH = "application/merge-patch+json";

const ANSWER_TIMEOUT_MS = 30_000;

/** Requests to one API server. What it answers is data of others: callers check shapes. */
export class KubernetesClient {
  readonly #credentials: Credentials;
  readonly #userAgent: string;
  readonly #observer: KubernetesObserver;

  constructor(credentials: Credentials, userAgent: string, observer: KubernetesObserver = {}) {
    this.#credentials = credentials;
    this.#userAgent = userAgent;
    this.#observer = observer;
  }

  get server(): URL {
    return this.#credentials.server;
  }

  /** One request and its whole answer; an {@link ApiError} unless it is a success. */
  async request<T>(request: ApiRequest): Promise<T> {
    const timeout = AbortSignal.timeout(request.timeoutMs ?? ANSWER_TIMEOUT_MS);
    const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]);
    const what = `${request.method ?? "GET"} ${request.path}`;
    try {
      const answer = await this.#open(request, signal);
      return parseJson(await textOf(answer)) as T;
    } catch (error) {
      request.signal?.throwIfAborted();
      throw ApiError.fromFailure(what, timeout.aborted ? new Error("no answer in time") : error);
    }
  }

  /** The events of a watch, those that arrive together at once. Ends when the server ends it. */
  async *watch(request: WatchRequest): AsyncGenerator<readonly WatchEvent[]> {
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(new Error("the stream is silent")), request.idleMs);
    try {
      const signal = AbortSignal.any([request.signal, silence.signal]);
      const answer = await this.#open(request, signal);
      yield* jsonLines(noticed(answer, () => timer.refresh())) as AsyncGenerator<readonly WatchEvent[]>;
    } catch (error) {
      request.signal.throwIfAborted();
      const cause: unknown = silence.signal.aborted ? silence.signal.reason : error;
      throw ApiError.fromFailure(`watch of ${request.path}`, cause);
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
  }

  /**
   * Sends until the server has answered, with any status. After a 401 it reads the credentials
   * again, once.
   */
  async #open(request: ApiRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const began = performance.now();
    const method = request.method ?? "GET";
    let status = 0;
    try {
      let answer = await this.#sendTwice(request, signal);
      if (answer.statusCode === 401) {
        answer.resume();
        this.#credentials.forget();
        answer = await this.#sendTwice(request, signal);
      }
      status = answer.statusCode ?? 0;
      if (status >= 200 && status < 300) return answer;
      const retryAfter = answer.headers["retry-after"];
      throw ApiError.fromAnswer(`${method} ${request.path}`, status, await textOf(answer), retryAfter);
    } finally {
      this.#observer.onRequest?.({ method, status, seconds: (performance.now() - began) / 1000 });
    }
  }

  /**
   * A kept connection may have died since its last use, which shows only when it is used: then a
   * new one is tried.
   */
  async #sendTwice(request: ApiRequest, signal: AbortSignal): Promise<IncomingMessage> {
    try {
      return await this.#send(request, signal);
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error;
      return this.#send(request, signal);
    }
  }

  async #send(request: ApiRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const { headers, agent } = await this.#credentials.connection();
    signal.throwIfAborted();
    const url = new URL(this.#credentials.server);
    url.pathname = url.pathname.replace(/\/$/, "") + request.path;
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    const send = url.protocol === "http:" ? httpRequest : httpsRequest;
    return new Promise((resolve, reject) => {
      const outgoing = send(url, {
        method: request.method ?? "GET",
        agent,
        signal,
        headers: {
          accept: request.accept ?? "application/json",
          "user-agent": this.#userAgent,
          ...(body === undefined
            ? {}
            : { "content-type": request.contentType ?? "application/json", "content-length": body.length }),
          ...headers,
        },
      });
      outgoing.on("response", resolve);
      outgoing.on("error", (error: NodeJS.ErrnoException) => {
        const stale = outgoing.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
        reject(stale ? new StaleConnection(error.message, { cause: error }) : error);
      });
      outgoing.end(body);
    });
  }
}

class StaleConnection extends Error {}

async function* noticed(chunks: AsyncIterable<Buffer>, onChunk: () => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    onChunk();
    yield chunk;
  }
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of answer) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

export interface ClientOptions extends CredentialOptions {
  /** Names this program in the API server's logs. */
  readonly userAgent?: string;
  readonly observer?: KubernetesObserver;
}

export async function createKubernetesClient(options: ClientOptions = {}): Promise<KubernetesClient> {
  const credentials = await findCredentials(options);
  return new KubernetesClient(credentials, options.userAgent ?? "mergeway", options.observer);
}
