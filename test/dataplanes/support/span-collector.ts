import { createServer, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";

/** Speaks OTLP over gRPC: keeps what it is sent, and thanks for it with an empty message. */
export class SpanCollector {
  readonly #received: Buffer[] = [];
  readonly paths: Set<string> = new Set();
  readonly #server: Http2Server = createServer();

  async open(): Promise<string> {
    this.#server.on("stream", (stream, headers) => {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        this.paths.add(String(headers[":path"]));
        this.#received.push(Buffer.concat(chunks));
        stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
        stream.end(Buffer.alloc(5));
      });
      stream.on("error", () => {});
    });
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Every byte of every message. */
  get all(): Buffer {
    return Buffer.concat(this.#received);
  }

  close(): void {
    this.#server.close();
  }
}
