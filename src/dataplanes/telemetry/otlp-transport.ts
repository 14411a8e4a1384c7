/** One export to a collector: OTLP over HTTP (binary Protocol Buffers), or over gRPC. */

import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Signal } from "./otlp-messages.ts";
import type { CollectorSettings } from "./telemetry-settings.ts";

export type ExportOutcome =
  | { readonly type: "taken"; readonly response: Buffer }
  /** It may be sent again. */
  | { readonly type: "unavailable"; readonly problem: string; readonly retryAfterMs?: number }
  | { readonly type: "refused"; readonly problem: string };

export interface OtlpTransport {
  send(signal: Signal, body: Buffer): Promise<ExportOutcome>;
  close(): void;
}

const TIMEOUT_MS = 10_000;
/** A collector's answer is short. */
const MAX_RESPONSE_BYTES = 64 * 1024;
/** OTLP, "Retryable Response Codes". */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Cancelled, deadline exceeded, aborted, out of range, unavailable, data loss. */
const RETRYABLE_GRPC: ReadonlySet<string> = new Set(["1", "4", "10", "11", "14", "15"]);
const GRPC_PATHS = {
  traces: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
  logs: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
} as const;

export function otlpTransport(settings: CollectorSettings): OtlpTransport {
  return settings.protocol === "GRPC" ? new GrpcTransport(settings) : new HttpTransport(settings);
}

class HttpTransport implements OtlpTransport {
  readonly #settings: CollectorSettings;
  readonly #agent: HttpAgent;
  readonly #isSecure: boolean;

  constructor(settings: CollectorSettings) {
    this.#settings = settings;
    this.#isSecure = settings.endpoint.startsWith("https:");
    const options = { keepAlive: true, maxSockets: 2 };
    const ca = settings.certificateAuthority;
    this.#agent = this.#isSecure
      ? new HttpsAgent({ ...options, ...(ca === undefined ? {} : { ca }) })
      : new HttpAgent(options);
  }

  send(signal: Signal, body: Buffer): Promise<ExportOutcome> {
    const done = Promise.withResolvers<ExportOutcome>();
    const fail = (error: Error): void => done.resolve({ type: "unavailable", problem: error.message });
    try {
      const request = (this.#isSecure ? httpsRequest : httpRequest)(
        `${this.#settings.endpoint}/v1/${signal}`,
        {
          method: "POST",
          agent: this.#agent,
          headers: { "content-type": "application/x-protobuf", "content-length": body.length },
          signal: AbortSignal.timeout(TIMEOUT_MS),
        },
        (response) => {
          const chunks: Buffer[] = [];
          let size = 0;
          response.on("data", (chunk: Buffer) => {
            size += chunk.length;
            if (size <= MAX_RESPONSE_BYTES) chunks.push(chunk);
            else response.destroy(new Error("the collector's answer is too long"));
          });
          response.on("error", fail);
          response.on("end", () => {
            const { statusCode = 0, headers } = response;
            if (statusCode >= 200 && statusCode < 300)
              done.resolve({ type: "taken", response: Buffer.concat(chunks) });
            else
              done.resolve(
                failed(RETRYABLE_STATUSES.has(statusCode), `status ${statusCode}`, headers["retry-after"]),
              );
          });
        },
      );
      request.on("error", fail);
      request.end(body);
    } catch (error) {
      fail(error as Error);
    }
    return done.promise;
  }

  close(): void {
    this.#agent.destroy();
  }
}

class GrpcTransport implements OtlpTransport {
  readonly #settings: CollectorSettings;
  #session: ClientHttp2Session | undefined;

  constructor(settings: CollectorSettings) {
    this.#settings = settings;
  }

  send(signal: Signal, body: Buffer): Promise<ExportOutcome> {
    const done = Promise.withResolvers<ExportOutcome>();
    const fail = (problem: string): void => done.resolve({ type: "unavailable", problem });
    try {
      const stream = this.#connected().request({
        ":method": "POST",
        ":path": GRPC_PATHS[signal],
        "content-type": "application/grpc",
        te: "trailers",
      });
      const chunks: Buffer[] = [];
      let size = 0;
      let status: string | undefined;
      const statusOf = (headers: Readonly<Record<string, unknown>>): void => {
        if (headers["grpc-status"] !== undefined) status = String(headers["grpc-status"]);
      };
      stream.setTimeout(TIMEOUT_MS, () => stream.destroy(new Error("the collector does not answer")));
      const limit = setTimeout(() => stream.destroy(new Error("the collector is too slow")), TIMEOUT_MS);
      stream.on("response", statusOf);
      stream.on("trailers", statusOf);
      stream.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size <= MAX_RESPONSE_BYTES) chunks.push(chunk);
        else stream.destroy(new Error("the collector's answer is too long"));
      });
      stream.on("error", (error) => fail(error.message));
      stream.on("close", () => {
        clearTimeout(limit);
        if (status === "0") done.resolve({ type: "taken", response: Buffer.concat(chunks).subarray(5) });
        else if (status === undefined) fail("the stream was closed");
        else done.resolve(failed(RETRYABLE_GRPC.has(status), `gRPC status ${status}`));
      });
      const head = Buffer.alloc(5);
      head.writeUInt32BE(body.length, 1);
      stream.end(Buffer.concat([head, body]));
    } catch (error) {
      fail((error as Error).message);
    }
    return done.promise;
  }

  close(): void {
    this.#session?.destroy();
  }

  #connected(): ClientHttp2Session {
    const known = this.#session;
    if (known !== undefined && !known.closed && !known.destroyed) return known;
    const ca = this.#settings.certificateAuthority;
    const session = connect(this.#settings.endpoint, ca === undefined ? {} : { ca });
    // Streams tell of it.
    session.on("error", () => {});
    session.unref();
    this.#session = session;
    return session;
  }
}

function failed(isRetryable: boolean, problem: string, retryAfter?: string): ExportOutcome {
  if (!isRetryable) return { type: "refused", problem };
  const seconds = Number(retryAfter);
  return Number.isFinite(seconds) && seconds > 0
    ? { type: "unavailable", problem, retryAfterMs: seconds * 1000 }
    : { type: "unavailable", problem };
}
