/**
 * gRPC's interoperability cases with grpc-go's client and server (grpc's
 * doc/interop-test-descriptions.md).
 */

import { join } from "node:path";
import { lastingPort } from "../test/dataplanes/support/lasting-port.ts";
import type { Target } from "./contestants.ts";
import { installGo } from "./install.ts";
import { finish, lastLines, serve } from "./program.ts";
import type { Backend, Case, Room, Suite } from "./suite.ts";

const VERSION = "v1.85.0";

/**
 * All that need no credentials of a cloud and no server that tells its own name (pick_first_unary).
 */
const CASES: readonly string[] = [
  "empty_unary",
  "large_unary",
  "client_streaming",
  "server_streaming",
  "ping_pong",
  "empty_stream",
  "timeout_on_sleeping_server",
  "cancel_after_begin",
  "cancel_after_first_response",
  "status_code_and_message",
  "special_status_message",
  "custom_metadata",
  "unimplemented_method",
  "unimplemented_service",
  "orca_per_rpc",
  "orca_oob",
];

/** The policy of the client that reads backend metrics. */
const ORCA = JSON.stringify({ loadBalancingConfig: [{ test_backend_metrics_load_balancer: {} }] });

/** Seconds for one case. */
const LIMIT = 180;

/** An address, because a name is looked up anew for every channel. */
const SERVER: readonly string[] = ["-server_host", "127.0.0.1"];

const SOAKS: readonly string[] = ["rpc_soak", "channel_soak"];

const programs = installGo.bind(undefined, {
  name: "grpc-interop",
  version: VERSION,
  module: "google.golang.org/grpc",
  packages: ["/interop/client", "/interop/server"],
});

export const grpcInterop: Suite = {
  name: "grpc-interop",
  source: `google.golang.org/grpc/interop ${VERSION}`,
  about: "gRPC's interoperability cases and soaks, with the client and the server of grpc-go.",
  short: true,
  install: async () => void (await programs()),
  start,
  run,
};

async function start(room: Room): Promise<readonly Backend[]> {
  const command = (await programs())("server");
  const [port, tlsPort] = [await lastingPort(), await lastingPort()];
  const { cert, key } = room.certificates;
  const tls = ["-use_tls", "-tls_cert_file", cert, "-tls_key_file", key];
  for (const [at, flags] of [[port, []] as const, [tlsPort, tls] as const]) {
    const log = join(room.folder, `server-${at}.log`);
    const server = await serve({ command, args: ["-port", String(at), ...flags] }, log, at);
    room.keep(server.end);
  }
  return [{ name: "grpc", protocol: "grpc", port, tlsPort }];
}

async function run(target: Target, room: Room): Promise<readonly Case[]> {
  const { http, https } = target.address("grpc");
  const command = (await programs())("client");
  const parts = [
    { part: "cleartext", port: http, flags: [] as readonly string[] },
    ...(https === undefined
      ? []
      : [
          { part: "TLS", port: https, flags: ["-use_tls", "-use_test_ca", "-ca_file", room.certificates.ca] },
        ]),
  ];
  const cases: Case[] = [];
  for (const { part, port, flags } of parts) {
    for (const name of [...CASES, ...SOAKS]) {
      const own = ownFlags(name, room.short);
      const args = [...SERVER, "-server_port", String(port), "-test_case", name, ...flags, ...own];
      const log = join(room.folder, `${target.contestant}-${part}-${name}.log`);
      const { code, output } = await finish({ command, args }, log, LIMIT);
      const said = code === undefined ? `no end within ${LIMIT} s` : reasonIn(output);
      cases.push({
        part,
        name,
        ...(code === 0 ? { outcome: "passed" } : { outcome: "failed", reason: said }),
      });
    }
  }
  return cases;
}

function ownFlags(name: string, short: boolean): readonly string[] {
  if (name.startsWith("orca_")) return ["-service_config_json", ORCA];
  return SOAKS.includes(name) ? soakFlags(name, short) : [];
}

/**
 * A soak asks how many calls fail, not how long one takes: the limits of time only keep it from
 * hanging.
 */
function soakFlags(name: string, short: boolean): readonly string[] {
  // Every call of a channel soak has a connection of its own.
  const iterations = name === "channel_soak" ? 100 : 1_000;
  const flags = {
    soak_iterations: short ? iterations / 5 : iterations,
    soak_num_threads: 5,
    soak_max_failures: 0,
    soak_per_iteration_max_acceptable_latency_ms: 60_000,
    soak_overall_timeout_seconds: LIMIT - 10,
  };
  return Object.entries(flags).flatMap(([flag, value]) => [`-${flag}`, String(value)]);
}

/** The client ends with a line FATAL; a soak that fails counts above its histogram. */
export function reasonIn(output: string): string {
  const line =
    /FATAL: (?:\[interop\] )?(.+)/.exec(output)?.[1] ?? /soak test successes: .+/.exec(output)?.[0];
  return line ?? (lastLines(output, 1) || "ended without a word");
}
