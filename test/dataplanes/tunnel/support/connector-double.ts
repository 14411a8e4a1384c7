/**
 * A stand-in for cloudflared, as a program with the same arguments and environment: it connects to
 * the edge, is the HTTP/2 server of that connection, registers, takes configurations and sends
 * requests to the service of the rule that matches.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import {
  type IncomingHttpHeaders as Headers,
  type Http2Session,
  performServerHandshake,
  type ServerHttp2Stream,
} from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import type { TunnelConfiguration } from "../../../../src/dataplanes/tunnel/cloudflare/tunnel-configuration.ts";
import { MessageReader } from "./capnp.ts";
import { forwardToOrigin } from "./connector-forwarding.ts";
import { configurationProblem, matchingRule } from "./ingress-rules.ts";
import { bootstrapCall, readToConnector, registerCall, unregisterCall } from "./registration.ts";

const UPGRADE = "cf-cloudflared-proxy-connection-upgrade";
const EDGE_NAME = "h2.cftunnel.com";
const RECONNECT_MS = 50;
const DRAIN_MS = 5_000;

interface Token {
  readonly a: string;
  readonly t: string;
  readonly s: string;
}

const connector = randomUUID();
const ready = new Map<number, () => void>();
let version = -1;
let configuration: TunnelConfiguration = { ingress: [{ service: "http_status:503" }] };
let stopping = false;
/** Clients' requests that are under way. */
let open = 0;

const token = readToken(process.env["TUNNEL_TOKEN"]);
const [host = "", port = ""] = (process.env["TUNNEL_EDGE"] ?? "").split(":");
const ca = readFileSync(process.env["TUNNEL_CACERT"] ?? "", "utf8");
const [metricsHost = "127.0.0.1", metricsPort = "0"] = (option("--metrics") ?? "").split(":");

const metrics = createServer((_request, response) => {
  const body = { status: ready.size > 0 ? 200 : 503, readyConnections: ready.size, connectorId: connector };
  response.writeHead(body.status, { "content-type": "application/json" }).end(JSON.stringify(body));
});
metrics.listen(Number(metricsPort), metricsHost);

process.once("SIGTERM", () => void stop());
for (let index = 0; index < Number(option("--ha-connections") ?? 4); index++) void keepConnected(index);

function option(name: string): string | undefined {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
}

function readToken(text: string | undefined): Token {
  try {
    return JSON.parse(Buffer.from(text ?? "", "base64").toString()) as Token;
  } catch {
    console.error("Provided Tunnel token is not valid.");
    process.exit(255);
  }
}

/** Leaves the edge in order: no further requests, and what is under way may finish. */
async function stop(): Promise<void> {
  stopping = true;
  for (const unregister of ready.values()) unregister();
  await sleep(20);
  for (let waited = 0; open > 0 && waited < DRAIN_MS; waited += 20) await sleep(20);
  process.exit(0);
}

async function keepConnected(index: number): Promise<void> {
  while (!stopping) {
    await connectOnce(index);
    ready.delete(index);
    await sleep(RECONNECT_MS);
  }
}

function connectOnce(index: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = connectTls({ host, port: Number(port), ca, servername: EDGE_NAME });
    socket.once("error", () => resolve());
    socket.once("secureConnect", () => {
      const session = performServerHandshake(socket) as Http2Session;
      session.on("error", () => {});
      session.on("close", () => resolve());
      session.on("stream", (stream, headers) => {
        stream.on("error", () => {});
        serve(stream as ServerHttp2Stream, headers, index);
      });
    });
  });
}

function serve(stream: ServerHttp2Stream, headers: Headers, index: number): void {
  const upgrade = headers[UPGRADE];
  if (upgrade === "control-stream") register(stream, index);
  else if (upgrade === "update-configuration") void configure(stream);
  else {
    const hostname = String(headers[":authority"] ?? headers.host ?? "").replace(/:\d+$/, "");
    const path = String(headers[":path"]).replace(/\?.*$/, "");
    open++;
    stream.on("close", () => open--);
    const rule = matchingRule(configuration.ingress ?? [], hostname, path) ?? { service: "http_status:503" };
    forwardToOrigin(stream, headers, { rule, websocket: upgrade === "websocket" });
  }
}

function register(stream: ServerHttp2Stream, index: number): void {
  stream.respond({ ":status": 200 });
  const registration = {
    account: token.a,
    secret: Buffer.from(token.s, "base64"),
    tunnel: token.t,
    index,
    connector,
  };
  stream.write(bootstrapCall(0));
  stream.write(registerCall(1, 0, registration));
  const reader = new MessageReader();
  stream.on("data", (chunk: Buffer) => {
    for (const message of reader.push(chunk).map(readToConnector)) {
      if (message === undefined || message.question !== 1) continue;
      if ("refused" in message) {
        console.error(`Register tunnel error from server side: ${message.refused}`);
        process.exit(1);
      }
      ready.set(index, () => stream.write(unregisterCall(2, 0)));
    }
  });
}

/** Older versions are ignored, and what cannot be taken leaves the old configuration in place. */
async function configure(stream: ServerHttp2Stream): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  const update = JSON.parse(Buffer.concat(chunks).toString()) as {
    version: number;
    config: TunnelConfiguration;
  };
  const problem = configurationProblem(update.config);
  if (update.version > version && problem === undefined) {
    version = update.version;
    configuration = update.config;
  }
  stream.respond({ ":status": 200 });
  stream.end(JSON.stringify({ lastAppliedVersion: version, err: problem === undefined ? null : {} }));
}
