/** The HTTP connection manager (envoy.extensions.filters.network.http_connection_manager.v3). */

import {
  explicitUint,
  type Field,
  flag,
  type Message,
  message,
  nested,
  nestedEach,
  text,
  texts,
  uint,
} from "../wire/protobuf.ts";
import { CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES } from "./cluster.ts";
import {
  adsSource,
  any,
  boolValue,
  type Cidr,
  cidrRange,
  duration,
  extension,
  headerOption,
  headerOptions,
  inlineString,
  uint32Value,
} from "./core.ts";
import { ADDRESS_DENIED } from "./guards.ts";
import { type HeaderMutation, headerMutation } from "./http-filters.ts";

export interface HttpShape {
  readonly statPrefix: string;
  /** Done before anything else reads the request. */
  readonly early: readonly HeaderMutation[];
  readonly scopeHeader: string;
  /** In order of their running; the router is the last. */
  readonly filters: readonly Message[];
  /** Instead of them, for WebSockets. */
  readonly upgradeFilters: readonly Message[];
  /** Header matches of requests whose refusal is a 400. */
  readonly badRequests: readonly Message[];
  /** Whose X-Forwarded-For counts. By then the peer itself has been added to it. */
  readonly trust:
    | { readonly type: "nobody" }
    | { readonly type: "hops"; readonly hops: number }
    | { readonly type: "networks"; readonly cidrs: readonly Cidr[] };
  readonly accessLog?: Message | undefined;
  readonly tracing?: Message | undefined;
}

/** After so long without a byte in either direction a request, or an upgraded stream, is over. */
export const STREAM_IDLE_MS = 300_000;

/** Of one client's connection. */
const CONCURRENT_STREAMS = 128;
const PASS_THROUGH = 2;
const KEEP_UNCHANGED = 1;

export function httpManager(shape: HttpShape): Message {
  const early = extension(
    "mergeway.early",
    "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
    message(nestedEach(1, shape.early.map(headerMutation))),
  );
  const config = message(
    text(2, shape.statPrefix),
    nested(31, scopedRoutes(shape.scopeHeader)),
    nestedEach(5, shape.filters),
    shape.tracing === undefined ? undefined : nested(7, shape.tracing),
    // HTTP/1.0 is served as HTTP/1.1 is: with a Host.
    nested(8, message(flag(2, true), flag(5, true))),
    nested(
      9,
      message(
        uint32Value(2, CONCURRENT_STREAMS),
        uint32Value(3, STREAM_WINDOW_BYTES),
        uint32Value(4, CONNECTION_WINDOW_BYTES),
        flag(5, true),
      ),
    ),
    shape.accessLog === undefined ? undefined : nested(13, shape.accessLog),
    // Envoy has one way or the other.
    boolValue(14, shape.trust.type === "nobody"),
    // Interim answers (103 Early Hints) reach the client, and the backend itself says whether it
    // wants a body.
    flag(18, true),
    nestedEach(23, [message(text(1, "websocket"), nestedEach(2, shape.upgradeFilters))]),
    duration(24, STREAM_IDLE_MS),
    flag(21, true),
    // Nobody is internal: no client may steer the router with headers meant for the mesh. An empty
    // list would mean private addresses.
    nested(25, message(nested(2, message(text(1, "0.0.0.0"), uint32Value(2, 32))))),
    duration(41, 10_000),
    boolValue(30, true),
    flag(33, true),
    uint(34, PASS_THROUGH),
    nested(35, message(duration(1, 60_000), uint32Value(2, 128))),
    uint(45, KEEP_UNCHANGED),
    nestedEach(46, detections(shape.trust)),
    flag(32, shape.trust.type !== "nobody"),
    nested(38, localReplies(shape.badRequests)),
    nested(48, message(flag(2, true))),
    shape.early.length === 0 ? undefined : nested(52, early),
    boolValue(40, true),
  );
  return message(
    text(1, "envoy.filters.network.http_connection_manager"),
    nested(
      4,
      any("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", config),
    ),
  );
}

/**
 * Tried in order until one finds an address. With hops, Envoy takes the peer for the client of a
 * list that is too short: so the entries before the outermost are asked for, one by one.
 */
function detections(trust: HttpShape["trust"]): readonly Message[] {
  switch (trust.type) {
    case "nobody":
      return [];
    case "hops":
      return Array.from({ length: trust.hops }, (_, index) => detection(uint(1, trust.hops - index)));
    case "networks":
      return [detection(nested(2, message(nestedEach(1, trust.cidrs.map(cidrRange)))))];
  }
}

function detection(how: Field): Message {
  const type = "envoy.extensions.http.original_ip_detection.xff.v3.XffConfig";
  return extension("forwarded-for", type, message(how));
}

function scopedRoutes(scopeHeader: string): Message {
  const extractor = message(text(1, scopeHeader), text(2, ":"), explicitUint(3, 0));
  return message(
    text(1, "scopes"),
    nested(2, message(nested(1, message(nested(1, extractor))))),
    nested(3, adsSource()),
    nested(5, message(nested(1, adsSource({ waits: true })))),
  );
}

/**
 * The first that fits is said. A client that a guard does not let in stays 403, whatever else its
 * request is. A backend that breaks off or talks nonsense is 502; Envoy would call it unavailable.
 * What is refused as malformed is 400. A backend at its limits is 503 as in Envoy, with words that
 * say so.
 */
function localReplies(badRequests: readonly Message[]): Message {
  const statusIs = (status: number, key: string): Message =>
    message(nested(1, message(nested(2, message(uint(2, status), text(3, `mergeway.${key}`))))));
  const refused = statusIs(403, "refused");
  const denied = [message(nested(1, refused)), message(nested(11, detailsFilter(ADDRESS_DENIED)))];
  const addressDenied = message(
    nested(1, message(nested(6, message(nestedEach(1, denied))))),
    nested(3, inlineString("clients of this address are not served\n")),
  );
  const rateLimited = message(
    nested(1, message(nested(1, statusIs(429, "limited")))),
    nested(3, inlineString("too many requests\n")),
  );
  const badRequest = badRequests.map((header) => {
    const both = [message(nested(1, refused)), message(nested(8, message(nested(1, header))))];
    return message(
      nested(1, message(nested(6, message(nestedEach(1, both))))),
      uint32Value(2, 400),
      nested(3, inlineString("the request is malformed")),
    );
  });
  const brokenBackend = message(nested(9, message(texts(1, ["UC", "UR", "UPE"]))));
  const overflow = message(
    nested(1, message(nested(9, message(texts(1, ["UO"]))))),
    nested(3, inlineString("too many requests to this host are in flight\n")),
    headerOptions(5, [headerOption("retry-after", "1", "overwrite")]),
  );
  return message(
    nestedEach(1, [
      addressDenied,
      ...badRequest,
      rateLimited,
      overflow,
      message(nested(1, brokenBackend), uint32Value(2, 502)),
    ]),
  );
}

function detailsFilter(details: string): Message {
  const expression = `response.code_details == '${details}'`;
  return message(
    text(1, "envoy.access_loggers.extension_filters.cel"),
    nested(
      3,
      any("envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter", message(text(1, expression))),
    ),
  );
}
