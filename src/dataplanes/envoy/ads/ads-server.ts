/**
 * The ADS server that Envoys connect to: gRPC over HTTP/2, with the delta variant of ADS as its
 * own method. Each stream belongs to one Gateway and sees nothing of another. Other methods that
 * Envoys call can be served beside it.
 */

import type { Http2Server, IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { createServer } from "node:http2";
import type { ListenOptions } from "node:net";
import { type DeltaRequest, readDeltaRequest } from "../messages/discovery.ts";
import { frame, GrpcFrameReader } from "../wire/grpc-frames.ts";
import { AdsStream, type Answer, type StreamLimits } from "./ads-stream.ts";
import type { ResourceStore } from "./resource-store.ts";

const METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const LARGEST_REQUEST = 64 * 1024 * 1024;
const SESSION_MEGABYTES = 1024;
const UNAUTHENTICATED = 16;
const UNIMPLEMENTED = 12;
const INVALID_ARGUMENT = 3;
const UNAVAILABLE = 14;

export interface EnvoyNode {
  readonly id: string;
  /** The Gateway that the Envoy claims to belong to. */
  readonly cluster: string;
}

/** One connected Envoy. */
export interface EnvoyReplica {
  readonly node: EnvoyNode;
  readonly gateway: string;
  readonly stream: AdsStream;
}

export interface AdsServerOptions {
  /** The Gateway that an Envoy may serve; undefined: none, and the stream ends. */
  readonly gatewayOf: (node: EnvoyNode, session: ServerHttp2Session | undefined) => string | undefined;
  readonly storeOf: (gateway: string) => ResourceStore;
  readonly limits: StreamLimits;
  readonly onAnswer: (replica: EnvoyReplica, answer: Answer) => void;
  readonly onLeft: (replica: EnvoyReplica) => void;
  /** Other methods that Envoys call, by their paths. */
  readonly methods?: ReadonlyMap<string, (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void>;
}

export class AdsServer {
  readonly #options: AdsServerOptions;
  readonly #server: Http2Server;
  readonly #sessions: Set<ServerHttp2Session> = new Set();
  readonly #replicas: Set<EnvoyReplica> = new Set();

  constructor(options: AdsServerOptions) {
    this.#options = options;
    this.#server = createServer({
      settings: { initialWindowSize: 1024 * 1024 },
      // The first response for scopes has all of them.
      maxSessionMemory: SESSION_MEGABYTES,
    });
    this.#server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session)).on("error", () => {});
    });
    this.#server.on("stream", (stream, headers) => this.#serve(stream, headers));
  }

  get replicas(): Iterable<EnvoyReplica> {
    return this.#replicas;
  }

  listen(where: ListenOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(where, () => resolve());
    });
  }

  /** Closes every connection. Envoys reconnect on their own. */
  disconnect(): void {
    for (const session of this.#sessions) session.destroy();
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.disconnect();
    });
  }

  #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on("error", () => {});
    const path = headers[":path"] ?? "";
    const other = this.#options.methods?.get(path);
    if (other !== undefined) {
      other(stream, headers);
      return;
    }
    if (path !== METHOD) {
      refuse(stream, UNIMPLEMENTED, "there is no such method");
      return;
    }
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    const reader = new GrpcFrameReader(LARGEST_REQUEST);
    let replica: EnvoyReplica | undefined;
    let ending: Ending = { status: UNAVAILABLE, text: "the controller is going away" };
    stream.on("wantTrailers", () => {
      if (!stream.destroyed)
        stream.sendTrailers({ "grpc-status": ending.status, "grpc-message": ending.text });
    });
    const end = (status: number, text: string): void => {
      ending = { status, text };
      stream.end();
    };
    stream.on("data", (chunk: Buffer) => {
      try {
        for (const bytes of reader.push(chunk)) {
          const request = readDeltaRequest(bytes);
          replica ??= this.#admit(stream, request);
          if (replica === undefined) {
            end(UNAUTHENTICATED, "no Gateway is for this client");
            return;
          }
          replica.stream.receive(request);
        }
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        end(INVALID_ARGUMENT, error.message);
      }
    });
    stream.on("drain", () => replica?.stream.drained());
    stream.on("end", () => stream.end());
    stream.on("close", () => {
      if (replica === undefined) return;
      replica.stream.close();
      this.#replicas.delete(replica);
      this.#options.onLeft(replica);
    });
  }

  #admit(stream: ServerHttp2Stream, { node }: DeltaRequest): EnvoyReplica | undefined {
    const gateway =
      node === undefined ? undefined : this.#options.gatewayOf(node, stream.session as ServerHttp2Session);
    if (node === undefined || gateway === undefined) return undefined;
    const replica: EnvoyReplica = {
      node,
      gateway,
      stream: new AdsStream({
        store: this.#options.storeOf(gateway),
        limits: this.#options.limits,
        write: (message) => (stream.writable ? stream.write(frame(message)) : false),
        onAnswer: (answer) => this.#options.onAnswer(replica, answer),
      }),
    };
    this.#replicas.add(replica);
    return replica;
  }
}

interface Ending {
  readonly status: number;
  readonly text: string;
}

function refuse(stream: ServerHttp2Stream, status: number, text: string): void {
  stream.respond(
    { ":status": 200, "content-type": "application/grpc", "grpc-status": status, "grpc-message": text },
    { endStream: true },
  );
}
