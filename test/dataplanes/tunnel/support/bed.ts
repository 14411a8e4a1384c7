/**
 * Everything between a client at the edge and a backend: API, edge, connectors, Mergeway and its
 * manifests, all on loopback.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Gateway, ListenerSet } from "../../../../src/api/gateway.ts";
import { type Key, keyOf } from "../../../../src/api/key.ts";
import type { Resource } from "../../../../src/api/resource.ts";
import type { Route } from "../../../../src/api/routes.ts";
import { terminalOn } from "../../../../src/cli/foundation/terminal.ts";
import { LiveGateway } from "../../../../src/cli/run/live-gateway.ts";
import { createLogger } from "../../../../src/cli/run/logger.ts";
import type { ServedPlane } from "../../../../src/cli/run/served-plane.ts";
import { tunnelName, tunnelPlane } from "../../../../src/cli/run/tunnel-plane.ts";
import type { RequestRecord } from "../../../../src/dataplanes/request-record.ts";
import { TrafficCounts } from "../../../../src/dataplanes/traffic/traffic-counts.ts";
import { readText } from "../../../../src/sources/files/yaml/read-text.ts";
import { renderStatus } from "../../../../src/status/render.ts";
import { ApiDouble, type StoredTunnel } from "./api-double.ts";
import { EdgeDouble } from "./edge-double.ts";
import { closedPair } from "./free-ports.ts";

const CONNECTOR = fileURLToPath(new URL("connector-double.ts", import.meta.url));

export interface BedOptions {
  readonly token?: (api: ApiDouble) => string;
  readonly cloudflared?: readonly string[];
  readonly connections?: number;
  readonly deleteWithGateway?: boolean;
  readonly prepare?: (api: ApiDouble) => void;
}

export class Bed {
  readonly api: ApiDouble;
  readonly edge: EdgeDouble;
  readonly live: LiveGateway;
  readonly log: string[];
  readonly records: RequestRecord[];
  readonly port: number;
  readonly #plane: ServedPlane;
  readonly #stop: AbortController;
  readonly #folder: string;
  readonly #backends: Server[] = [];
  readonly #waiting: Set<() => void> = new Set();
  #known: Map<Key, Resource> = new Map();

  private constructor(parts: Parts) {
    this.api = parts.api;
    this.edge = parts.edge;
    this.log = parts.log;
    this.records = parts.records;
    this.port = parts.port;
    this.#plane = parts.plane;
    this.#stop = parts.stop;
    this.#folder = parts.folder;
    this.live = new LiveGateway(parts.plane.dataPlane, (gateway) => parts.plane.infrastructureOf(gateway));
    parts.plane.onInfrastructure?.((gateway) => this.live.takeInfrastructure(gateway));
    this.live.onStep(() => this.#changed());
  }

  static async start(options: BedOptions = {}): Promise<Bed> {
    const api = await ApiDouble.start();
    options.prepare?.(api);
    const edge = await EdgeDouble.start(api);
    const folder = mkdtempSync(join(tmpdir(), "mergeway-tunnel-"));
    const cacert = join(folder, "edge-ca.pem");
    writeFileSync(cacert, edge.ca.cert);
    const log: string[] = [];
    const records: RequestRecord[] = [];
    const terminal = terminalOn((text) => log.push(text), {
      isTty: false,
      columns: undefined,
      env: {},
    } as never);
    const stop = new AbortController();
    const port = await closedPair();
    const host = {
      out: terminal,
      err: terminal,
      version: "0",
      signal: stop.signal,
      now: () => new Date(),
      env: {
        PATH: process.env["PATH"],
        MERGEWAY_DEBUG: "1",
        CLOUDFLARE_API_TOKEN: options.token?.(api) ?? api.token,
        CLOUDFLARE_ACCOUNT_ID: api.account,
        CLOUDFLARE_BASE_URL: api.baseUrl,
        TUNNEL_EDGE: edge.address,
        TUNNEL_CACERT: cacert,
      },
    };
    const plane = await tunnelPlane(
      {
        prefix: "test",
        firstPort: port,
        cloudflared: options.cloudflared ?? [process.execPath, CONNECTOR],
        connections: options.connections ?? 2,
        deleteWithGateway: options.deleteWithGateway ?? false,
        waits: { again: { firstDelayMs: 20, maxDelayMs: 100 }, recheckMs: 60_000, pollMs: 20 },
      },
      host,
    )({
      workers: 0,
      logger: createLogger("json", terminal, host.now),
      traffic: new TrafficCounts(),
      onRequestEnd: (record) => records.push(record),
    });
    return new Bed({ api, edge, log, records, port, plane, stop, folder });
  }

  /** Replaces all manifests, as a folder that was edited. */
  apply(...documents: readonly string[]): void {
    const { documents: found, errors } = readText(documents.join("\n---\n"), "test.yaml");
    if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join("; "));
    const next = new Map(found.map(({ resource }) => [keyOf(resource), resource]));
    const gone = [...this.#known.keys()].filter((key) => !next.has(key));
    const changes = [
      ...gone.map((key) => ({ key, resource: undefined })),
      ...Array.from(next, ([key, resource]) => ({ key, resource })),
    ];
    this.#known = next;
    this.live.take(changes);
    for (const key of gone) if (key.startsWith("Gateway/")) this.#plane.removed?.(key);
  }

  /** A backend that says its name and what it got; returns its Service and EndpointSlice. */
  async backend(namespace: string, name: string): Promise<string> {
    const server = createServer((request, response) => {
      response.setHeader("x-backend", `${namespace}/${name}`);
      response.end(
        JSON.stringify({ backend: `${namespace}/${name}`, url: request.url, headers: request.headers }),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.#backends.push(server);
    return serviceAt({ namespace, name, port: (server.address() as AddressInfo).port });
  }

  tunnel(gateway = "infra/edge"): StoredTunnel {
    const tunnel = this.api.named(tunnelName("test", gateway));
    if (tunnel === undefined) throw new Error(`${gateway} has no tunnel`);
    return tunnel;
  }

  /** Resolves when it holds; the test's own time limit is the bound. */
  async until(satisfied: () => boolean): Promise<void> {
    while (!satisfied()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  /** Until the Gateway says of itself what is expected: `Programmed=True Programmed`. */
  async gatewaySays(expected: string, key: Key = "Gateway/infra/edge"): Promise<void> {
    await this.until(() => this.conditions(key).includes(expected));
  }

  status(key: Key): Record<string, unknown> {
    const resource = this.live.resources.get(key);
    const verdict = this.live.engine.verdict(key);
    if (resource === undefined || verdict === undefined) return {};
    const now = "2026-01-01T00:00:00Z";
    return renderStatus(resource, verdict, { controllerName: "mergeway.dev/controller", now }) as never;
  }

  /** `Type=Status Reason` of an object, or of one of its listeners. */
  conditions(key: Key, listener?: string): readonly string[] {
    const status = this.status(key) as Partial<(Gateway | ListenerSet)["status"] & object>;
    const entry = status.listeners?.find(({ name }) => name === listener);
    const found = listener === undefined ? status.conditions : entry?.conditions;
    return (found ?? []).map((condition) => `${condition.type}=${condition.status} ${condition.reason}`);
  }

  routeConditions(key: Key): readonly string[] {
    const status = this.status(key) as Partial<Route["status"] & object>;
    return (status.parents ?? []).flatMap(({ conditions }) =>
      (conditions ?? []).map((condition) => `${condition.type}=${condition.status} ${condition.reason}`),
    );
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#plane.dataPlane.close({ graceMs: 0 });
    await this.edge.close();
    await this.api.close();
    for (const server of this.#backends) {
      server.closeAllConnections();
      server.close();
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #changed(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

interface Parts {
  readonly api: ApiDouble;
  readonly edge: EdgeDouble;
  readonly log: string[];
  readonly records: RequestRecord[];
  readonly port: number;
  readonly plane: ServedPlane;
  readonly stop: AbortController;
  readonly folder: string;
}

export function serviceAt({
  namespace,
  name,
  port,
}: {
  namespace: string;
  name: string;
  port: number;
}): string {
  return `
apiVersion: v1
kind: Service
metadata: { namespace: ${namespace}, name: ${name} }
spec: { ports: [{ port: 80, targetPort: ${port} }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { namespace: ${namespace}, name: ${name}-1, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ name: "", port: ${port} }]
endpoints: [{ addresses: [127.0.0.1] }]`;
}
