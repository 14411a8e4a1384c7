import type { Socket } from "node:net";

/** The connection as the protocol sees it: a socket, or a double in tests. */
export interface Wire {
  /** Bytes that were written and not sent yet. */
  readonly backlog: number;
  /** `done` is called when the bytes may be overwritten. */
  write(bytes: Buffer, done: () => void): void;
  pauseReading(): void;
  resumeReading(): void;
  /** Sends what was written, then closes. */
  end(): void;
  destroy(): void;
}

export interface WireReader {
  /** The chunk may be overwritten afterwards. */
  read(chunk: Buffer): void;
  /** Everything that was written has been sent. */
  onWritable(): void;
  /** The connection is lost. */
  onLost(): void;
}

/** How long a closing connection waits for the peer to read the last bytes. */
const LINGER_MS = 1_000;

/** A TCP or TLS socket. */
export class SocketWire implements Wire {
  readonly #socket: Socket;
  #ended = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Data is read from `lender`, if there is one, or else from the socket. */
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
   * Reads on and drops the data: closing with unread bytes would reset the connection, and the peer
   * could lose the last bytes.
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

/** Of all chunks together. */
export function lengthOf(chunks: readonly Buffer[] | undefined): number {
  return chunks?.reduce((sum, { length }) => sum + length, 0) ?? 0;
}
