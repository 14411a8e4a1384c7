import type { BodySource } from "../message/request-body.ts";
import type { Stream } from "./stream.ts";

/**
 * The body of a request, straight from its stream, which keeps what is not wanted yet. Not a
 * Readable: that would keep it once more, and cost more than all the rest of a small request.
 */
export class IncomingBody implements BodySource {
  #stream: Stream | undefined;
  #onData: ((chunk: Buffer) => void) | undefined;
  #onEnd: (() => void) | undefined;
  #onClose: (() => void) | undefined;

  /** Nothing comes before somebody wants it. */
  constructor(stream: Stream) {
    this.#stream = stream;
    stream.pause();
  }

  on(_event: "data", handler: (chunk: Buffer) => void): void {
    this.#onData = handler;
  }

  /** An error of the client's side looks like its leaving: `error` never comes. */
  once(event: "end" | "close" | "error", handler: (error: Error) => void): void {
    const call = handler as () => void;
    if (event === "end") this.#onEnd = call;
    else if (event === "close") this.#onClose = call;
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

  /** Nobody gets any more of it; whoever waits for the end is told so. */
  close(): void {
    const onClose = this.#onClose;
    const stream = this.#stream;
    this.#stream = undefined;
    this.#onData = undefined;
    this.#onEnd = undefined;
    this.#onClose = undefined;
    onClose?.();
    stream?.resume();
  }
}
