/**
 * The admin server: health, metrics, the merged state as JSON and as a page. It is read-only, shows
 * no secrets, and is meant for loopback.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { AdminState } from "../admin-state.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { BROWSER_HEADERS, refusal } from "./browser-rules.ts";
import { type AdminAnswer, type AdminEndpoint, type FileBody, file, json, problem } from "./endpoint.ts";
import { EventStream } from "./events.ts";
import { PageFiles } from "./page-files.ts";
import type { AdminSession } from "./session.ts";
import { stateEndpoints } from "./state-endpoints.ts";

export interface AdminOptions {
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  readonly metrics: Metrics;
  /** Who may ask; absent: whoever reaches the server. */
  readonly session?: AdminSession;
}

export interface AdminServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Rejects when the address cannot be opened. */
export async function startAdmin(admin: AdminState, options: AdminOptions): Promise<AdminServer> {
  const events = new EventStream(admin);
  const routes = new Map(adminEndpoints(admin, options.metrics, events).map((each) => [each.path, each]));
  const { metrics, session } = options;
  const shown = { admin, metrics, session, routes, files: new PageFiles() };
  const server = createServer({ requestTimeout: 10_000, maxHeaderSize: 8_192 }, (request, response) => {
    void serve({ request, response }, shown);
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
    {
      path: "/metrics/state",
      summary:
        "The state of every object as metrics, with the names of gateway-api-state-metrics; [metrics.md](metrics.md) lists them.",
      answer: "the text format of Prometheus, compressed where gzip is accepted; 404 from `mergeway page`",
      handle: (_query, { request, response }) => {
        if (admin.exposition === undefined) return problem(404, "the controller has these metrics");
        void admin.exposition.answer(request, response);
        return undefined;
      },
    },
    ...stateEndpoints(admin),
    {
      path: "/api/v1/traffic",
      summary: "Requests by listener since the start; listeners without any are left out.",
      answer: "`{items: [{listener, requests, errors}]}`; `errors` are answers with 5xx",
      handle: () => json({ items: metrics.traffic.byListener() }),
    },
    events.endpoint,
  ];
}

interface Shown {
  readonly admin: AdminState;
  readonly metrics: Metrics;
  readonly session: AdminSession | undefined;
  readonly routes: ReadonlyMap<string, AdminEndpoint>;
  readonly files: PageFiles;
}

async function serve(
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  shown: Shown,
): Promise<void> {
  try {
    for (const [name, value] of Object.entries(BROWSER_HEADERS)) response.setHeader(name, value);
    const refused = refusal(request);
    if (refused === undefined && shown.session?.opens(request, response) === true) return;
    const answer = refused ?? shown.session?.refusal(request) ?? route(request, response, shown);
    if (answer === undefined) return;
    const { contentType, text } = await contentOf(answer, shown);
    response.writeHead(answer.status, {
      "content-type": contentType,
      "cache-control": "no-store",
      ...(answer.status === 405 ? { allow: "GET, HEAD" } : {}),
    });
    response.end(request.method === "HEAD" ? undefined : text);
  } catch {
    // A bug in the admin server must not end the process: it serves traffic.
    if (!response.headersSent) response.writeHead(500);
    response.end();
  }
}

async function contentOf({ type, body }: AdminAnswer, { admin, metrics }: Shown): Promise<FileBody> {
  switch (type) {
    case "metrics":
      return { contentType: metrics.contentType, text: await metrics.text(admin) };
    case "file": {
      const { contentType, text } = body as FileBody;
      return { contentType: `${contentType}; charset=utf-8`, text };
    }
    case "text/plain":
      return { contentType: "text/plain; charset=utf-8", text: String(body) };
    case "application/json":
      return {
        contentType: "application/json; charset=utf-8",
        text: `${JSON.stringify(body, null, 2)}\n`,
      };
  }
}

function route(
  request: IncomingMessage,
  response: ServerResponse,
  { routes, files }: Shown,
): AdminAnswer | undefined {
  const [path = "/", query = ""] = (request.url ?? "/").split("?", 2);
  const endpoint = routes.get(path);
  if (endpoint !== undefined) return endpoint.handle(new URLSearchParams(query), { request, response });
  if (path === "/") response.setHeader("vary", "accept");
  const found = path !== "/" || wantsHtml(request) ? files.get(path) : undefined;
  if (found !== undefined) return file(found);
  const list = [...routes.values()].map(({ path: at, summary }) => ({ path: at, summary }));
  return path === "/"
    ? json({ endpoints: list })
    : problem(404, `there is nothing at ${path}; / lists what there is`);
}

/** Browsers ask so when a person opens an address; curl and programs do not. */
function wantsHtml({ headers }: IncomingMessage): boolean {
  return headers.accept?.includes("text/html") === true;
}
