import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { fieldLines } from "../http1/head-writer.ts";
import { writePiece } from "../http1/write-piece.ts";
import type { HeaderFields } from "../message/header-fields.ts";
import type { H1Call } from "./h1-call.ts";

/**
 * `blocked`: the backend does not take what it is sent; `broken`: the body is not what its length
 * says.
 */
export type SendProgress = "flowing" | "blocked" | "sent" | "broken";

/**
 * Sends a request with a body, in chunks where its length is not known, at the pace of the slower
 * side.
 */
export class RequestSender {
  readonly #socket: Socket;
  readonly #call: H1Call;
  readonly #body: Readable;
  readonly #length: number | undefined;
  readonly #onProgress: (progress: SendProgress) => void;
  /** Goes out with the first piece of the body, if that comes at once. */
  #head: string;
  #bytes = 0;
  #stopped = false;

  constructor(socket: Socket, call: H1Call, body: Readable, onProgress: (progress: SendProgress) => void) {
    this.#socket = socket;
    this.#call = call;
    this.#body = body;
    this.#onProgress = onProgress;
    this.#head = call.head;
    const length = call.request.headers.get("content-length");
    this.#length = length === undefined ? undefined : Number(length);
    body.on("data", this.#onData).once("end", this.#onEnd).once("close", this.#onClose);
    setImmediate(() => {
      if (this.#head !== "" && !this.#stopped) this.#socket.write(this.#takeHead(), "latin1");
    });
  }

  /** Nobody needs the rest. */
  stop(): void {
    this.#stopped = true;
    this.#body.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
  }

  onDrain(): void {
    if (this.#stopped) return;
    this.#onProgress("flowing");
    this.#body.resume();
  }

  readonly #onData = (piece: Buffer): void => {
    this.#bytes += piece.length;
    const head = this.#takeHead();
    let room = true;
    if (this.#length === undefined) {
      room = writePiece(this.#socket, `${head}${piece.length.toString(16)}\r\n`, piece, "\r\n");
    } else if (this.#bytes > this.#length) this.#onProgress("broken");
    // A body's pieces are its own: alone they need no copy.
    else room = head === "" ? this.#socket.write(piece) : writePiece(this.#socket, head, piece, "");
    if (room) return;
    this.#body.pause();
    this.#onProgress("blocked");
  };

  readonly #onEnd = (): void => {
    if (this.#length !== undefined && this.#bytes !== this.#length) {
      this.#onProgress("broken");
      return;
    }
    let rest = this.#takeHead();
    if (this.#length === undefined) rest += `0\r\n${trailerLines(this.#call.request.trailers())}\r\n`;
    if (rest !== "") this.#socket.write(rest, "latin1");
    this.stop();
    this.#onProgress("sent");
  };

  /** Before its end: whoever was to read the answer has given up, or tries again elsewhere. */
  readonly #onClose = (): void => {
    this.#call.cancel();
  };

  #takeHead(): string {
    const head = this.#head;
    this.#head = "";
    return head;
  }
}

/** A field that cannot be sent takes the others with it; the message is whole without them. */
function trailerLines(trailers: HeaderFields | undefined): string {
  try {
    return trailers === undefined ? "" : fieldLines(trailers);
  } catch {
    return "";
  }
}
