/**
 * Joins two connections until both have ended:
 *
 *  - Each direction flows at the pace of its slower side.
 *  - The end of one direction is passed on once everything before it is; the other direction goes
 *    on (half-close).
 *  - A side that breaks off resets the other, after what it had sent.
 *  - A side that has said everything and then takes no more does not harm its answer: the rest of
 *    what it is sent is thrown away until the other side has had the time to read the answer.
 */

import type { Side } from "./connect-endpoint.ts";

export type SpliceEnd = "closed" | "client-lost" | "backend-lost" | "idle" | "aborted";

export interface SpliceResult {
  readonly reason: SpliceEnd;
  readonly error?: Error;
  readonly bytesFromClient: number;
  readonly bytesFromBackend: number;
}

export interface SpliceOptions {
  readonly client: Side;
  readonly backend: Side;
  /** Without a byte in either direction; 0 for never. */
  readonly idleTimeoutMs: number;
  readonly signal?: AbortSignal;
  /** How many bytes wait in memory for a side that does not read; 0 when it has read them. */
  readonly onWaiting?: (receiver: "client" | "backend", bytes: number) => void;
  readonly onEnd: (result: SpliceResult) => void;
}

/** How long a peer may take to read what was sent to it before it is cut. */
const LINGER_MS = 2_000;

interface Flow {
  bytes: number;
  /** The receiving side is gone: read on, so that its peer is not stopped, and keep nothing. */
  discarding: boolean;
}

export function splice(options: SpliceOptions): void {
  const { client, backend, idleTimeoutMs, signal, onWaiting, onEnd } = options;
  let open = 2;
  let verdict: { readonly reason: SpliceEnd; readonly error?: Error } | undefined;
  let linger: NodeJS.Timeout | undefined;
  const upward: Flow = { bytes: 0, discarding: false };
  const downward: Flow = { bytes: 0, discarding: false };

  const conclude = (reason: SpliceEnd, error?: Error): void => {
    verdict ??= error === undefined ? { reason } : { reason, error };
  };
  const cut = (reason: SpliceEnd): void => {
    conclude(reason);
    client.reset();
    backend.reset();
  };
  const abort = (): void => cut("aborted");
  const idle = idleTimeoutMs > 0 ? setTimeout(() => cut("idle"), idleTimeoutMs) : undefined;
  const active = (): void => void idle?.refresh();

  const flow = (from: Side, to: Side, state: Flow): void => {
    from.stream.on("data", (chunk: Buffer) => {
      active();
      if (state.discarding) return;
      state.bytes += chunk.length;
      if (to.stream.write(chunk)) return;
      from.stream.pause();
      onWaiting?.(to === client ? "client" : "backend", to.stream.writableLength);
    });
    to.stream.on("drain", () => {
      active();
      onWaiting?.(to === client ? "client" : "backend", 0);
      from.stream.resume();
    });
    // Behind a header of the PROXY protocol there may have been nothing but the end.
    if (from.stream.readableEnded) to.stream.end();
    from.stream.on("end", () => {
      active();
      to.stream.end();
    });
  };

  /** `side` is broken or closed; `rest` is what the other side still sends to it. */
  const lost = (side: Side, other: Side, rest: Flow): void => {
    if (other.stream.destroyed) return;
    if (!side.stream.readableEnded) {
      afterFlush(other, () => other.reset());
    } else if (!side.stream.writableFinished) {
      rest.discarding = true;
      other.stream.resume();
      afterFlush(other, () => {
        linger = setTimeout(() => other.reset(), LINGER_MS);
      });
    }
  };
  const watch = (side: Side, other: Side, rest: Flow): void => {
    side.stream.on("error", (error) => {
      if (!side.stream.readableEnded) conclude(side === client ? "client-lost" : "backend-lost", error);
    });
    side.stream.on("close", () => {
      if (!side.stream.readableEnded) conclude(side === client ? "client-lost" : "backend-lost");
      lost(side, other, rest);
      open -= 1;
      if (open > 0) return;
      clearTimeout(idle);
      clearTimeout(linger);
      signal?.removeEventListener("abort", abort);
      onEnd({
        ...(verdict ?? { reason: "closed" }),
        bytesFromClient: upward.bytes,
        bytesFromBackend: downward.bytes,
      });
    });
  };

  watch(client, backend, downward);
  watch(backend, client, upward);
  if (signal?.aborted === true) {
    abort();
    return;
  }
  signal?.addEventListener("abort", abort);
  flow(client, backend, upward);
  flow(backend, client, downward);
  client.stream.resume();
  backend.stream.resume();
}

/** Runs `then` when everything written so far has left, or after a while. */
function afterFlush({ stream }: Side, then: () => void): void {
  if (stream.writableLength === 0) {
    then();
    return;
  }
  let waiting = true;
  const once = (): void => {
    if (!waiting) return;
    waiting = false;
    clearTimeout(timer);
    then();
  };
  const timer = setTimeout(once, LINGER_MS);
  if (stream.writableEnded) stream.once("finish", once).once("close", once);
  else stream.write("", once);
}
