/** HTTP echo servers for the EndpointSlices of the example; each answer names its Service. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { EndpointSlice } from "../../api/core.ts";
import type { Resource } from "../../api/resource.ts";
import { CannotRun } from "../foundation/command.ts";

export const DEMO_LABEL = "mergeway.dev/demo-backend";

/** Resolves when all of them listen. */
export async function startDemoBackends(resources: Iterable<Resource>): Promise<{ close(): void }> {
  const servers: Server[] = [];
  try {
    for (const resource of resources) {
      if (resource.kind !== "EndpointSlice" || resource.metadata.labels?.[DEMO_LABEL] === undefined) continue;
      for (const { address, port } of socketsOf(resource)) {
        servers.push(await startBackend(address, port, serviceOf(resource)));
      }
    }
  } catch (error) {
    for (const server of servers) server.close();
    throw error;
  }
  return {
    close: () => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

function* socketsOf({
  endpoints = [],
  ports = [],
}: EndpointSlice): Generator<{ address: string; port: number }> {
  for (const { addresses } of endpoints) {
    for (const address of addresses)
      for (const { port } of ports) if (port !== undefined) yield { address, port };
  }
}

function serviceOf({ metadata }: EndpointSlice): string {
  return `${metadata.namespace}/${metadata.labels?.["kubernetes.io/service-name"] ?? metadata.name}`;
}

async function startBackend(address: string, port: number, service: string): Promise<Server> {
  const server = createServer(({ method, url, headers }, response) => {
    response.setHeader("content-type", "application/json");
    const { host, "x-forwarded-for": client, "x-forwarded-proto": scheme } = headers;
    response.end(`${JSON.stringify({ service, method, path: url, host, client, scheme })}\n`);
  });
  server.listen(port, address);
  try {
    await once(server, "listening");
  } catch (error) {
    throw new CannotRun(
      `the demo backend of Service ${service} cannot listen on ${address}:${port}: ${(error as Error).message}`,
      "Stop whatever uses the port, or give the EndpointSlice another one.",
    );
  }
  return server;
}
