import { digest } from "../../../digest/digest.ts";
import { any, typeUrl } from "../messages/core.ts";
import { resourceMessage } from "../messages/discovery.ts";
import type { Message } from "../wire/protobuf.ts";

/** The types of resources in the order in which they are sent: none before what it refers to. */
export const kinds = ["secret", "cluster", "endpoints", "scope", "extension", "listener"] as const;
export type Kind = (typeof kinds)[number];

const types: Readonly<Record<Kind, string>> = {
  secret: "envoy.extensions.transport_sockets.tls.v3.Secret",
  cluster: "envoy.config.cluster.v3.Cluster",
  endpoints: "envoy.config.endpoint.v3.ClusterLoadAssignment",
  scope: "envoy.config.route.v3.ScopedRouteConfiguration",
  extension: "envoy.config.core.v3.TypedExtensionConfig",
  listener: "envoy.config.listener.v3.Listener",
};

const kindOfUrl: ReadonlyMap<string, Kind> = new Map(kinds.map((kind) => [typeUrl(types[kind]), kind]));

export function kindOf(url: string): Kind | undefined {
  return kindOfUrl.get(url);
}

export function urlOf(kind: Kind): string {
  return typeUrl(types[kind]);
}

/** One xDS resource, encoded once for all streams. */
export interface Resource {
  readonly kind: Kind;
  readonly name: string;
  /**
   * A hash of the content. All controllers compute the same version, so an Envoy that connects to
   * another controller does not receive the resource again.
   */
  readonly version: string;
  readonly encoded: Message;
  /** What Envoy must have before it can use this resource. */
  readonly needs: readonly Reference[];
  /** What Envoy waits for again when it gets another version of this resource. */
  readonly refreshes?: Reference;
}

export interface Reference {
  readonly kind: Kind;
  readonly name: string;
}

/** All resources of a kind, as a subscription and as a dependency. */
export const ALL = "*";

export function resource(
  kind: Kind,
  name: string,
  content: Message,
  relations: Partial<Pick<Resource, "needs" | "refreshes">> = {},
): Resource {
  const version = digest(content, "base64url", 16);
  const encoded = unpooled(resourceMessage(name, version, any(types[kind], content)));
  return { kind, name, version, encoded, needs: [], ...relations };
}

/**
 * Small buffers are slices of pools of 64 KiB. One slice keeps its whole pool in memory: at 2,500
 * tenants that was 113 MB for 9 MB of resources. So each encoded resource gets a buffer of its own.
 */
function unpooled(bytes: Message): Message {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}
