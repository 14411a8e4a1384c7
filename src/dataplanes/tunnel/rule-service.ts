/**
 * The one service of an ingress rule that stands for a rule of a route, or why there can be none.
 */
import type { BackendItem } from "../../plan/backend.ts";
import type { ItemId } from "../../plan/plan.ts";
import type { Filters, ForwardAction, RequestMatch, Rule } from "../../plan/rule.ts";
import type { IngressRule } from "./cloudflare/tunnel-configuration.ts";

export type IngressService = Pick<IngressRule, "service" | "originRequest"> | { readonly problem: string };

export function serviceOf(
  { match, action, origin }: Rule,
  backends: ReadonlyMap<ItemId, BackendItem>,
  authorityOf: (backend: BackendItem) => string,
): IngressService {
  const problem = matchProblem(match);
  if (problem !== undefined) return { problem };
  if (action.type === "redirect") return { problem: "a redirect: cloudflared cannot redirect" };
  if (action.type === "respond" && action.content !== undefined)
    return { problem: "an answer with a text: cloudflared answers with a status alone" };
  if (action.type === "respond") return { service: `http_status:${action.status}` };
  const unsupported = forwardProblem(action);
  if (unsupported !== undefined) return { problem: unsupported };
  const chosen = action.backends.filter(({ weight }) => weight > 0);
  if (chosen.length > 1)
    return { problem: "several weighted backends: a rule of cloudflared has one service" };
  const only = chosen[0];
  if (only?.backend === undefined) return { service: "http_status:500" };
  const backend = backends.get(only.backend);
  if (backend === undefined || backend.refused !== undefined) return { service: "http_status:500" };
  return backendService(backend, origin.kind === "GRPCRoute", authorityOf);
}

function matchProblem({ method, headers, query }: RequestMatch): string | undefined {
  if (method !== undefined) return "a match of the method: cloudflared matches hostname and path alone";
  if (headers.length > 0) return "a match of headers: cloudflared matches hostname and path alone";
  if (query.length > 0) return "a match of query parameters: cloudflared matches hostname and path alone";
  return undefined;
}

function forwardProblem({
  filters,
  backends,
  timeouts,
  retry,
  persistence,
  compression,
}: ForwardAction): string | undefined {
  const filter = [filters, ...backends.map((entry) => entry.filters)]
    .map(filterName)
    .find((name) => name !== undefined);
  if (filter !== undefined) return `the filter ${filter}: cloudflared sends requests unchanged`;
  if (timeouts.requestMs !== undefined || timeouts.backendRequestMs !== undefined) {
    return "a timeout: cloudflared has none for whole requests";
  }
  if (retry !== undefined) return "retries: cloudflared does not retry requests";
  if (compression !== undefined) return "compression: cloudflared passes answers on as they are";
  return persistence === undefined ? undefined : "session persistence: cloudflared has none";
}

function filterName(filters: Filters): string | undefined {
  if (filters.requestHeaders?.length) return "RequestHeaderModifier";
  if (filters.responseHeaders?.length) return "ResponseHeaderModifier";
  if (filters.rewrite !== undefined) return "URLRewrite";
  if (filters.mirrors?.length) return "RequestMirror";
  return filters.cors === undefined ? undefined : "CORS";
}

function backendService(
  backend: BackendItem,
  grpc: boolean,
  authorityOf: (backend: BackendItem) => string,
): IngressService {
  const { protocol, tls } = backend;
  const needsHttp2 = grpc || protocol === "h2c";
  if (tls === undefined) {
    if (needsHttp2) {
      return { problem: "HTTP/2 or gRPC without TLS: cloudflared speaks HTTP/2 to backends with TLS alone" };
    }
    return { service: `http://${authorityOf(backend)}` };
  }
  if (tls.authorities !== "system") {
    return {
      problem:
        "a certificate authority of a BackendTLSPolicy: cloudflared reads authorities from its own files",
    };
  }
  if (tls.subjectAltNames.length > 0) {
    return { problem: "subjectAltNames of a BackendTLSPolicy: cloudflared checks the host name alone" };
  }
  const originRequest = { originServerName: tls.hostname, ...(needsHttp2 ? { http2Origin: true } : {}) };
  return { service: `https://${authorityOf(backend)}`, originRequest };
}
