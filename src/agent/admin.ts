import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

export interface PodAdmin {
  readonly isStarted: () => boolean;
  readonly isReady: () => boolean;
  /** Absent: nobody is told. */
  readonly metrics?: { readonly contentType: string; readonly text: () => Promise<string> };
  /** The token that a drain request must have; without one, no request may drain the pod. */
  readonly drain?: { readonly token: string; readonly run: () => Promise<void> };
}

/** The kubelet's probes: the process runs, there is a plan, clients may come. */
export const PROBES: readonly { readonly path: string; readonly isGood: (admin: PodAdmin) => boolean }[] = [
  { path: "/healthz", isGood: () => true },
  { path: "/startz", isGood: ({ isStarted }) => isStarted() },
  { path: "/readyz", isGood: ({ isReady }) => isReady() },
];

/**
 * What a pod is asked: the probes, and `/drain` before the kubelet stops what serves, answered when
 * that may be stopped. Prometheus asks for `/metrics`. `address` is `host:port`, or the path of a
 * socket.
 */
export async function openPodAdmin(address: string, admin: PodAdmin): Promise<Server> {
  const server = createServer((request, response) => {
    const probe = PROBES.find(({ path }) => path === request.url);
    if (probe !== undefined) return answer(response, probe.isGood(admin) ? 200 : 503);
    switch (request.url) {
      case "/metrics":
        return admin.metrics === undefined
          ? answer(response, 404)
          : void showMetrics(response, admin.metrics);
      case "/drain":
        return void drain(request, response, admin.drain);
      default:
        return answer(response, 404);
    }
  });
  await listen(server, address);
  return server;
}

export function listen(server: Server, address: string): Promise<void> {
  const at = address.lastIndexOf(":");
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    if (address.startsWith("/")) server.listen(address, resolve);
    else server.listen(Number(address.slice(at + 1)), address.slice(0, at), resolve);
  });
}

async function showMetrics(
  response: ServerResponse,
  { contentType, text }: NonNullable<PodAdmin["metrics"]>,
): Promise<void> {
  try {
    const shown = await text();
    response.writeHead(200, { "content-type": contentType }).end(shown);
  } catch {
    response.writeHead(500).end();
  }
}

async function drain(
  request: IncomingMessage,
  response: ServerResponse,
  how: PodAdmin["drain"],
): Promise<void> {
  if (how === undefined || !mayDrain(request, how.token)) return answer(response, 403);
  await how.run();
  answer(response, 200);
}

function mayDrain({ headers }: IncomingMessage, token: string): boolean {
  const shown = Buffer.from(headers.authorization ?? "");
  const expected = Buffer.from(`Bearer ${token}`);
  return token !== "" && shown.length === expected.length && timingSafeEqual(shown, expected);
}

function answer(response: ServerResponse, status: number): void {
  response.writeHead(status).end(status === 200 ? "ok\n" : "no\n");
}
