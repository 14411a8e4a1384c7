/**
 * What happens to every HTTP request of a port, whosever it is. Nothing here depends on listeners,
 * hosts or rules: the same filters stand in every port, now and later, and tenants only add to them
 * in their own scopes.
 */

import type { ClientValidation } from "../../../plan/client-validation.ts";
import type { PortItem } from "../../../plan/plan.ts";
import { forgedFieldPattern } from "../../forged-fields.ts";
import { authenticationFilter } from "../messages/authorization.ts";
import { bodyCountFilter } from "../messages/body-count.ts";
import { compressionFilter } from "../messages/compression/compressors.ts";
import { admissionFilter, limitFilter } from "../messages/guards.ts";
import {
  corsFilter,
  type HeaderMutation,
  mutationFilter,
  mutationFilterFor,
  type RefusalShape,
  refusalFilter,
  routerFilter,
  scriptFilter,
} from "../messages/http-filters.ts";
import { type HttpShape, httpManager } from "../messages/http-manager.ts";
import { type KeptField, keepingFilter } from "../messages/kept-fields.ts";
import { headerMatch } from "../messages/route.ts";
import { sessionFilter } from "../messages/sessions.ts";
import type * as proto from "../wire/proto.ts";
import type { Message } from "../wire/protobuf.ts";
import type { Trust } from "./client-address.ts";
import { cleanRequestTrailers, cleanResponseTrailers } from "./field-cleaning.ts";
import {
  ADDRESS_FILTER,
  AGENT_CLUSTER,
  AUTHENTICATION_FILTER,
  BODY_FILTER,
  CLEANING_FILTER,
  CLIENTS_HEADER,
  CODING_HEADER,
  COMPRESSION_FILTER,
  LIMIT_FILTER,
  NORMAL_FILTER,
  RETRY_ON_HEADER,
  SCOPE_HEADER,
  SESSION_FILTER,
  SNI_HEADER,
  TENANCY_FILTER,
} from "./names.ts";
import { normalScript } from "./tenancy-script.ts";

/** Fields of one connection that Envoy would pass on. */
const ownHop = "proxy-authenticate|proxy-authorization";

const PORT = "6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[0-5][0-9]{4}|[0-9]{1,4}";

/**
 * A host with or without a port: no user information, no list, nothing that could be read as a
 * path.
 */
const authorityPattern: string = `(?:[A-Za-z0-9._~-]+|\\[[0-9A-Fa-f:.]+\\])(?::(?:${PORT}))?`;

/**
 * Methods of requests that may be sent a second time, for nothing depends on how often (RFC 9110,
 * 9.2.1).
 */
const safeMethods: readonly string[] = ["GET", "HEAD", "OPTIONS"];

/**
 * RFC 8441 has no key, the HTTP/1.1 handshake with the backend needs one. Whoever has asked over
 * HTTP/1.1 has sent its own.
 */
const WEBSOCKET_KEY = "bWVyZ2V3YXkgb3ZlciBoMg==";

const refusals: readonly RefusalShape[] = [
  {
    name: "authority",
    header: headerMatch({ name: ":authority", type: "regex", value: authorityPattern, invert: true }),
  },
  // HTTP/1.0 has no codings: whoever passes one on may have read the body otherwise (RFC 9112,
  // 6.1).
  {
    name: "coding",
    header: headerMatch({ name: CODING_HEADER, type: "regex", value: ".+" }),
    protocol: "HTTP/1.0",
  },
];

const beforeRouting: readonly Message<proto.HttpFilter>[] = [
  refusalFilter("mergeway.malformed", refusals),
  scriptFilter(NORMAL_FILTER, normalScript),
  scriptFilter(TENANCY_FILTER),
  // Before CORS, which answers preflights.
  admissionFilter(ADDRESS_FILTER),
  limitFilter(LIMIT_FILTER),
  corsFilter(),
  // Behind CORS: preflights carry no credentials.
  authenticationFilter(AUTHENTICATION_FILTER, AGENT_CLUSTER),
];

/** Behind the scripts, which find the route whose own mutations it makes. */
const cleaning: Message<proto.HttpFilter> = mutationFilter(CLEANING_FILTER, {
  request: [{ removed: CODING_HEADER }],
  requestTrailers: [cleanRequestTrailers],
  responseTrailers: [cleanResponseTrailers],
});

/**
 * A backend may close a connection at the moment of its reuse. A policy of retries has no say for
 * single methods that would leave the others their next endpoint, but the router asks this field,
 * too.
 */
const secondTry: Message<proto.HttpFilter> = mutationFilterFor(safeMethods, "mergeway.second-try", {
  request: [{ name: RETRY_ON_HEADER, value: "reset", mode: "overwrite" }],
});

const websocketKey: Message<proto.HttpFilter> = mutationFilter("mergeway.websocket-key", {
  request: [{ name: "sec-websocket-key", value: WEBSOCKET_KEY, mode: "add-if-absent" }],
});

