import type { RequestView } from "../../src/matching/request.ts";
import { RoutingTable } from "../../src/matching/routing-table.ts";
import type { BackendItem } from "../../src/plan/backend.ts";
import type { HostItem, ListenerItem, PlanItem, PortItem } from "../../src/plan/plan.ts";
import type { Action, ForwardAction, PathMatch, RequestMatch, Rule } from "../../src/plan/rule.ts";

const gateway = "infra/gw";

export function port(
  id: string,
  protocol: PortItem["protocol"] = "http",
  more: Partial<PortItem> = {},
): PortItem {
  return {
    type: "port",
    id,
    gateway,
    transport: protocol === "udp" ? "udp" : "tcp",
    port: 80,
    protocol,
    ...more,
  };
}

export function listener(
  id: string,
  portId: string,
  hostname: string,
  more: Partial<ListenerItem> = {},
): ListenerItem {
  const owner = { kind: "ListenerSet", namespace: "team", name: id } as const;
  return {
    type: "listener",
    id,
    gateway,
    port: portId,
    owner,
    section: "main",
    hostname,
    protocol: "HTTP",
    ...more,
  };
}

export function host(id: string, listenerId: string, hostname: string, rules: readonly Rule[]): HostItem {
  return { type: "host", id, gateway, listener: listenerId, hostname, rules };
}

export function backend(id: string, more: Partial<BackendItem> = {}): BackendItem {
  return {
    type: "backend",
    id,
    gateway,
    service: { namespace: "team", name: id, port: 8080 },
    protocol: "http",
    endpoints: [{ address: "127.0.0.1", port: 9000 }],
    ...more,
  };
}

export function forwardTo(...ids: readonly string[]): ForwardAction {
  return {
    type: "forward",
    backends: ids.map((id) => ({ backend: id, weight: 1, filters: {} })),
    filters: {},
    timeouts: {},
  };
}

export function rule(
  name: string,
  match: Partial<RequestMatch> = {},
  action: Action = { type: "respond", status: 200, reason: name },
): Rule {
  return {
    origin: { kind: "HTTPRoute", namespace: "team", name, rule: 0, match: 0 },
    match: { headers: [], query: [], ...match },
    action,
  };
}

export function prefix(value: string): PathMatch {
  return { type: "prefix", value };
}

export function exact(value: string): PathMatch {
  return { type: "exact", value };
}

export function request(
  path: string,
  more: {
    readonly method?: string;
    readonly query?: string;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
): RequestView {
  const headers = new Map(Object.entries(more.headers ?? {}));
  return {
    method: more.method ?? "GET",
    path,
    query: more.query ?? "",
    header: (name) => headers.get(name),
  };
}

export function tableOf(...items: readonly PlanItem[]): RoutingTable {
  const table = new RoutingTable();
  table.apply({ upserts: items, removes: [] });
  return table;
}
