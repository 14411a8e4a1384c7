/**
 * Cloudflare inside a cluster's network: the doubles of API and edge on the node's address, where
 * pods reach them. A test outside speaks to them by lines of JSON on standard input and output,
 * each request with an id that its answer repeats.
 */
import { createInterface } from "node:readline";
import type { IngressRule } from "../../../src/dataplanes/tunnel/cloudflare/tunnel-configuration.ts";
import { ApiDouble, type Fault } from "../../dataplanes/tunnel/support/api-double.ts";
import { EdgeDouble, type EdgeRequest } from "../../dataplanes/tunnel/support/edge-double.ts";

export interface Started {
  readonly ca: string;
  readonly edge: string;
  readonly account: string;
  readonly token: string;
  readonly powerlessToken: string;
}

export interface TunnelSeen {
  readonly id: string;
  readonly name: string;
  readonly deleted: boolean;
  readonly connections: number;
  readonly services: readonly string[];
  /** What a connector of it must be given. */
  readonly token: string;
}

/** A fault for requests whose `METHOD /path` the expression finds. */
export interface FaultFor extends Fault {
  readonly on: string;
}

export type Order =
  | { readonly do: "tunnels" }
  | { readonly do: "requests" }
  | { readonly do: "visit"; readonly tunnel: string; readonly visit: EdgeRequest }
  | { readonly do: "fault"; readonly fault?: FaultFor }
  | { readonly do: "faults"; readonly faults: readonly Fault[] }
  | { readonly do: "accept"; readonly accepting: boolean }
  | { readonly do: "add"; readonly name: string; readonly ingress: readonly IngressRule[] };

async function main([host = "", port = "0"]: readonly string[]): Promise<void> {
  const api = await ApiDouble.start({ host, port: Number(port) });
  const edge = await EdgeDouble.start(api, host);
  const { account, token, powerlessToken } = api;
  const started: Started = { ca: edge.ca.cert, edge: edge.address, account, token, powerlessToken };
  console.log(JSON.stringify(started));
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, order } = JSON.parse(line) as { readonly id: number; readonly order: Order };
    void obey(api, edge, order).then(
      (result) => console.log(JSON.stringify({ id, result: result ?? null })),
      (error: Error) => console.log(JSON.stringify({ id, error: error.message })),
    );
  }
  process.exit(0);
}

async function obey(api: ApiDouble, edge: EdgeDouble, order: Order): Promise<unknown> {
  switch (order.do) {
    case "tunnels":
      return tunnelsOf(api);
    case "requests":
      return api.requests.map(({ method, path, status }) => `${method} ${path} ${status}`);
    case "visit":
      return edge.fetch(order.tunnel, order.visit);
    case "fault": {
      const { fault } = order;
      api.faultFor = (method, path) =>
        fault !== undefined && new RegExp(fault.on).test(`${method} ${path}`) ? fault : undefined;
      return undefined;
    }
    case "faults":
      api.faults.push(...order.faults);
      return undefined;
    case "accept":
      edge.accepting = order.accepting;
      if (!order.accepting) for (const { id } of api.tunnels.values()) edge.disconnect(id);
      return undefined;
    case "add":
      return api.add(order.name, { config: { ingress: order.ingress } }).id;
    default:
      throw new Error(`no such order: ${JSON.stringify(order satisfies never)}`);
  }
}

function tunnelsOf(api: ApiDouble): readonly TunnelSeen[] {
  return [...api.tunnels.values()].map((tunnel) => ({
    id: tunnel.id,
    name: tunnel.name,
    deleted: tunnel.deleted,
    connections: tunnel.connections.size,
    services: (tunnel.config?.ingress ?? []).map(({ service }) => service),
    token: api.tokenOf(tunnel),
  }));
}

if (import.meta.main) await main(process.argv.slice(2));
