import { randomBytes } from "node:crypto";
import { editPath } from "../../../matching/rewrite.ts";
import type { BackendItem } from "../../../plan/backend.ts";
import type { ForwardAction, WeightedBackend } from "../../../plan/rule.ts";
import type { TrustedFront } from "../options.ts";
import { applyEdits } from "./edit-headers.ts";
import { addForwardedHeaders, areTrusted, vouching } from "./forwarded-headers.ts";
import type { HeaderFields } from "./header-fields.ts";
import { hopByHop, removeNamed } from "./hop-by-hop.ts";
import { isGrpc } from "./local-reply.ts";
import type { RoutedRequest } from "./routed-request.ts";

/** What is said to this proxy and not to the backend. */
const ownHop: ReadonlySet<string> = new Set([...hopByHop, "expect"]);
const ownHopAndVouching: ReadonlySet<string> = new Set([...ownHop, ...vouching]);

/** What the backend gets to see, without the body. */
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
  chosen: {
    readonly entry: WeightedBackend;
    readonly backend: BackendItem;
    readonly trustedHops: TrustedFront;
  },
): RequestHead {
  const { entry, backend } = chosen;
  const { exchange } = request;
  const protocol = protocolOf(request, backend);
  const headers = request.headers.without(areTrusted(chosen.trustedHops) ? ownHop : ownHopAndVouching);
  removeNamed(headers, request.headers.get("connection"));
  if (protocol === "h2" && wantsTrailers(request.headers.get("te"))) headers.add("te", "trailers");
  // HTTP/2 has no key of its own for WebSockets; the HTTP/1.1 handshake with the backend needs one.
  if (exchange.websocket && exchange.protocol === "HTTP/2") {
    headers.set("sec-websocket-key", randomBytes(16).toString("base64"));
  }
  addForwardedHeaders(headers, request, chosen.trustedHops);
  applyEdits(headers, action.filters.requestHeaders);
  applyEdits(headers, entry.filters.requestHeaders);

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

function wantsTrailers(te: string | undefined): boolean {
  return te !== undefined && /(?:^|,)\s*trailers\s*(?:,|;|$)/i.test(te);
}

function protocolOf(request: RoutedRequest, backend: BackendItem): "h1" | "h2" {
  if (request.exchange.websocket || backend.protocol === "websocket") return "h1";
  if (backend.protocol === "h2c" || request.rule?.origin.kind === "GRPCRoute") return "h2";
  return isGrpc(request.headers) ? "h2" : "h1";
}
