import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { fieldLines } from "../http1/head-writer.ts";
import { writePiece } from "../http1/write-piece.ts";
import type { HeaderFields } from "../message/header-fields.ts";
import type { H1Call } from "./h1-call.ts";

/**
 * `blocked`: the backend does not read the body; `broken`: the body does not have its length.
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
  /** The header, which is written with the first piece of the body if that comes at once. */
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

  /** Stops sending the rest of the body. */
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

  /** Cancels before the end: the client has gone, or the request is retried elsewhere. */
  readonly #onClose = (): void => {
    this.#call.cancel();
  };

  #takeHead(): string {
    const head = this.#head;
    this.#head = "";
    return head;
  }
}

/** Without any trailers if one of them cannot be sent: the message is complete without them. */
function trailerLines(trailers: HeaderFields | undefined): string {
  try {
    return trailers === undefined ? "" : fieldLines(trailers);
  } catch {
    return "";
  }
}
