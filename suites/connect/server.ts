/**
 * A server under test for the runner: a real one behind a gateway of its own. The runner starts it anew for every combination of
 * protocol, HTTP version and TLS, and tells it which on standard input.
 */

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startContestant } from "../contestants.ts";
import type { Backend } from "../suite.ts";
import { framed, readFramed, readServerPort, readServerRequest, serverResponse } from "./messages.ts";

/** Given by suite.ts as its only argument, in JSON. */
export interface ServerOptions {
  readonly contestant: "embedded" | "envoy";
  readonly program: string;
  /** Whether the routes are GRPCRoutes. */
  readonly grpc: boolean;
  readonly folder: string;
}

const options = JSON.parse(process.argv[2] ?? "") as ServerOptions;
const { contestant, program, folder } = options;
const request = readServerRequest(await readFramed(process.stdin));

const server = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
server.stdin.write(framed(request.cleartext));
const port = readServerPort(await readFramed(server.stdout));

const protocol: Backend["protocol"] = options.grpc ? "grpc" : request.http2 ? "h2c" : "http";
const certificates = {
  ca: join(folder, "ca.crt"),
  cert: join(folder, "tls.crt"),
  key: join(folder, "tls.key"),
};
const place = { folder: mkdtempSync(join(folder, "connect-")), certificates };
const target = await startContestant(contestant, [{ name: "connect", protocol, port }], place);
const { http, https = http } = target.address("connect");
const answer = request.tls
  ? serverResponse(https, readFileSync(certificates.ca, "utf8"))
  : serverResponse(http, undefined);
process.stdout.write(framed(answer));

process.once("SIGTERM", () => {
  server.kill();
  void target.end().then(() => process.exit(0));
});
