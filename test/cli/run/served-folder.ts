/** A folder of one Gateway and its teams, served by `mergeway run` in a process of its own. */
import { once } from "node:events";
import { createServer, type RequestListener, request } from "node:http";
import { onTestFinished } from "vitest";
import { type Running, start } from "../mergeway.ts";

export function gateway(port: number): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: mergeway
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: own, port: ${port}, protocol: HTTP, hostname: infra.example.com}]
`;
}

export interface Team {
  readonly name: string;
  readonly port: number;
  readonly backend: number;
  readonly hostname?: string;
}

export function team({ name, port, backend, hostname = `${name}.example.com` }: Team): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: web, namespace: ${name}}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners: [{name: http, port: ${port}, protocol: HTTP, hostname: ${hostname}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: ${name}}
spec: {parentRefs: [{kind: ListenerSet, name: web}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: ${name}}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: ${name}, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1]}]
ports: [{port: ${backend}}]
`;
}

export async function backend(answer: RequestListener): Promise<number> {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as { port: number }).port;
}

/** A backend that answers every request with this text. */
export function saying(text: string): RequestListener {
  return (_request, response) => void response.end(text);
}

export interface Got {
  readonly status: number;
  readonly body: string;
}

export async function get(port: number, host: string, path = "/"): Promise<Got> {
  const { promise, resolve, reject } = Promise.withResolvers<Got>();
  const sent = request(
    { port, host: "127.0.0.1", path, headers: { host }, agent: false },
    async (response) => {
      let body = "";
      for await (const chunk of response) body += String(chunk);
      resolve({ status: response.statusCode ?? 0, body });
    },
  );
  sent.on("error", reject);
  sent.end();
  return await promise;
}

export function serve(path: string, ...flags: string[]): Running {
  return start(["run", path, "--address", "127.0.0.1", "--admin-address", "off", ...flags]);
}
