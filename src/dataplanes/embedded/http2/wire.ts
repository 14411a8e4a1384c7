import type { Socket } from "node:net";

/** What a connection is made of, seen from the protocol. */
export interface Wire {
  /** Bytes that were written and have not gone yet. */
  readonly backlog: number;
  /** `done` is called when the bytes may be overwritten. */
  write(bytes: Buffer, done: () => void): void;
  pauseReading(): void;
  resumeReading(): void;
  /** Says what is still to be said, then closes. */
  end(): void;
  destroy(): void;
}

export interface WireReader {
  /** The chunk may be overwritten afterwards. */
  read(chunk: Buffer): void;
  /** What was written has gone. */
  onWritable(): void;
  /** Nothing comes any more, and nothing arrives. */
  onLost(): void;
}

/** A client or backend that has said its last word is given this long to read ours. */
const LINGER_MS = 1_000;

/** A TCP or TLS socket. */
export class SocketWire implements Wire {
  readonly #socket: Socket;
  #ended = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** What comes is heard from `lender`, if there is one, or from the socket itself. */
  attach(reader: WireReader, lender?: { onBytes: (bytes: Buffer) => void }): void {
    const socket = this.#socket;
    const read = (chunk: Buffer): void => reader.read(chunk);
    if (lender === undefined) socket.on("data", read);
    else lender.onBytes = read;
    socket.on("drain", () => reader.onWritable());
    socket.on("error", ignore);
    socket.once("end", () => {
      reader.onLost();
      socket.destroy();
    });
    socket.once("close", () => reader.onLost());
  }

  get backlog(): number {
    return this.#socket.writableLength;
  }

  write(bytes: Buffer, done: () => void): void {
    if (this.#ended || this.#socket.destroyed) done();
    else this.#socket.write(bytes, done);
  }

  pauseReading(): void {
    this.#socket.pause();
  }

  resumeReading(): void {
    this.#socket.resume();
  }

  /**
   * The socket goes on reading, and dropping: closing over unread bytes would take our last words
   * away from the peer.
   */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const socket = this.#socket;
    const limit = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once("close", () => clearTimeout(limit));
    socket.end();
    socket.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

function ignore(): void {}
