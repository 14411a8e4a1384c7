import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Endpoint } from "../../../plan/backend.ts";

/** A connection to a backend. */
export interface Link {
  readonly socket: Socket;
  /**
   * Called with every piece of data. The buffer is valid during the call only: copy it to keep it.
   */
  onBytes: (bytes: Buffer) => void;
  /** Hands the connection over to another protocol, whose first bytes are `rest`. */
  toStream(rest: Buffer): Duplex;
}

/**
 * The read buffer of all backend connections. One buffer stays in the processor's cache; otherwise
 * every read would allocate 64 KiB.
 */
const arrivals: Buffer = Buffer.allocUnsafeSlow(64 * 1024);

export class TcpLink implements Link {
  readonly socket: Socket;
  onBytes: (bytes: Buffer) => void = ignore;

  constructor({ address: host, port }: Endpoint) {
    const callback = (length: number): boolean => {
      this.onBytes(arrivals.subarray(0, length));
      return true;
    };
    this.socket = connect({ host, port, onread: { buffer: arrivals, callback } });
  }

  toStream(rest: Buffer): Duplex {
    return new LinkStream(this, rest);
  }
}

/** A TLS socket has its own buffers for decrypted data. */
export class TlsLink implements Link {
  readonly socket: Socket;
  onBytes: (bytes: Buffer) => void = ignore;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", this.#onData);
  }

  toStream(rest: Buffer): Duplex {
    this.socket.off("data", this.#onData).pause();
    if (rest.length > 0) this.socket.unshift(rest);
    return this.socket;
  }

  readonly #onData = (bytes: Buffer): void => this.onBytes(bytes);
}

/**
 * A stream over a socket that reads into the shared buffer; it copies the data. Data that the
 * backend sent before it closed can still be read. Data that is written afterwards is lost.
 */
class LinkStream extends Duplex {
  readonly #socket: Socket;
  #saidAll = false;
  #onRoom: (() => void) | undefined;

  constructor(link: Link, rest: Buffer) {
    super();
    const { socket } = link;
    this.#socket = socket;
    if (rest.length > 0) this.push(Buffer.from(rest));
    link.onBytes = (bytes) => {
      if (!this.push(Buffer.from(bytes))) socket.pause();
    };
    socket.on("drain", () => this.#proceed());
    socket.on("end", () => {
      this.#saidAll = true;
      this.push(null);
    });
    socket.on("close", () => {
      this.#proceed();
      if (!this.#saidAll) this.destroy();
    });
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (!this.#socket.writable || this.#socket.write(chunk)) done();
    else this.#onRoom = done;
  }

  override _final(done: () => void): void {
    this.#socket.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  #proceed(): void {
    const done = this.#onRoom;
    this.#onRoom = undefined;
    done?.();
  }
}

function ignore(): void {}
