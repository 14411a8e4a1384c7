/**
 * The admin server: health, metrics, the merged state. It is read-only, shows no secrets, and is
 * meant for loopback. Against DNS rebinding, the Host must be an address or localhost.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, isIP } from "node:net";
import type { AdminState } from "../admin-state.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { type AdminAnswer, type AdminEndpoint, json, problem } from "./endpoint.ts";
import { EventStream } from "./events.ts";
import { stateEndpoints } from "./state-endpoints.ts";

export interface AdminOptions {
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  readonly metrics: Metrics;
}

export interface AdminServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Rejects when the address cannot be opened. */
export async function startAdmin(admin: AdminState, options: AdminOptions): Promise<AdminServer> {
  const events = new EventStream(admin);
  const routes = new Map(adminEndpoints(admin, options.metrics, events).map((each) => [each.path, each]));
  const server = createServer({ requestTimeout: 10_000, maxHeaderSize: 8_192 }, (request, response) => {
    void serve({ request, response }, routes, { admin, metrics: options.metrics });
  });
  server.maxConnections = 256;
  server.listen(options.port, options.address);
  try {
    await once(server, "listening");
  } catch (error) {
    events.close();
    throw error;
  }
  const { address, port, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${port}`,
    close: () => closed(server, events),
  };
}

async function closed(server: Server, events: EventStream): Promise<void> {
  events.close();
  server.close();
  server.closeAllConnections();
}

export function adminEndpoints(
  admin: AdminState,
  metrics: Metrics,
  events: EventStream,
): readonly AdminEndpoint[] {
  return [
    {
      path: "/healthz",
      summary: "The process lives.",
      answer: "200 `ok`",
      handle: () => ({ status: 200, type: "text/plain", body: "ok\n" }),
    },
    {
      path: "/readyz",
      summary: "Everything that was there at the start is served, or known not to be; not while it stops.",
      answer: "200 `ready`, or 503 `not ready`",
      handle: () =>
        admin.isReady()
          ? { status: 200, type: "text/plain", body: "ready\n" }
          : { status: 503, type: "text/plain", body: "not ready\n" },
    },
    {
      path: "/metrics",
      summary: "Metrics for Prometheus; [metrics.md](metrics.md) lists them.",
      answer: "the text format of Prometheus",
      handle: () => ({ status: 200, type: "metrics", body: metrics }),
    },
    ...stateEndpoints(admin),
    events.endpoint,
  ];
}

async function serve(
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  routes: ReadonlyMap<string, AdminEndpoint>,
  { admin, metrics }: { readonly admin: AdminState; readonly metrics: Metrics },
): Promise<void> {
  try {
    response.setHeader("x-content-type-options", "nosniff");
    response.setHeader("cross-origin-resource-policy", "same-origin");
    const answer = refusal(request) ?? route(request, response, routes);
    if (answer === undefined) return;
    const body =
      answer.type === "metrics"
        ? await metrics.text(admin)
        : answer.type === "text/plain"
          ? String(answer.body)
          : `${JSON.stringify(answer.body, null, 2)}\n`;
    response.writeHead(answer.status, {
      "content-type": answer.type === "metrics" ? metrics.contentType : `${answer.type}; charset=utf-8`,
      "cache-control": "no-store",
      ...(answer.status === 405 ? { allow: "GET, HEAD" } : {}),
    });
    response.end(request.method === "HEAD" ? undefined : body);
  } catch {
    // A bug in the admin server must not end the process: it serves traffic.
    if (!response.headersSent) response.writeHead(500);
    response.end();
  }
}

function refusal({ method, headers }: IncomingMessage): AdminAnswer | undefined {
  if (!isLocalName(headers.host ?? "")) {
    return problem(403, "the Host must be an IP address or localhost");
  }
  return method === "GET" || method === "HEAD"
    ? undefined
    : problem(405, "the admin server only reads: use GET");
}

/** DNS rebinding needs a name that the attacker controls; addresses and localhost are none. */
function isLocalName(host: string): boolean {
  const name = host.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return name === "localhost" || isIP(name) !== 0;
}

function route(
  request: IncomingMessage,
  response: ServerResponse,
  routes: ReadonlyMap<string, AdminEndpoint>,
): AdminAnswer | undefined {
  const [path = "/", query = ""] = (request.url ?? "/").split("?", 2);
  const endpoint = routes.get(path);
  if (endpoint !== undefined) return endpoint.handle(new URLSearchParams(query), { request, response });
  const list = [...routes.values()].map(({ path: at, summary }) => ({ path: at, summary }));
  return path === "/"
    ? json({ endpoints: list })
    : problem(404, `there is nothing at ${path}; / lists what there is`);
}
