import type { Socket } from "node:net";
import type { Sockets } from "../../support/sockets.ts";
import { frame, frameType, preface, u32 } from "../hostile/h2-frames.ts";

/** A setting of a SETTINGS frame. */
export function setting(id: number, value: number): Buffer {
  return Buffer.concat([Buffer.from([0, id]), u32(value)]);
}

export interface RawBackend {
  readonly port: number;
  /** Connections that were opened to it, since the beginning. */
  readonly connections: number;
}

/**
 * A backend that speaks frames: it greets with these settings and is asked what to say to every
 * request.
 */
export async function rawBackend(
  sockets: Sockets,
  options: {
    readonly settings?: Buffer;
    readonly onRequest?: (stream: number, socket: Socket) => void;
    readonly onGreeted?: (socket: Socket) => void;
  },
): Promise<RawBackend> {
  let connections = 0;
  const port = await sockets.serve((socket) => {
    connections++;
    let bytes = Buffer.alloc(0);
    let at = preface.length;
    socket.write(frame(frameType.settings, 0, 0, options.settings ?? Buffer.alloc(0)));
    options.onGreeted?.(socket);
    socket.on("data", (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (at + 9 <= bytes.length && at + 9 + bytes.readUIntBE(at, 3) <= bytes.length) {
        const type = bytes[at + 3];
        const stream = bytes.readUInt32BE(at + 5);
        at += 9 + bytes.readUIntBE(at, 3);
        if (type === frameType.headers) options.onRequest?.(stream, socket);
      }
    });
  });
  return {
    port,
    get connections() {
      return connections;
    },
  };
}
