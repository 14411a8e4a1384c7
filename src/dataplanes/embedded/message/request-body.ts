import { Readable } from "node:stream";
import type { BufferedBytes } from "../limits/buffered-bytes.ts";

/**
 * A request body that is read once from the client and can be given to several readers:
 * one attempt after the other (a retry starts again from what was kept), and mirrors beside it.
 *
 * The pace is the current attempt's. A mirror that falls behind by more than the bound is cut off,
 * and a body longer than the bound can no longer be retried: memory per request stays bounded. What
 * waits counts for the tenant; beyond its budget a body that must wait is refused.
 */
export class RequestBody {
  readonly #source: BodySource;
  readonly #options: RequestBodyOptions;
  readonly #mirrors: Set<BodyReader> = new Set();
  #reader: BodyReader | undefined;
  #unsentBytes: () => number = none;
  #kept: Buffer[] | undefined;
  #keptBytes = 0;
  #ended = false;
  #failure: Error | undefined;
  #idle: NodeJS.Timeout | undefined;
  #onRefused: ((refusal: BodyRefusal) => void) | undefined;
  #onProgress: (() => void) | undefined;
  bytes = 0;

  constructor(source: BodySource, options: RequestBodyOptions) {
    this.#source = source;
    this.#options = options;
    this.#kept = options.keepBytes > 0 ? [] : undefined;
    source.on("data", (chunk: Buffer) => this.#onData(chunk));
    source.pause();
    if (options.buffered !== undefined) source.onUnread(() => this.#onUnread());
    source.once("end", () => this.#onEnd());
    source.once("error", (error: Error) => this.#fail(error.message));
    source.once("close", () => this.#fail("the client left before its body was complete"));
  }

  /** Nothing of the body is lost yet: another attempt can have all of it. */
  get replayable(): boolean {
    return this.#kept !== undefined || this.bytes === 0;
  }

  /**
   * Reads the body from its beginning, as fast as this reader does. It replaces an earlier one.
   * `unsentBytes` are those that the reader has taken and its backend has not.
   */
  open(unsentBytes: () => number = none): Readable {
    const before = this.#reader;
    this.#reader = undefined;
    this.#unsentBytes = unsentBytes;
    before?.destroy();
    const reader = new BodyReader(
      () => this.#pull(),
      () => this.#release(reader),
    );
    this.#reader = reader;
    for (const chunk of this.#kept ?? []) reader.push(chunk);
    if (this.#failure !== undefined) reader.destroy(this.#failure);
    else if (this.#ended) reader.push(null);
    return reader;
  }

  /** A copy at the attempt's pace; must be taken before a byte is read that is not kept. */
  mirror(): Readable {
    const mirror: BodyReader = new BodyReader(ignore, () => this.#mirrors.delete(mirror));
    mirror.on("error", ignore);
    this.#mirrors.add(mirror);
    for (const chunk of this.#kept ?? []) mirror.push(chunk);
    if (this.#ended) mirror.push(null);
    return mirror;
  }

  /** The body is longer or slower than the limits allow: the rest is not read. */
  onRefused(handler: (refusal: BodyRefusal) => void): void {
    this.#onRefused = handler;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Called with every piece that comes. */
  onProgress(handler: () => void): void {
    this.#onProgress = handler;
  }

  /** Drops the rest of the body. */
  close(): void {
    this.#kept = undefined;
    this.#fail("the body is not wanted any more");
    this.#options.buffered?.set("body", 0);
  }

  /** No retry will ask for the beginning again. */
  forget(): void {
    this.#kept = undefined;
    this.#count();
  }

  #pull(): void {
    this.#count();
    if (this.#ended || this.#failure !== undefined) return;
    this.#options.onWanted();
    this.#armIdle();
    this.#source.resume();
  }

  #release(reader: BodyReader): void {
    if (this.#reader !== reader) return;
    this.#reader = undefined;
    this.#disarmIdle();
    if (!this.#ended) this.#source.pause();
    this.#count();
  }

  /** More of the body has come than its reader takes. */
  #onUnread(): void {
    if (this.#failure !== undefined || this.#ended) return;
    this.#count();
    const waits = this.#reader?.readableFlowing !== true;
    if (waits && this.#options.buffered?.isFull === true) this.#refuse("crowded");
  }

  /** Readers share their chunks: the slowest of them counts. */
  #count(): void {
    const { buffered } = this.#options;
    if (buffered === undefined) return;
    let bytes = this.#kept === undefined ? 0 : this.#keptBytes;
    for (const mirror of this.#mirrors) bytes = Math.max(bytes, mirror.readableLength);
    const reader = this.#reader;
    if (reader !== undefined) {
      const unsent = reader.readableFlowing === true ? 0 : this.#unsentBytes();
      bytes = Math.max(bytes, reader.readableLength + unsent);
    }
    buffered.set("body", bytes + this.#source.unreadBytes);
  }

  #onData(chunk: Buffer): void {
    if (this.#failure !== undefined) return;
    this.bytes += chunk.length;
    this.#options.onData(chunk.length);
    this.#onProgress?.();
    if (this.bytes > this.#options.maxBytes) {
      this.#source.pause();
      this.#refuse("large");
      return;
    }
    this.#keep(chunk);
    for (const mirror of this.#mirrors) {
      if (mirror.readableLength > this.#options.mirrorBytes)
        mirror.destroy(new Error("the mirror is too slow"));
      else mirror.push(chunk);
    }
    if (this.#reader?.push(chunk)) this.#armIdle();
    else {
      this.#disarmIdle();
      this.#source.pause();
      this.#onUnread();
    }
  }

  #keep(chunk: Buffer): void {
    if (this.#kept === undefined) return;
    this.#keptBytes += chunk.length;
    if (this.#keptBytes > this.#options.keepBytes || this.#options.buffered?.isFull === true)
      this.#kept = undefined;
    else this.#kept.push(chunk);
  }

  #onEnd(): void {
    this.#disarmIdle();
    this.#ended = true;
    this.#reader?.push(null);
    for (const mirror of this.#mirrors) mirror.push(null);
  }

  #refuse(refusal: BodyRefusal): void {
    this.#onRefused?.(refusal);
    this.close();
  }

  #fail(message: string): void {
    if (this.#ended || this.#failure !== undefined) return;
    this.#disarmIdle();
    const error = new Error(message);
    this.#failure = error;
    const reader = this.#reader;
    this.#reader = undefined;
    reader?.destroy(error);
    for (const mirror of this.#mirrors) mirror.destroy(error);
    this.#count();
  }

  #armIdle(): void {
    if (this.#options.idleMs === 0) return;
    if (this.#idle !== undefined) {
      this.#idle.refresh();
      return;
    }
    this.#idle = setTimeout(() => this.#refuse("slow"), this.#options.idleMs);
  }

  #disarmIdle(): void {
    clearTimeout(this.#idle);
    this.#idle = undefined;
  }
}

/** What a body is read from: a Readable, or something that does the same for less. */
export interface BodySource {
  on(event: "data", handler: (chunk: Buffer) => void): unknown;
  once(event: "end" | "close" | "error", handler: (error: Error) => void): unknown;
  pause(): unknown;
  resume(): unknown;
  /** What has come and waits for its reader. */
  readonly unreadBytes: number;
  /** Called when more of it waits. */
  onUnread(handler: () => void): void;
}

/** `crowded`: it must wait, and the tenant has as much waiting as it may have. */
export type BodyRefusal = "large" | "slow" | "crowded";

export interface RequestBodyOptions {
  readonly maxBytes: number;
  readonly keepBytes: number;
  readonly mirrorBytes: number;
  readonly idleMs: number;
  /** Where waiting bytes are counted, if they are. */
  readonly buffered: BufferedBytes | undefined;
  /** The first read sends 100 Continue to a client that waits for it. */
  readonly onWanted: () => void;
  readonly onData: (bytes: number) => void;
}

class BodyReader extends Readable {
  readonly #pull: () => void;
  readonly #release: () => void;

  constructor(pull: () => void, release: () => void) {
    super();
    this.#pull = pull;
    this.#release = release;
    this.on("error", ignore);
  }

  override _read(): void {
    this.#pull();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#release();
    callback(error);
  }
}

function ignore(): void {}

function none(): number {
  return 0;
}
