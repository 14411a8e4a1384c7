/**
 * Connect's conformance suite: the Connect, gRPC and gRPC-Web protocols over HTTP/1.1 and HTTP/2.
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { lastingPort } from "../../test/dataplanes/support/lasting-port.ts";
import type { Target } from "../contestants.ts";
import { installGo } from "../install.ts";
import { finish, lastLines } from "../program.ts";
import { type Backend, type Case, type Room, type Suite, SuiteFailure } from "../suite.ts";
import type { Route, ServerOptions } from "./server.ts";

const VERSION = "v1.0.5";

const programs = installGo.bind(undefined, {
  name: "connect-conformance",
  version: VERSION,
  module: "connectrpc.com/conformance",
  packages: ["/cmd/connectconformance", "/cmd/referenceserver", "/cmd/grpcserver"],
});

export const connect: Suite = {
  name: "connect",
  source: `connectrpc.com/conformance ${VERSION}`,
  about:
    "The protocols Connect, gRPC and gRPC-Web over HTTP/1.1 and HTTP/2, with a server of connect-go and one of grpc-go.",
  short: false,
  install: async () => void (await programs()),
  // The runner starts the servers. It asks by address, so each of them needs a listener of its own.
  start: async () => {
    const backends: Backend[] = [];
    for (const [name, protocol] of Object.entries(BACKENDS)) {
      backends.push({ name, protocol, port: await lastingPort(), ownListener: true });
    }
    return backends;
  },
  async run(target, room) {
    const parts: Case[] = [];
    for (const server of SERVERS) parts.push(...(await runServer(server, target, room)));
    return parts;
  },
};

const BACKENDS = { http1: "http", http2: "h2c", grpc: "grpc" } as const;

interface Server {
  readonly part: string;
  readonly program: string;
  /** Which backend serves HTTP/2. */
  readonly http2: keyof typeof BACKENDS;
  readonly features: Readonly<Record<string, unknown>>;
  /**
   * What the server itself answers otherwise than the suite asks; its own list is in the module's
   * folder `testing`.
   */
  readonly knownFailing: readonly string[];
}

const FEATURES = {
  codecs: ["CODEC_PROTO"],
  compressions: ["COMPRESSION_IDENTITY", "COMPRESSION_GZIP"],
  supportsTlsClientCerts: false,
};

const SERVERS: readonly Server[] = [
  {
    part: "connect-go",
    program: "referenceserver",
    http2: "http2",
    features: {
      ...FEATURES,
      versions: ["HTTP_VERSION_1", "HTTP_VERSION_2"],
      protocols: ["PROTOCOL_CONNECT", "PROTOCOL_GRPC", "PROTOCOL_GRPC_WEB"],
      supportsHalfDuplexBidiOverHttp1: false,
    },
    knownFailing: [],
  },
  {
    part: "grpc-go",
    program: "grpcserver",
    http2: "grpc",
    features: { ...FEATURES, versions: ["HTTP_VERSION_2"], protocols: ["PROTOCOL_GRPC"], supportsTls: false },
    knownFailing: ["multiple-requests", "no-request"].flatMap((name) =>
      ["unary", "server-stream"].map((kind) => `**/${kind}/${name}`),
    ),
  },
];

const WRAPPER = fileURLToPath(new URL("server.ts", import.meta.url));

async function runServer(server: Server, target: Target, room: Room): Promise<readonly Case[]> {
  const at = await programs();
  const configuration = join(room.folder, `${server.part}.yaml`);
  writeFileSync(configuration, JSON.stringify({ features: server.features }));
  const args = [
    ...["--mode", "server", "--conf", configuration, "--vv", "--max-servers", "1"],
    ...server.knownFailing.flatMap((pattern) => ["--known-failing", pattern]),
    "--",
    ...commandOf(server, at(server.program), target, room),
  ];
  const log = join(room.folder, `${target.contestant}-${server.part}.log`);
  const { output } = await finish({ command: at("connectconformance"), args }, log, 900);
  const cases = casesIn(output, server.part);
  if (cases.length === 0) throw new SuiteFailure(`connectconformance ran no case:\n${lastLines(output)}`);
  return cases;
}

function commandOf(server: Server, program: string, target: Target, room: Room): readonly string[] {
  if (target.contestant === "direct") return [program];
  const route = (name: keyof typeof BACKENDS): Route => {
    const { backend, http, https = http } = target.address(name);
    return { backend, http, https };
  };
  const options: ServerOptions = {
    program,
    http1: route("http1"),
    http2: route(server.http2),
    ca: room.certificates.ca,
  };
  return [process.execPath, WRAPPER, JSON.stringify(options)];
}

/**
 * The runner says which cases it sends, and afterwards which have failed, with indented lines that
 * say why.
 */
export function casesIn(output: string, part: string): readonly Case[] {
  const failed = new Map(
    [...output.matchAll(/^FAILED: (.+?)(?::\n((?:[ \t]+.*\n?)+)| was expected to fail but did not)/gm)].map(
      ([, name = "", why = "was expected to fail but did not"]) =>
        [name, why.replaceAll(/\s+/g, " ").trim()] as const,
    ),
  );
  const sent = [...output.matchAll(/^Sending request for "(.+)"\.\.\.$/gm)].map(([, name = ""]) => name);
  return [...new Set([...sent, ...failed.keys()])].map((name) => {
    const reason = failed.get(name);
    return reason === undefined
      ? { part, name, outcome: "passed" }
      : { part, name, outcome: "failed", reason };
  });
}
