/**
 * The aggregated delta stream: what Envoy asks and what it is told (envoy.service.discovery.v3).
 */

import * as proto from "../wire/proto.ts";
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
  const request = read<proto.DeltaDiscoveryRequest>(bytes);
  const node = request.message(proto.DeltaDiscoveryRequest.node);
  const error = request.message(proto.DeltaDiscoveryRequest.errorDetail);
  return {
    node:
      node === undefined
        ? undefined
        : { id: node.text(proto.Node.id), cluster: node.text(proto.Node.cluster) },
    typeUrl: request.text(proto.DeltaDiscoveryRequest.typeUrl),
    subscribe: request.texts(proto.DeltaDiscoveryRequest.resourceNamesSubscribe),
    unsubscribe: request.texts(proto.DeltaDiscoveryRequest.resourceNamesUnsubscribe),
    initialVersions: request.textMap(proto.DeltaDiscoveryRequest.initialResourceVersions),
    nonce: request.text(proto.DeltaDiscoveryRequest.responseNonce),
    error: error === undefined ? undefined : error.text(proto.Status.message),
  };
}

/** A Resource, ready to stand in any response. */
export function resourceMessage(
  name: string,
  version: string,
  content: Message<proto.Any>,
): Message<proto.Resource> {
  return message(
    text(proto.Resource.version, version),
    nested(proto.Resource.resource, content),
    text(proto.Resource.name, name),
  );
}

export interface DeltaResponse {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly resources: readonly Message<proto.Resource>[];
  readonly removed: readonly string[];
}

export function deltaResponse({
  typeUrl,
  nonce,
  resources,
  removed,
}: DeltaResponse): Message<proto.DeltaDiscoveryResponse> {
  return message(
    nestedEach(proto.DeltaDiscoveryResponse.resources, resources),
    text(proto.DeltaDiscoveryResponse.typeUrl, typeUrl),
    text(proto.DeltaDiscoveryResponse.nonce, nonce),
    texts(proto.DeltaDiscoveryResponse.removedResources, removed),
  );
}
