/** Clusters and their endpoints (envoy.config.cluster.v3, envoy.config.endpoint.v3). */

import { flag, type Message, map, message, nested, nestedEach, text, texts, uint } from "../wire/protobuf.ts";
import { adsSource, any, duration, exactMatcher, inlineBytes, socketAddress, uint32Value } from "./core.ts";

export interface ClusterShape {
  readonly name: string;
  /** Under which its endpoints are asked for. */
  readonly service: string;
  /** `auto` lets TLS negotiate. */
  readonly http: "1" | "2" | "auto";
  readonly connectTimeoutMs: number;
  readonly transportSocket?: Message | undefined;
  readonly weighted?: boolean;
  /** 0: no limit. */
  readonly limits: { readonly connections: number; readonly requests: number };
}

const EDS = 3;
/** Envoy has limits of its own for what is not set: 1,024. */
const UNLIMITED = 1_000_000_000;
/**
 * What is read of a connection before the other side has taken it, to each backend and
 * (listener.ts) from each client.
 */
export const BUFFER_BYTES: number = 256 * 1024;
/**
 * Of HTTP/2; Envoy's own defaults let a backend fill 16 MiB a stream before it has to wait for the
 * client.
 */
export const STREAM_WINDOW_BYTES: number = 256 * 1024;
export const CONNECTION_WINDOW_BYTES: number = 1024 * 1024;

/**
 * Circuit breakers: the only limits that Envoy can hold here. Filter chains are shared by all
 * tenants and know no owner, but a cluster is one backend's. Requests that wait for a connection
 * are limited like those that have one: all of them may wait while the first connections are being
 * made. Of the two priorities no route uses the high one.
 */
function circuitBreakers({ connections, requests }: ClusterShape["limits"]): Message {
  const thresholds = message(
    uint32Value(2, connections || UNLIMITED),
    uint32Value(3, requests || UNLIMITED),
    uint32Value(4, requests || UNLIMITED),
    uint32Value(5, UNLIMITED),
  );
  return message(nested(1, thresholds));
}

export function cluster(shape: ClusterShape): Message {
  return message(
    text(1, shape.name),
    uint(2, EDS),
    nested(
      3,
      message(
        nested(1, adsSource({ waits: true })),
        shape.service === shape.name ? undefined : text(2, shape.service),
      ),
    ),
    duration(4, shape.connectTimeoutMs),
    uint32Value(5, BUFFER_BYTES),
    nested(10, circuitBreakers(shape.limits)),
    nested(24, shape.transportSocket),
    shape.weighted === true ? nested(27, message(nested(3, message()))) : undefined,
    map(36, [["envoy.extensions.upstreams.http.v3.HttpProtocolOptions", httpOptions(shape.http)]]),
  );
}

/**
 * Who closes an idle connection first must be this side: a request that meets a backend's hanging
 * up is lost. Servers do that after 2 seconds (Gunicorn) or 5 (Node, Apache, Uvicorn), unless they
 * are told otherwise, and an idle connection costs as much memory as eight routes. HTTP/2 says
 * goodbye, and its connections are few.
 */
const IDLE_MS: Readonly<Record<ClusterShape["http"], number>> = { "1": 1_500, auto: 1_500, "2": 60_000 };

function httpOptions(http: ClusterShape["http"]): Message {
  // Trailers of a backend reach the client in HTTP/1.1 only when both sides are told so.
  const http1 = message(flag(5, true));
  const http2 = message(uint32Value(3, STREAM_WINDOW_BYTES), uint32Value(4, CONNECTION_WINDOW_BYTES));
  const explicit = http === "2" ? message(nested(2, http2)) : message(nested(1, http1));
  const options = message(
    nested(1, message(duration(1, IDLE_MS[http]))),
    http === "auto" ? nested(5, message(nested(1, http1), nested(2, http2))) : nested(3, explicit),
  );
  return any("envoy.extensions.upstreams.http.v3.HttpProtocolOptions", options);
}

export interface LocalityShape {
  readonly name: string;
  readonly weight?: number;
  readonly endpoints: readonly { readonly address: string; readonly port: number }[];
}

export function loadAssignment(service: string, localities: readonly LocalityShape[]): Message {
  return message(
    text(1, service),
    nestedEach(
      2,
      localities.map(({ name, weight, endpoints }) =>
        message(
          nested(1, message(text(3, name))),
          nestedEach(
            2,
            endpoints.map(({ address, port }) =>
              message(nested(1, message(nested(1, socketAddress(address, port))))),
            ),
          ),
          uint32Value(3, weight),
        ),
      ),
    ),
  );
}

export interface UpstreamTlsShape {
  readonly sni: string;
  readonly names: readonly { readonly type: "dns" | "uri"; readonly value: string }[];
  /** PEM, or the name of a secret that holds them. */
  readonly authorities: { readonly pem: string } | { readonly secret: string };
  readonly clientCertificate?: string | undefined;
  readonly alpn: readonly string[];
}

export function upstreamTls(shape: UpstreamTlsShape): Message {
  const names = shape.names.map(({ type, value }) =>
    message(uint(1, type === "dns" ? 2 : 3), nested(2, exactMatcher(value))),
  );
  const own = message(
    "pem" in shape.authorities ? nested(1, inlineBytes(shape.authorities.pem)) : undefined,
    nestedEach(15, names),
  );
  const validation =
    "pem" in shape.authorities
      ? nested(3, own)
      : nested(8, message(nested(1, own), nested(2, sdsSecret(shape.authorities.secret))));
  const common = message(
    texts(4, shape.alpn),
    shape.clientCertificate === undefined ? undefined : nested(6, sdsSecret(shape.clientCertificate)),
    validation,
  );
  const context = message(nested(1, common), text(2, shape.sni));
  return message(
    text(1, "envoy.transport_sockets.tls"),
    nested(3, any("envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", context)),
  );
}

export function sdsSecret(name: string): Message {
  return message(text(1, name), nested(2, adsSource({ waits: true })));
}
