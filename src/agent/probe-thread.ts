/**
 * A thread that answers the kubelet's probes, for pods that serve in threads of their own: those
 * serve on while the main thread takes a large plan, and the pod must stay ready. It repeats what
 * the main thread said last. Whatever is no probe is passed on to the main thread.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { parentPort, workerData } from "node:worker_threads";
import { listen, PROBES } from "./admin.ts";

export interface ProbeSetup {
  /** `host:port`. */
  readonly address: string;
  /** An answer for each of `PROBES`: 1 is yes. */
  readonly answers: Int32Array<SharedArrayBuffer>;
  /** The socket of the main thread's server. */
  readonly socketPath: string;
}

const { address, answers, socketPath } = workerData as ProbeSetup;

const server = createServer((incoming, response) => {
  const probe = PROBES.findIndex(({ path }) => path === incoming.url);
  if (probe < 0) passOn(incoming, response);
  else if (Atomics.load(answers, probe) === 1) response.writeHead(200).end("ok\n");
  else response.writeHead(503).end("no\n");
});

listen(server, address).then(
  () => parentPort?.postMessage(server.address()),
  (error: unknown) => {
    throw error;
  },
);

function passOn(incoming: IncomingMessage, response: ServerResponse): void {
  const { method, url, headers } = incoming;
  const outgoing = request({ socketPath, method, path: url, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
    answer.on("error", () => response.destroy());
  });
  outgoing.on("error", () => {
    if (response.headersSent) response.destroy();
    else response.writeHead(503).end();
  });
  response.on("close", () => outgoing.destroy());
  incoming.pipe(outgoing);
}
