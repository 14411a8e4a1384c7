import type { Duplex } from "node:stream";
import type { ConnectionOptions } from "node:tls";
import type { Endpoint } from "../../../plan/backend.ts";
import { connectEndpoint, type Side, sideOf } from "../sockets/connect-endpoint.ts";
import { type SpliceEnd, splice } from "../sockets/splice.ts";

export interface ProxyStreamOptions {
  /**
   * Half-open allowed; nothing read from it yet, or everything put back. Belongs to the proxy from
   * here on.
   */
  readonly client: Duplex;
  /** The TCP socket under `client` when that is a TLS stream: only it can be reset. */
  readonly transport?: Duplex | undefined;
  /**
   * The endpoint to try first, then the next one after each failure; undefined when there is none
   * left.
   */
  readonly choose: () => Endpoint | undefined;
  /** TLS towards the backend, see `backendTlsOptions`. */
  readonly tls?: ConnectionOptions | undefined;
  /** Per endpoint, with the TLS handshake. */
  readonly connectTimeoutMs: number;
  /** Without a byte in either direction; 0 for never. */
  readonly idleTimeoutMs: number;
  readonly signal: AbortSignal;
  /** Called once, when both connections are gone. */
  readonly onEnd?: ((end: StreamEnd) => void) | undefined;
}

export interface StreamEnd {
  readonly reason: SpliceEnd | "refused" | "unreachable";
  readonly error?: Error;
  readonly endpoint?: Endpoint;
  readonly bytesFromClient: number;
  readonly bytesFromBackend: number;
}

/** However long the list of endpoints is, a client does not wait for more than these. */
const MAX_ATTEMPTS = 8;

/**
 * Connects `client` to the first endpoint that answers and carries bytes both ways until the end of
 * both.
 */
export async function proxyStream(options: ProxyStreamOptions): Promise<void> {
  const { client, idleTimeoutMs, signal } = options;
  const side = sideOf(client, options.transport);
  const end = (result: StreamEnd): void => options.onEnd?.(result);
  const giveUp = (reason: StreamEnd["reason"], error?: Error): void => {
    side.reset();
    end({ reason, ...(error && { error }), bytesFromClient: 0, bytesFromBackend: 0 });
  };
  client.on("error", () => {});
  if (client.destroyed) return giveUp("client-lost");

  const departure = new AbortController();
  const depart = (): void => departure.abort();
  client.on("close", depart);
  signal.addEventListener("abort", depart);
  if (signal.aborted) depart();
  const outcome = await firstAnswer(options, departure.signal);
  client.off("close", depart);
  signal.removeEventListener("abort", depart);

  if ("backend" in outcome) {
    const { backend, endpoint } = outcome;
    if (client.destroyed) {
      backend.reset();
      return giveUp("client-lost");
    }
    const onEnd = (result: Omit<StreamEnd, "endpoint">): void => end({ ...result, endpoint });
    splice({ client: side, backend, idleTimeoutMs, signal, onEnd });
  } else if (signal.aborted) {
    giveUp("aborted");
  } else if (client.destroyed) {
    giveUp("client-lost");
  } else {
    giveUp(outcome.error === undefined ? "refused" : "unreachable", outcome.error);
  }
}

type Answer = { readonly backend: Side; readonly endpoint: Endpoint } | { readonly error: Error | undefined };

async function firstAnswer(options: ProxyStreamOptions, signal: AbortSignal): Promise<Answer> {
  const { choose, tls, connectTimeoutMs: timeoutMs } = options;
  let error: Error | undefined;
  for (let attempt = 0; attempt < MAX_ATTEMPTS && !signal.aborted; attempt++) {
    const endpoint = choose();
    if (endpoint === undefined) break;
    try {
      return { backend: await connectEndpoint({ endpoint, tls, timeoutMs, signal }), endpoint };
    } catch (cause) {
      error = cause as Error;
    }
  }
  return { error };
}
