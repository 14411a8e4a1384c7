import { CannotRun, type Command, defineCommand, type Host } from "../foundation/command.ts";
import { adminPlace, DEFAULT_ADMIN } from "../run/admin-place.ts";
import type { MakePlane } from "../run/served-plane.ts";

export const runCommand: Command = defineCommand({
  name: "run",
  summary: "serve a folder of manifests, and follow its changes",
  about: [
    "Merges the manifests, opens the ports and serves. Every change of a file takes effect at once and is reported in a line; connections",
    "that it does not concern stay open. A file that cannot be read is reported, and what was served of it stays as it was.",
    "The first SIGINT or SIGTERM lets requests in flight finish, a second one ends the process at once.",
  ].join("\n"),
  arguments: [{ name: "PATH", help: "files or folders", count: "some" }],
  flags: {
    address: {
      type: "text",
      value: "ADDRESS",
      default: "0.0.0.0",
      help: "address on which the ports are opened",
    },
    "port-offset": {
      type: "number",
      value: "N",
      default: 0,
      min: 0,
      max: 64_511,
      help: "open every port N higher than its listener says, for users who may not open low ones",
    },
    workers: {
      type: "text",
      value: "N|auto",
      default: "auto",
      help: "threads that serve, auto for one per core; 0 serves in the main thread, which then also reads files and answers the admin server",
    },
    "admin-address": {
      type: "text",
      value: "ADDRESS:PORT",
      default: DEFAULT_ADMIN,
      help: "where the admin server listens; off for none",
    },
    "data-plane": {
      type: "choice",
      values: ["embedded", "envoy", "tunnel"],
      default: "embedded",
      help: "serve on ports of this machine, from within or by Envoy, or through Cloudflare Tunnel (CLOUDFLARE_API_TOKEN and CLOUDFLARE_ACCOUNT_ID)",
    },
    envoy: {
      type: "text",
      value: "FILE",
      default: "envoy",
      help: "Envoy's program, where it is not on the PATH",
    },
    "tunnel-prefix": {
      type: "text",
      value: "WORD",
      default: "mergeway",
      help: "a Gateway's tunnel is found, or made, under the name WORD.NAMESPACE.NAME",
    },
    "tunnel-port": {
      type: "number",
      value: "PORT",
      default: 8880,
      min: 1024,
      max: 65_000,
      help: "loopback ports for connectors, two per Gateway, from here on",
    },
    "tunnel-delete": { type: "switch", help: "delete the tunnel of a Gateway whose manifest goes away" },
    cloudflared: {
      type: "text",
      value: "FILE",
      default: "cloudflared",
      help: "the connector's program, where it is not on the PATH",
    },
    "log-format": {
      type: "choice",
      values: ["pretty", "json"],
      default: "pretty",
      help: "how events are logged, on standard error",
    },
    "access-log": {
      type: "text",
      value: "FILE",
      help: "append a line per request to FILE, or - for standard output",
      bare: "-",
    },
    "access-log-format": {
      type: "text",
      value: "FORMAT",
      help: "json, or a text with %fields%; when not given, json with --log-format json and a line for people else",
    },
    "traces-to": {
      type: "text",
      value: "URL",
      help: "send a span of each request to a collector that speaks OTLP over HTTP, such as http://127.0.0.1:4318",
    },
    "trace-percentage": {
      type: "number",
      value: "N",
      default: 100,
      min: 0,
      max: 100,
      help: "how many of 100 requests are traced",
    },
    "status-dir": { type: "text", value: "DIR", help: "keep the status of every object in DIR, a file each" },
    grace: {
      type: "number",
      value: "SECONDS",
      default: 10,
      min: 0,
      max: 3600,
      help: "time for requests in flight when it stops",
    },
  },
  examples: [
    { line: "mergeway run examples/two-teams", says: "serve a folder" },
    {
      line: "mergeway run gateway/ teams/ --status-dir status --access-log",
      says: "with statuses as files and a line per request",
    },
    {
      line: "mergeway run gateway/ --port-offset 8000 --log-format json",
      says: "ports 80 and 443 become 8080 and 8443; logs for machines",
    },
    {
      line: "mergeway run gateway/ teams/ --data-plane envoy --envoy /usr/local/bin/envoy",
      says: "with Envoy, one process for each Gateway",
    },
    {
      line: "CLOUDFLARE_ACCOUNT_ID=… CLOUDFLARE_API_TOKEN=… mergeway run gateway/ teams/ --data-plane tunnel",
      says: "through Cloudflare Tunnel, without an open port",
    },
  ],
  exits: { 0: "stopped when it was told to", 2: "could not run" },
  run: async ({ args, flags }, host) => {
    const { serve } = await import("../run/serve.ts");
    return await serve(
      {
        paths: args,
        address: flags.address,
        portOffset: flags["port-offset"],
        workers: readWorkers(flags.workers),
        admin: adminPlace(flags["admin-address"]),
        logFormat: flags["log-format"],
        accessLog: flags["access-log"],
        accessLogFormat: flags["access-log-format"],
        tracesTo: flags["traces-to"],
        tracePercentage: flags["trace-percentage"],
        statusDirectory: flags["status-dir"],
        graceSeconds: flags.grace,
        ...(flags["data-plane"] === "tunnel" ? { makePlane: await tunnels(flags, host) } : {}),
        ...(flags["data-plane"] === "envoy" ? { makePlane: await envoys(flags, host) } : {}),
      },
      host,
    );
  },
});

async function envoys(
  flags: {
    readonly envoy: string;
    readonly address: string;
    readonly "port-offset": number;
    readonly grace: number;
  },
  host: Host,
): Promise<MakePlane> {
  const { envoyPlane } = await import("../run/envoy-plane.ts");
  return envoyPlane({
    program: flags.envoy,
    path: host.env["PATH"] ?? "",
    address: flags.address,
    portOffset: flags["port-offset"],
    graceSeconds: flags.grace,
    isDebugged: Boolean(host.env["MERGEWAY_DEBUG"]),
  });
}

async function tunnels(
  flags: {
    readonly "tunnel-prefix": string;
    readonly "tunnel-port": number;
    readonly "tunnel-delete": boolean;
    readonly cloudflared: string;
  },
  host: Host,
): Promise<MakePlane> {
  const { tunnelPlane } = await import("../run/tunnel-plane.ts");
  return tunnelPlane(
    {
      prefix: flags["tunnel-prefix"],
      firstPort: flags["tunnel-port"],
      cloudflared: [flags.cloudflared],
      deleteWithGateway: flags["tunnel-delete"],
    },
    host,
  );
}

function readWorkers(text: string): number | "auto" {
  if (text === "auto") return "auto";
  if (/^\d{1,3}$/.test(text)) return Number(text);
  throw new CannotRun(
    `run: --workers cannot be ${JSON.stringify(text)}`,
    "Use a whole number from 0 to 999, or auto.",
  );
}
