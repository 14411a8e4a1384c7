import type { BodySource } from "../message/request-body.ts";
import type { Stream } from "./stream.ts";

/**
 * The body of a request. Its stream keeps what is not read yet. It is no Readable: that would
 * buffer it again, and would cost more than all the rest of a small request.
 */
export class IncomingBody implements BodySource {
  #stream: Stream | undefined;
  #onData: ((chunk: Buffer) => void) | undefined;
  #onEnd: (() => void) | undefined;
  #onClose: (() => void) | undefined;
  #onUnread: (() => void) | undefined;

  /** Paused until somebody reads it. */
  constructor(stream: Stream) {
    this.#stream = stream;
    stream.pause();
  }

  on(_event: "data", handler: (chunk: Buffer) => void): void {
    this.#onData = handler;
  }

  /** An error of the client is reported as a close. `error` is never emitted. */
  once(event: "end" | "close" | "error", handler: (error: Error) => void): void {
    const call = handler as () => void;
    if (event === "end") this.#onEnd = call;
    else if (event === "close") this.#onClose = call;
  }

  get unreadBytes(): number {
    return this.#stream?.unreadBytes ?? 0;
  }

  onUnread(handler: () => void): void {
    this.#onUnread = handler;
  }

  kept(): void {
    this.#onUnread?.();
  }

  pause(): void {
    this.#stream?.pause();
  }

  resume(): void {
    this.#stream?.resume();
  }

  add(chunk: Buffer): void {
    this.#onData?.(chunk);
  }

  end(): void {
    this.#onClose = undefined;
    this.#onEnd?.();
  }

  /** Stops reading. Listeners of "close" are called. */
  close(): void {
    const onClose = this.#onClose;
    const stream = this.#stream;
    this.#stream = undefined;
    this.#onData = undefined;
    this.#onUnread = undefined;
    this.#onEnd = undefined;
    this.#onClose = undefined;
    onClose?.();
    stream?.resume();
  }
}
