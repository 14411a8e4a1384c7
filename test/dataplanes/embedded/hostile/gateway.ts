import { createEmbeddedDataPlane } from "../../../../src/dataplanes/embedded/embedded-data-plane.ts";
import type { Limits } from "../../../../src/dataplanes/embedded/limits/options.ts";
import type { RequestRecord } from "../../../../src/dataplanes/request-record.ts";
import type { BackendItem } from "../../../../src/plan/backend.ts";
import type { HostItem, ListenerItem, PlanItem } from "../../../../src/plan/plan.ts";
import type { Rule } from "../../../../src/plan/rule.ts";
import { lastingPort } from "../../support/lasting-port.ts";

const gateway = "infra/edge";

/** Short enough for a test, long enough for a busy machine. */
const limits: Partial<Limits> = {
  headerTimeoutMs: 2_000,
  bodyIdleTimeoutMs: 1_500,
  keepAliveTimeoutMs: 1_500,
  backendResponseTimeoutMs: 1_500,
  backendIdleTimeoutMs: 1_500,
  bodyBytes: 4 * 1024 * 1024,
};

export interface HostileGateway {
  readonly port: number;
  readonly records: readonly RequestRecord[];
  close(): Promise<void>;
}

/**
 * One cleartext port: `public.example` (with `/admin` apart) and `secret.example`, as the corpus
 * says, and one host per odd backend.
 */
export async function startGateway(
  backends: Readonly<Record<string, number>>,
  overrides: Partial<Limits> = {},
): Promise<HostileGateway> {
  const port = await lastingPort();
  const records: RequestRecord[] = [];
  const plane = createEmbeddedDataPlane({
    bind: { address: "127.0.0.1" },
    workers: 0,
    limits: { ...limits, ...overrides },
    onRequestEnd: (record) => records.push(record),
  });
  const programmed = new Promise<void>((resolve, reject) => {
    plane.onReport((reports) => {
      const report = reports.find(({ id }) => id === "port");
      if (report?.state === "programmed") resolve();
      else if (report !== undefined) reject(new Error(report.message));
    });
  });
  plane.apply({ upserts: itemsOf(port, backends), removes: [] });
  await programmed;
  return { port, records, close: () => plane.close({ graceMs: 0 }) };
}

function itemsOf(port: number, backends: Readonly<Record<string, number>>): readonly PlanItem[] {
  const items: PlanItem[] = [
    { type: "gateway", id: "gateway", gateway },
    { type: "port", id: "port", gateway, transport: "tcp", port, protocol: "http" },
  ];
  for (const [name, endpoint] of Object.entries(backends)) {
    const rules = name === "public" ? [rule("secret", "/admin"), rule("public", "/")] : [rule(name, "/")];
    items.push(listener(name), host(name, rules), backend(name, endpoint));
  }
  return items;
}

function listener(name: string): ListenerItem {
  const owner = { kind: "ListenerSet", namespace: name, name: "own" } as const;
  const hostname = `${name}.example`;
  return {
    type: "listener",
    id: `l-${name}`,
    gateway,
    port: "port",
    owner,
    section: name,
    hostname,
    protocol: "HTTP",
  };
}

function host(name: string, rules: readonly Rule[]): HostItem {
  return {
    type: "host",
    id: `h-${name}`,
    gateway,
    listener: `l-${name}`,
    hostname: `${name}.example`,
    rules,
  };
}

function backend(name: string, port: number): BackendItem {
  const service = { namespace: name, name, port: 80 };
  const endpoints = [{ address: "127.0.0.1", port }];
  return { type: "backend", id: `b-${name}`, gateway, service, protocol: "http", endpoints };
}

function rule(name: string, prefix: string): Rule {
  return {
    origin: { kind: "HTTPRoute", namespace: name, name: "all", rule: 0, match: 0 },
    match: { path: { type: "prefix", value: prefix }, headers: [], query: [] },
    action: {
      type: "forward",
      backends: [{ backend: `b-${name}`, weight: 1, filters: {} }],
      filters: {},
      timeouts: {},
    },
  };
}
