/**
 * The layout that others use, for comparison: a filter chain per hostname, with its certificate and
 * a route configuration of its own. A new tenant is a new version of the listener; everything else
 * is as small as it goes.
 */

import type { XdsResource } from "../../src/dataplanes/envoy/ads/resource.ts";
import { backendCluster, backendEndpoints } from "../../src/dataplanes/envoy/compile/backend-cluster.ts";
import { certificateSecretName, endpointsName } from "../../src/dataplanes/envoy/compile/names.ts";
import { ScopeCompression } from "../../src/dataplanes/envoy/compile/routes/compression.ts";
import { ScopeGuards } from "../../src/dataplanes/envoy/compile/routes/guards.ts";
import { ruleRoutes } from "../../src/dataplanes/envoy/compile/routes/rule-routes.ts";
import { adsSource, any, typeUrl } from "../../src/dataplanes/envoy/messages/core.ts";
import { resourceMessage } from "../../src/dataplanes/envoy/messages/discovery.ts";
import { routerFilter } from "../../src/dataplanes/envoy/messages/http-filters.ts";
import { downstreamTls, filterChain, tcpListener } from "../../src/dataplanes/envoy/messages/listener.ts";
import { certificateSecret, tlsCertificate } from "../../src/dataplanes/envoy/messages/secret.ts";
import * as proto from "../../src/dataplanes/envoy/wire/proto.ts";
import {
  type Message,
  message,
  nested,
  nestedEach,
  text,
  texts,
} from "../../src/dataplanes/envoy/wire/protobuf.ts";
import type { HostItem, ListenerItem, PlanDelta, PlanItem, PortItem } from "../../src/plan/plan.ts";
import { DEFAULT_TENANT_LIMITS } from "../../src/plan/tenant-limits.ts";
import type { PlainAds } from "./plain-ads.ts";

const TYPES = {
  cluster: "envoy.config.cluster.v3.Cluster",
  endpoints: "envoy.config.endpoint.v3.ClusterLoadAssignment",
  secret: "envoy.extensions.transport_sockets.tls.v3.Secret",
  routes: "envoy.config.route.v3.RouteConfiguration",
  listener: "envoy.config.listener.v3.Listener",
} as const;

export class ChainLayout {
  readonly #ads: PlainAds;
  readonly #port: number;
  readonly #items: Map<string, PlanItem> = new Map();
  /** Encoded once each, in the order of their coming. */
  readonly #chains: Map<string, Message<proto.FilterChain>> = new Map();
  #version = 0;

  constructor(ads: PlainAds, port: number) {
    this.#ads = ads;
    this.#port = port;
  }

  apply({ upserts, removes }: PlanDelta): void {
    for (const id of removes) this.#remove(id);
    for (const item of upserts) this.#items.set(item.id, item);
    for (const item of upserts) this.#upsert(item);
    const chained = [
      ...upserts,
      ...removes.map((id) => ({ id, type: id.startsWith("listener:") ? "listener" : "" })),
    ];
    if (chained.some(({ type }) => type === "listener")) this.#sendListener();
    this.#ads.flush();
  }

  #upsert(item: PlanItem): void {
    switch (item.type) {
      case "backend":
        this.#send(
          TYPES.cluster,
          endpointsName(item.gateway, item.id),
          backendCluster(
            item,
            { variant: "plain", isRetried: false },
            { clientCertificate: undefined, limits: DEFAULT_TENANT_LIMITS },
          ),
        );
        this.#send(TYPES.endpoints, endpointsName(item.gateway, item.id), backendEndpoints(item));
        return;
      case "certificate": {
        const name = certificateSecretName(item.id);
        const secret = certificateSecret(name, tlsCertificate(item.chain, item.key.reveal()));
        this.#send(TYPES.secret, name, secret);
        return;
      }
      case "listener":
        if (item.protocol === "HTTPS") this.#chains.set(item.id, chainOf(item));
        return;
      case "host":
        this.#send(TYPES.routes, item.listener, this.#routes(item));
        return;
      default:
        return;
    }
  }

  #remove(id: string): void {
    const item = this.#items.get(id);
    this.#items.delete(id);
    this.#chains.delete(id);
    if (item?.type === "certificate") this.#ads.delete(typeUrl(TYPES.secret), certificateSecretName(id));
    else if (item?.type === "host") this.#ads.delete(typeUrl(TYPES.routes), item.listener);
    else if (item?.type === "backend") {
      const name = endpointsName(item.gateway, id);
      this.#ads.delete(typeUrl(TYPES.cluster), name);
      this.#ads.delete(typeUrl(TYPES.endpoints), name);
    }
  }

  #routes({ listener, hostname, rules }: HostItem): Message<proto.RouteConfiguration> {
    const { port } = this.#items.get(listener) as ListenerItem;
    const routes = rules.flatMap((rule) =>
      ruleRoutes(rule, {
        port: this.#items.get(port) as PortItem,
        scope: hostname,
        hostname,
        listener,
        backend: (id) => {
          const item = this.#items.get(id);
          return item?.type === "backend" ? item : undefined;
        },
        uses: () => {},
        dependsOn: () => {},
        guards: new ScopeGuards([], () => undefined),
        compression: new ScopeCompression([]),
      }),
    );
    const host = message(
      text(proto.VirtualHost.name, listener),
      texts(proto.VirtualHost.domains, ["*"]),
      nestedEach(proto.VirtualHost.routes, routes),
    );
    return message(
      text(proto.RouteConfiguration.name, listener),
      nested(proto.RouteConfiguration.virtualHosts, host),
    );
  }

  #sendListener(): void {
    const content = tcpListener({
      name: "https",
      address: "127.0.0.1",
      port: this.#port,
      chains: [...this.#chains.values()],
      inspectsTls: true,
    });
    this.#send(TYPES.listener, "https", content);
  }

  #send<Type extends string>(type: Type, name: string, content: Message<Type> | XdsResource): void {
    const encoded =
      content instanceof Uint8Array
        ? resourceMessage(name, String(++this.#version), any(type, content))
        : content.encoded;
    this.#ads.set(typeUrl(type), name, encoded);
  }
}

function chainOf({ id, hostname, tls }: ListenerItem): Message<proto.FilterChain> {
  const manager = message(
    text(proto.HttpConnectionManager.statPrefix, "https"),
    nested(
      proto.HttpConnectionManager.rds,
      message(nested(proto.Rds.configSource, adsSource()), text(proto.Rds.routeConfigName, id)),
    ),
    nested(proto.HttpConnectionManager.httpFilters, routerFilter()),
  );
  return filterChain({
    name: id,
    serverNames: [hostname],
    tls: true,
    transportSocket: downstreamTls({
      certificates: { secrets: (tls?.certificates ?? []).map(certificateSecretName) },
      alpn: ["h2", "http/1.1"],
    }),
    filter: message(
      text(proto.Filter.name, "envoy.filters.network.http_connection_manager"),
      nested(
        proto.Filter.typedConfig,
        any("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", manager),
      ),
    ),
  });
}
