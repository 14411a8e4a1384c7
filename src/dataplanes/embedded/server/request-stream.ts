import { Readable } from "node:stream";
import type { BodySource } from "../message/request-body.ts";

/** The body of a request, as fast as it is read. */
export class RequestStream extends Readable implements BodySource {
  readonly #resume: () => void;
  #onUnread: (() => void) | undefined;

  constructor(resume: () => void) {
    super();
    this.#resume = resume;
    this.on("error", ignore);
  }

  get unreadBytes(): number {
    return this.readableLength;
  }

  onUnread(handler: () => void): void {
    this.#onUnread = handler;
  }

  /** False: no more should come until it is asked for. */
  add(piece: Buffer): boolean {
    const more = this.push(piece);
    if (this.readableLength > 0) this.#onUnread?.();
    return more;
  }

  override _read(): void {
    this.#resume();
  }
}

function ignore(): void {}
