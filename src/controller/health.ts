import { createServer, type Server } from "node:http";

/** Probes: `/healthz` while the process runs, `/readyz` while it should get traffic. */
export function openHealthServer(address: string, isReady: () => boolean): Promise<Server> {
  const server = createServer((request, response) => {
    const ok = request.url === "/healthz" || (request.url === "/readyz" && isReady());
    response.writeHead(ok ? 200 : request.url === "/readyz" ? 503 : 404).end(ok ? "ok\n" : "no\n");
  });
  const at = address.lastIndexOf(":");
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(Number(address.slice(at + 1)), address.slice(0, at), () => resolve(server));
  });
}
