/** Connections without sockets: what is written is kept, and read again as frames. */

import type { RequestFields } from "../../../../src/dataplanes/embedded/http2/message-fields.ts";
import { ServerSession } from "../../../../src/dataplanes/embedded/http2/server-session.ts";
import type { Stream, StreamHandler } from "../../../../src/dataplanes/embedded/http2/stream.ts";
import type { Wire } from "../../../../src/dataplanes/embedded/http2/wire.ts";
import { defaultLimits, type Limits } from "../../../../src/dataplanes/embedded/limits/options.ts";
import type { HeaderFields } from "../../../../src/dataplanes/embedded/message/header-fields.ts";
import type { SeenFrame } from "../hostile/h2-frames.ts";

export class MemoryWire implements Wire {
  backlog = 0;
  reading = true;
  ended = false;
  destroyed = false;
  #written: Buffer[] = [];

  write(bytes: Buffer, done: () => void): void {
    this.#written.push(Buffer.from(bytes));
    done();
  }

  pauseReading(): void {
    this.reading = false;
  }

  resumeReading(): void {
    this.reading = true;
  }

  end(): void {
    this.ended = true;
  }

  destroy(): void {
    this.destroyed = true;
  }

  get written(): Buffer {
    return Buffer.concat(this.#written);
  }

  /** All frames so far, without the client's preface. */
  frames(skip = 0): readonly SeenFrame[] {
    const bytes = this.written;
    const frames: SeenFrame[] = [];
    for (let at = skip; at + 9 <= bytes.length; ) {
      const length = bytes.readUIntBE(at, 3);
      frames.push({
        type: bytes[at + 3] as number,
        flags: bytes[at + 4] as number,
        stream: bytes.readUInt32BE(at + 5),
        payload: bytes.subarray(at + 9, at + 9 + length),
      });
      at += 9 + length;
    }
    return frames;
  }
}

/** What was said is written when the event loop comes round. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly fields: readonly string[];
  body: string;
  trailers: readonly string[] | undefined;
  /** Undefined while the stream is open. */
  outcome: "done" | number | undefined;
}

/** A server that answers every request, when it is whole, with its body and its trailers. */
export class EchoServer {
  readonly wire: MemoryWire = new MemoryWire();
  readonly requests: SeenRequest[] = [];
  readonly session: ServerSession;
  readonly #streams: Stream[] = [];

  constructor(limits: Partial<Limits> = {}) {
    this.session = new ServerSession(this.wire, { ...defaultLimits, ...limits }, (stream, fields) =>
      this.#serve(stream, fields),
    );
  }

  streamAt(index: number): Stream | undefined {
    return this.#streams[index];
  }

  #serve(stream: Stream, fields: RequestFields): void {
    this.#streams.push(stream);
    const seen: SeenRequest = {
      method: fields.method,
      path: fields.path,
      fields: fields.fields,
      body: "",
      trailers: undefined,
      outcome: undefined,
    };
    this.requests.push(seen);
    const answer = (): void => {
      this.session.sendHeader(stream, [":status", "200"], ["x-length", String(seen.body.length)], false);
      stream.write(Buffer.from(seen.body, "latin1"));
      stream.end();
    };
    const handler: StreamHandler = {
      onData: (chunk) => {
        seen.body += chunk.toString("latin1");
      },
      onEnd: (trailers: HeaderFields | undefined) => {
        seen.trailers = trailers?.flat;
        answer();
      },
      onWritable: () => {},
      onClosed: (code) => {
        seen.outcome = code ?? "done";
      },
    };
    stream.handler = handler;
    if (stream.remoteEnded) answer();
  }
}