/** Not for WebSockets, which have no body. */
const bodyCount: Message<proto.HttpFilter> = bodyCountFilter(BODY_FILTER, AGENT_CLUSTER);

/** Not for WebSockets, which have no body. */
const compression: Message<proto.HttpFilter> = compressionFilter(COMPRESSION_FILTER);

const sessions: Message<proto.HttpFilter> = sessionFilter(SESSION_FILTER);

/** What all ports have in common. */
export const commonHttp: Pick<HttpShape, "scopeHeader" | "filters" | "upgradeFilters" | "badRequests"> = {
  scopeHeader: SCOPE_HEADER,
  filters: [...beforeRouting, bodyCount, compression, cleaning, secondTry, sessions, routerFilter()],
  upgradeFilters: [...beforeRouting, cleaning, websocketKey, sessions, routerFilter()],
  badRequests: refusals.map(({ header }) => header),
};

export interface PortTracing {
  readonly manager: Message<proto.Tracing>;
  /** Whether traces of clients go on; else what they say of them is removed. */
  readonly continuesClients: boolean;
}

/** The client's own context is one of the two. */
function keptFields({ isRecorded, tracing }: Omit<HttpOptions, "trustedHops">): readonly KeptField[] {
  if (isRecorded !== true) return [];
  return tracing?.continuesClients === true ? [":path", "traceparent"] : [":path"];
}

export interface HttpOptions {
  /** For ports that do not say themselves how clients are found. */
  readonly trustedHops: number;
  /** Absent: none are written. */
  readonly accessLogs?: (port: PortItem) => readonly Message<proto.AccessLog>[];
  /** Whether they have records, which tell of what clients have sent. */
  readonly isRecorded?: boolean;
  /** Of connections to ports with TLS; absent: none is written. */
  readonly handshakeLog?: Message<proto.AccessLog> | undefined;
  /** Absent: there are no traces. */
  readonly tracing?: PortTracing | undefined;
}

/** What a filter chain asks of its clients, for its requests. */
export interface ChainClients {
  readonly validation?: ClientValidation | undefined;
  /** For the header that scopes look at; absent: nothing is asked that a client must meet. */
  readonly mark?: string | undefined;
}

export function portHttpManager(
  port: PortItem,
  trust: Trust,
  options: Omit<HttpOptions, "trustedHops"> & ChainClients,
): Message<proto.Filter> {
  const { accessLogs, tracing, validation, mark } = options;
  const kept = keptFields(options);
  const keeping = kept.length === 0 ? [] : [keepingFilter(kept)];
  return httpManager({
    ...commonHttp,
    filters: [...keeping, ...commonHttp.filters],
    upgradeFilters: [...keeping, ...commonHttp.upgradeFilters],
    statPrefix: port.protocol === "tls" ? "https" : "http",
    early: [
      ...earlyMutations(port, trust.type !== "nobody", mark),
      ...(tracing?.continuesClients === false ? withoutContext : []),
    ],
    clientCertificate: validation?.mode === "AllowValidOnly" ? validation.forward : undefined,
    trust,
    limits: port.clientLimits,
    accessLogs: accessLogs?.(port) ?? [],
    tracing: tracing?.manager,
  });
}

/** W3C Trace Context. */
const withoutContext: readonly HeaderMutation[] = [{ removed: "traceparent" }, { removed: "tracestate" }];

function earlyMutations(
  port: PortItem,
  trusted: boolean,
  mark: string | undefined,
): readonly HeaderMutation[] {
  // So early it is the peer's, or what the PROXY protocol says.
  const peer = "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%";
  const unlessTrusted = trusted ? "add-if-absent" : "overwrite";
  const secure = port.protocol === "tls";
  return [
    {
      removedLike: [
        ...[forgedFieldPattern(trusted), ownHop, CODING_HEADER],
        ...(secure ? [] : [SNI_HEADER, CLIENTS_HEADER]),
      ].join("|"),
    },
    { name: CODING_HEADER, value: "%REQ(TRANSFER-ENCODING)%", mode: "overwrite", unlessEmpty: true },
    { name: SCOPE_HEADER, value: `${port.port}/%REQ(:AUTHORITY)%`, mode: "overwrite" },
    ...(secure
      ? ([
          { name: SNI_HEADER, value: `${port.port}/%REQUESTED_SERVER_NAME%`, mode: "overwrite" },
          // Always there: a header that is missing is never unequal to Envoy.
          { name: CLIENTS_HEADER, value: mark ?? "none", mode: "overwrite" },
        ] as const)
      : []),
    { name: "x-forwarded-for", value: peer, mode: trusted ? "append" : "overwrite" },
    { name: "x-forwarded-host", value: "%REQ(:AUTHORITY)%", mode: unlessTrusted },
    { name: "x-forwarded-port", value: String(port.port), mode: unlessTrusted },
  ];
}
