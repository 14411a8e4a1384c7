/**
 * A server under test for the runner: a real one, reached through the gateway. The runner starts it
 * anew for every combination of protocol, HTTP version and TLS, and tells it which on standard
 * input; it has ten seconds to answer, so the gateway runs already.
 */

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { framed, readFramed, readServerPort, readServerRequest, serverResponse } from "./messages.ts";

export interface Route {
  /** Where the server has to listen. */
  readonly backend: number;
  /** Where the gateway listens. */
  readonly http: number;
  readonly https: number;
}

/** Given by suite.ts as the only argument, in JSON. */
export interface ServerOptions {
  readonly program: string;
  readonly http1: Route;
  readonly http2: Route;
  readonly ca: string;
}

const options = JSON.parse(process.argv[2] ?? "") as ServerOptions;
const request = readServerRequest(await readFramed(process.stdin));
const route = request.http2 ? options.http2 : options.http1;

const server = spawn(options.program, ["-port", String(route.backend)], {
  stdio: ["pipe", "pipe", "inherit"],
});
server.once("exit", (code) => process.exit(code ?? 1));
process.once("SIGTERM", () => server.kill());
server.stdin.write(framed(request.cleartext));
const port = readServerPort(await readFramed(server.stdout));
if (port !== route.backend) throw new Error(`the server listens on ${port} instead of ${route.backend}`);
const answer = request.tls
  ? serverResponse(route.https, readFileSync(options.ca, "utf8"))
  : serverResponse(route.http, undefined);
process.stdout.write(framed(answer));
