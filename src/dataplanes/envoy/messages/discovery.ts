/**
 * The aggregated delta stream: what Envoy asks and what it is told (envoy.service.discovery.v3).
 */

import { type Message, message, nested, nestedEach, read, text, texts } from "../wire/protobuf.ts";

export interface DeltaRequest {
  /** Only in the first message of a stream. */
  readonly node: { readonly id: string; readonly cluster: string } | undefined;
  readonly typeUrl: string;
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
  readonly initialVersions: ReadonlyMap<string, string>;
  readonly nonce: string;
  /** Present: the response with the nonce was refused. */
  readonly error: string | undefined;
}

export function readDeltaRequest(bytes: Uint8Array): DeltaRequest {
  const request = read(bytes);
  const node = request.message(1);
  const error = request.message(7);
  return {
    node: node === undefined ? undefined : { id: node.text(1), cluster: node.text(2) },
    typeUrl: request.text(2),
    subscribe: request.texts(3),
    unsubscribe: request.texts(4),
    initialVersions: new Map(request.messages(5).map((entry) => [entry.text(1), entry.text(2)])),
    nonce: request.text(6),
    error: error === undefined ? undefined : error.text(2),
  };
}

/** A Resource, ready to stand in any response. */
export function resourceMessage(name: string, version: string, content: Message): Message {
  return message(text(1, version), nested(2, content), text(3, name));
}

export interface DeltaResponse {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly resources: readonly Message[];
  readonly removed: readonly string[];
}

export function deltaResponse({ typeUrl, nonce, resources, removed }: DeltaResponse): Message {
  return message(nestedEach(2, resources), text(4, typeUrl), text(5, nonce), texts(6, removed));
}
