import { randomBytes } from "node:crypto";
import { editPath } from "../../../matching/rewrite.ts";
import type { BackendItem } from "../../../plan/backend.ts";
import type { Filters, ForwardAction, WeightedBackend } from "../../../plan/rule.ts";
import { traceparentOf } from "../../telemetry/trace-context.ts";
import { applyEdits, removeTwins } from "../message/edit-headers.ts";
import { isGrpc } from "../message/grpc.ts";
import type { HeaderFields } from "../message/header-fields.ts";
import { wantsTrailers } from "../message/hop-by-hop.ts";
import { passingNames, requestTrailerTest } from "../message/trailers.ts";
import type { RoutedRequest } from "./routed-request.ts";

/** The request to the backend, without the body. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  readonly headers: HeaderFields;
  readonly websocket: boolean;
  readonly protocol: "h1" | "h2";
}

/** Filters of the rule come first, then those of the chosen backend. */
export function buildHead(
  request: RoutedRequest,
  action: ForwardAction,
  chosen: { readonly entry: WeightedBackend; readonly backend: BackendItem },
): RequestHead {
  const { entry, backend } = chosen;
  const { exchange } = request;
  const protocol = protocolOf(request, backend);
  const headers = request.headers.copy();
  if (protocol === "h2" && wantsTrailers(exchange.headers.get("te"))) headers.add("te", "trailers");
  // HTTP/2 has no key of its own for WebSockets; the HTTP/1.1 handshake with the backend needs one.
  if (exchange.websocket && exchange.protocol === "HTTP/2") {
    headers.set("sec-websocket-key", randomBytes(16).toString("base64"));
  }
  removeTwins(headers, action.filters.requestHeaders);
  removeTwins(headers, entry.filters.requestHeaders);
  applyEdits(headers, action.filters.requestHeaders);
  applyEdits(headers, entry.filters.requestHeaders);
  if (request.trace !== undefined) headers.set("traceparent", traceparentOf(request.trace));

  announceTrailers(headers, request, { protocol, filters: [action.filters, entry.filters] });

  const edited = headers.get("host");
  headers.remove("host");
  // Only one of the two may rewrite the prefix: after the rule has, the matched prefix is gone.
  const edit = action.filters.rewrite?.path ?? entry.filters.rewrite?.path;
  const path = edit === undefined ? request.path : editPath(request.path, edit, request.rule?.match.path);
  return {
    method: request.method,
    path: request.query === "" ? path : `${path}?${request.query}`,
    authority:
      entry.filters.rewrite?.hostname ?? action.filters.rewrite?.hostname ?? edited ?? request.authority,
    headers,
    websocket: exchange.websocket,
    protocol,
  };
}

function announceTrailers(
  headers: HeaderFields,
  { exchange, hides }: RoutedRequest,
  to: { readonly protocol: "h1" | "h2"; readonly filters: readonly Filters[] },
): void {
  const announced = exchange.headers.get("trailer");
  if (announced === undefined || exchange.body === undefined) return;
  // Over HTTP/1.1 chunks alone have a place for them: none come behind a length, and none can go
  // there.
  if (exchange.protocol !== "HTTP/2" && headers.has("content-length")) return;
  const names = passingNames(announced, requestTrailerTest(to.filters, hides));
  if (names === "") return;
  headers.add("trailer", names);
  if (to.protocol === "h1") headers.remove("content-length");
}

function protocolOf(request: RoutedRequest, backend: BackendItem): "h1" | "h2" {
  if (request.exchange.websocket || backend.protocol === "websocket") return "h1";
  if (backend.protocol === "h2c" || request.rule?.origin.kind === "GRPCRoute") return "h2";
  return isGrpc(request.headers) ? "h2" : "h1";
}
