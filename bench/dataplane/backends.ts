import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { lastingPort } from "../../test/dataplanes/support/lasting-port.ts";
import { isInstalled, OTHERS_CORE, startPinned, stop, until } from "./machine.ts";

/** Whoever answers behind the contestants, and counts. */
export interface Backends {
  readonly httpPort: number;
  readonly grpcPort: number;
  httpAnswered(): Promise<number>;
  grpcAnswered(): Promise<number>;
  close(): Promise<void>;
}

/**
 * nginx answers HTTP/1.1 where it is installed: it takes the least of the core that clients and
 * backends share.
 */
export async function startBackends(folder: string): Promise<Backends> {
  const httpPort = await lastingPort();
  const grpcPort = await lastingPort();
  const nginx = isInstalled("nginx") ? startNginx(folder, httpPort) : undefined;
  const script = new URL("./backend-process.ts", import.meta.url).pathname;
  const ports = nginx === undefined ? [grpcPort, httpPort] : [grpcPort];
  const node = startPinned(OTHERS_CORE, [process.execPath, script, ...ports.map(String)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  await once(node, "message");
  const httpAnswered = (): Promise<number> =>
    nginx === undefined ? answeredBy(node, "http") : answeredByNginx(httpPort);
  await until("the HTTP backend", () => httpAnswered().then(Number.isFinite, () => false), 10_000);
  return {
    httpPort,
    grpcPort,
    httpAnswered,
    grpcAnswered: () => answeredBy(node, "grpc"),
    close: async () => {
      await stop(node);
      if (nginx !== undefined) await stop(nginx);
    },
  };
}

async function answeredBy(child: ChildProcess, protocol: "grpc" | "http"): Promise<number> {
  child.send("how many?");
  const [answered] = (await once(child, "message")) as [Readonly<Record<string, number>>];
  return answered[protocol] ?? 0;
}

/** Of its three numbers (accepts, handled, requests) the last. */
async function answeredByNginx(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/status`)).text();
  return Number(/\n\s*\d+ \d+ (\d+)/.exec(text)?.[1]);
}

function startNginx(folder: string, port: number): ChildProcess {
  const file = join(folder, "backend.conf");
  writeFileSync(join(folder, "large.bin"), "x".repeat(16 * 1024));
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/backend.pid; error_log stderr error;
events { worker_connections 16384; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 300s; default_type text/plain; sendfile on;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location = /status { stub_status; }
    location ~ /large$ { root ${folder}; rewrite ^ /large.bin break; }
    location / { return 200 "${"x".repeat(100)}"; }
  }
}
`,
  );
  return startPinned(OTHERS_CORE, ["nginx", "-c", file, "-p", folder]);
}
