import type { Duplex } from "node:stream";
import type { Connection } from "../limits/connections.ts";
import type { HeaderFields } from "./header-fields.ts";
import type { BodySource } from "./request-body.ts";

/** One request and the way back to its client, the same for HTTP/1.1 and HTTP/2. */
export interface Exchange {
  readonly connection: Connection;
  readonly protocol: "HTTP/1.0" | "HTTP/1.1" | "HTTP/2";
  readonly method: string;
  /** As the client wrote it: path and query, or a whole URL. */
  readonly target: string;
  /** Undefined when the client gave none or contradicted itself. */
  readonly authority: string | undefined;
  /** Lower-case names, without Host and pseudo headers. */
  readonly headers: HeaderFields;
  /** Undefined when the request has none. */
  readonly body: BodySource | undefined;
  /** The client asks to go on with the WebSocket protocol. */
  readonly websocket: boolean;
  /** Why the message must not be served, as its own framing or header says. */
  readonly invalid: string | undefined;

  /** The status that was sent, 0 before. */
  readonly status: number;
  readonly bytesSent: number;

  /** Lets a client that waits for it send its body. */
  continue(): void;
  /**
   * Passes on an interim response (1xx). Does nothing for a client that does not support it or does
   * not read.
   */
  inform(status: number, headers: HeaderFields): void;
  /** Fields after the body; complete only when the body has ended. */
  trailers(): HeaderFields | undefined;
  /**
   * Before an answer with a body and announced trailers: whether these can follow, for which its
   * header is changed.
   */
  expectTrailers(headers: HeaderFields): boolean;
  /**
   * Closes the connection after the response, for requests that are malformed or too large: the
   * next bytes may not be a request.
   */
  closeAfterAnswer(): void;
  answer(status: number, headers: HeaderFields, hasBody: boolean): void;
  /** The chunk may be overwritten afterwards. False asks to wait for `onDrain`. */
  write(chunk: Buffer): boolean;
  onDrain(handler: () => void): void;
  /** Bytes of the answer that the client has not taken yet, after a `write` that asked to wait. */
  readonly unsentBytes: number;
  end(trailers?: HeaderFields): void;
  /**
   * Aborts an incomplete response, so that the client sees an error. `code` is that of the
   * backend's HTTP/2 stream, if it had one.
   */
  abort(code?: number): void;
  /** Joins the client with the stream of a backend that agreed to switch protocols. */
  switchProtocols(headers: HeaderFields, to: SwitchedStream): void;
  /** Called once, when everything is sent or the client has gone. */
  onClose(handler: () => void): void;
}

/** The stream of a backend that has switched protocols. */
export interface SwitchedStream {
  readonly backend: Duplex;
  /** How long both sides may be silent; 0: no limit. */
  readonly idleMs: number;
  /** How many bytes wait in memory for a side that does not read. */
  readonly onWaiting: (receiver: "client" | "backend", bytes: number) => void;
}
