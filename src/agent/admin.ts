import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

export interface PodAdmin {
  readonly isStarted: () => boolean;
  readonly isReady: () => boolean;
  /** The token that a drain request must have; without one, no request may drain the pod. */
  readonly drain?: { readonly token: string; readonly run: () => Promise<void> };
}

/**
 * What the kubelet asks a pod: `/healthz` while the process runs, `/startz` when there is a plan,
 * `/readyz` while it should get traffic, and `/drain` before it stops what serves, answered when
 * that may be stopped.
 */
export function openPodAdmin(address: string, admin: PodAdmin): Promise<Server> {
  const server = createServer((request, response) => {
    switch (request.url) {
      case "/healthz":
        return answer(response, 200);
      case "/startz":
        return answer(response, admin.isStarted() ? 200 : 503);
      case "/readyz":
        return answer(response, admin.isReady() ? 200 : 503);
      case "/drain":
        return void drain(request, response, admin.drain);
      default:
        return answer(response, 404);
    }
  });
  const at = address.lastIndexOf(":");
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(Number(address.slice(at + 1)), address.slice(0, at), () => resolve(server));
  });
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
