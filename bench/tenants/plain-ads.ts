/** Delta ADS without any order or care: what is set is sent to whoever wants it. For one Envoy. */

import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import {
  type DeltaRequest,
  deltaResponse,
  readDeltaRequest,
} from "../../src/dataplanes/envoy/messages/discovery.ts";
import { frame, GrpcFrameReader } from "../../src/dataplanes/envoy/wire/grpc-frames.ts";
import type * as proto from "../../src/dataplanes/envoy/wire/proto.ts";
import type { Message } from "../../src/dataplanes/envoy/wire/protobuf.ts";

interface Kind {
  readonly resources: Map<string, Message<proto.Resource>>;
  readonly names: Set<string>;
  wildcard: boolean;
  readonly changed: Set<string>;
}

const LARGEST_REQUEST = 64 * 1024 * 1024;

export class PlainAds {
  readonly #server: Http2Server = createServer({ settings: { initialWindowSize: 1024 * 1024 } });
  readonly #sessions: Set<ServerHttp2Session> = new Set();
  readonly #kinds: Map<string, Kind> = new Map();
  readonly refusals: string[] = [];
  #stream: ServerHttp2Stream | undefined;
  #nonce = 0;

  constructor() {
    this.#server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("error", () => {});
    });
    this.#server.on("stream", (stream) => {
      stream.on("error", () => {});
      stream.respond({ ":status": 200, "content-type": "application/grpc" });
      const reader = new GrpcFrameReader(LARGEST_REQUEST);
      this.#stream = stream;
      stream.on("data", (chunk: Buffer) => {
        for (const bytes of reader.push(chunk)) this.#receive(readDeltaRequest(bytes));
      });
    });
  }

  listen(path: string): Promise<void> {
    return new Promise((resolve) => this.#server.listen({ path }, () => resolve()));
  }

  close(): void {
    for (const session of this.#sessions) session.destroy();
    this.#server.close();
  }

  set(url: string, name: string, resource: Message<proto.Resource>): void {
    const kind = this.#kind(url);
    kind.resources.set(name, resource);
    kind.changed.add(name);
  }

  delete(url: string, name: string): void {
    const kind = this.#kind(url);
    kind.resources.delete(name);
    kind.changed.add(name);
  }

  /** In the order in which kinds were first heard of: clusters come before what uses them. */
  flush(): void {
    for (const [url, kind] of this.#kinds) {
      const names = [...kind.changed].filter((name) => kind.wildcard || kind.names.has(name));
      kind.changed.clear();
      if (names.length > 0) this.#send(url, kind, names);
    }
  }

  #receive({ typeUrl, subscribe, unsubscribe, nonce, error }: DeltaRequest): void {
    const kind = this.#kind(typeUrl);
    if (error !== undefined) this.refusals.push(error);
    const first = nonce === "" && subscribe.length === 0 && !kind.wildcard;
    for (const name of subscribe) kind.names.add(name);
    for (const name of unsubscribe) kind.names.delete(name);
    if (first || subscribe.includes("*")) {
      kind.wildcard = true;
      this.#send(typeUrl, kind, [...kind.resources.keys()]);
    } else {
      const known = subscribe.filter((name) => kind.resources.has(name));
      if (known.length > 0) this.#send(typeUrl, kind, known);
    }
  }

  #send(typeUrl: string, kind: Kind, names: readonly string[]): void {
    const resources = names.flatMap((name) => kind.resources.get(name) ?? []);
    const removed = names.filter((name) => !kind.resources.has(name));
    const nonce = String(++this.#nonce);
    this.#stream?.write(frame(deltaResponse({ typeUrl, nonce, resources, removed })));
  }

  #kind(url: string): Kind {
    const kind = this.#kinds.get(url) ?? {
      resources: new Map(),
      names: new Set(),
      wildcard: false,
      changed: new Set(),
    };
    this.#kinds.set(url, kind);
    return kind;
  }
}
