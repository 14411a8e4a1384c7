import type { BackendItem, BackendTls, Endpoint } from "../../../src/plan/backend.ts";
import type { ItemId, ListenerProtocol, PlanItem, PortProtocol } from "../../../src/plan/plan.ts";
import type { Rule, WeightedBackend } from "../../../src/plan/rule.ts";

/** Plan items of one small Gateway, as short as a test can say them. */
export const gateway = "infra/edge";

export function streamPort(id: ItemId, protocol: PortProtocol): PlanItem {
  return { type: "port", id, gateway, transport: protocol === "udp" ? "udp" : "tcp", port: 7000, protocol };
}

export function streamListener(id: ItemId, port: ItemId, protocol: ListenerProtocol): PlanItem {
  const owner = { kind: "Gateway", namespace: "infra", name: "edge" } as const;
  return { type: "listener", id, gateway, port, owner, section: id, hostname: "", protocol };
}

export function streamHost(listener: ItemId, rules: readonly Rule[], hostname = ""): PlanItem {
  return { type: "host", id: `host ${listener} ${hostname}`, gateway, listener, hostname, rules };
}

export function streamRule(
  ...backends: readonly (readonly [backend: ItemId | undefined, weight: number])[]
): Rule {
  const weighted = backends.map(
    ([backend, weight]): WeightedBackend => ({
      weight,
      filters: {},
      ...(backend !== undefined && { backend }),
    }),
  );
  return {
    origin: { kind: "TCPRoute", namespace: "shop", name: "stream", rule: 0, match: 0 },
    match: { headers: [], query: [] },
    action: { type: "forward", backends: weighted, filters: {}, timeouts: {} },
  };
}

export function streamBackend(
  id: ItemId,
  ports: readonly number[],
  extra: { readonly tls?: BackendTls; readonly refused?: string } = {},
): BackendItem {
  const endpoints = ports.map((port): Endpoint => ({ address: "127.0.0.1", port }));
  const service = { namespace: "shop", name: id, port: 80 };
  return { type: "backend", id, gateway, service, protocol: "tcp", endpoints, ...extra };
}
