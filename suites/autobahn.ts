/**
 * Autobahn's test suite of WebSocket servers (RFC 6455 and RFC 7692): its fuzzing client, with its
 * echo server as the backend.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lastingPort } from "../test/dataplanes/support/lasting-port.ts";
import type { Target } from "./contestants.ts";
import { installPython, type PythonPackages } from "./install.ts";
import { finish, lastLines, type Program, serve } from "./program.ts";
import { type Backend, type Case, type Outcome, type Room, type Suite, SuiteFailure } from "./suite.ts";

/**
 * The last version that runs as published: 25.10.1 is marked for Python 3 and holds code for Python
 * 2.
 */
const PACKAGES: PythonPackages = { name: "autobahn", packages: ["autobahntestsuite==0.8.2"], python: "2.7" };

export const autobahn: Suite = {
  name: "autobahn",
  source: `${PACKAGES.packages[0]}, under Python 2.7`,
  about:
    "What a WebSocket server must do with frames, fragments, UTF-8, closing and, in part, compression; a grade that is not strict counts as passed.",
  short: true,
  install: async () => void (await installPython(PACKAGES)),
  start,
  async run(target, room) {
    const { http, https } = target.address("echo");
    const clear = await runPart("ws", http, target, room);
    return https === undefined ? clear : [...clear, ...(await runPart("wss", https, target, room))];
  },
};

/** Packages of that age need their .pth files, which PYTHONPATH does not read. */
const START =
  "import sys, site; site.addsitedir(sys.argv.pop(1)); from autobahntestsuite.wstest import run; run()";

/**
 * `wstest -m testeeserver`, but for two things it has no flags for: TLS, and a port in Host that is
 * the gateway's.
 */
const SERVER = `import sys, site
site.addsitedir(sys.argv[1])
from autobahn.twisted.websocket import listenWS
from autobahntestsuite.testee import TesteeServerFactory
from twisted.internet import reactor, ssl
factory = TesteeServerFactory(sys.argv[2], False)
factory.externalPort = None
listenWS(factory, ssl.DefaultOpenSSLContextFactory(*sys.argv[3:]) if sys.argv[3:] else None)
reactor.run()
`;

async function wstest(room: Room, args: readonly string[]): Promise<Program> {
  const { command, env, folder } = await installPython(PACKAGES);
  return { command, args: ["-c", START, folder, ...args], env, cwd: room.folder };
}

async function start(room: Room): Promise<readonly Backend[]> {
  const { cert, key } = room.certificates;
  const { command, env, folder } = await installPython(PACKAGES);
  const [port, tlsPort] = [await lastingPort(), await lastingPort()];
  for (const [at, flags] of [[port, []] as const, [tlsPort, [key, cert]] as const]) {
    const url = `${at === port ? "ws" : "wss"}://127.0.0.1:${at}`;
    const program = { command, args: ["-c", SERVER, folder, url, ...flags], env, cwd: room.folder };
    room.keep((await serve(program, join(room.folder, `echo-${at}.log`), at)).end);
  }
  return [{ name: "echo", protocol: "http", port, tlsPort }];
}

/**
 * Compression is the endpoints' matter, byte for byte: one group of each kind shows that it passes.
 */
const CASES: readonly string[] = [
  ...["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.*", "10.*"],
  ...["12.1.*", "13.1.*"],
];

/** A few of each kind: through Envoy each takes a second to close. */
const SHORT_CASES: readonly string[] = ["1.1.*", "1.2.*", "2.*", "5.1", "5.2", "7.1.*", "7.3.*", "12.1.1"];

async function runPart(
  part: "ws" | "wss",
  port: number,
  target: Target,
  room: Room,
): Promise<readonly Case[]> {
  const name = `${target.contestant}-${part}`;
  const outdir = join(room.folder, name);
  const specification = {
    outdir,
    servers: [{ agent: "server", url: `${part}://127.0.0.1:${port}` }],
    cases: room.short ? SHORT_CASES : CASES,
    "exclude-cases": [],
    "exclude-agent-cases": {},
  };
  const file = join(room.folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(specification));
  const program = await wstest(room, ["-m", "fuzzingclient", "-s", file]);
  const { output } = await finish(program, join(room.folder, `${name}.log`), 1_500);
  const index = join(outdir, "index.json");
  if (!existsSync(index)) throw new SuiteFailure(`wstest wrote no report:\n${lastLines(output)}`);
  return casesIn(readFileSync(index, "utf8"), part);
}

interface Graded {
  readonly behavior: string;
  readonly behaviorClose: string;
}

/** What a server does with a message, and how it closes the connection, are cases of their own. */
export function casesIn(index: string, part: string): readonly Case[] {
  const { server = {} } = JSON.parse(index) as { readonly server?: Readonly<Record<string, Graded>> };
  return Object.entries(server).flatMap(([name, { behavior, behaviorClose }]) => [
    caseOf(part, name, behavior),
    caseOf(part, `${name}: closing`, behaviorClose),
  ]);
}

function caseOf(part: string, name: string, grade: string): Case {
  const outcome = outcomeOf(grade);
  return outcome === "passed" ? { part, name, outcome } : { part, name, outcome, reason: grade };
}

const GOOD: readonly string[] = ["OK", "NON-STRICT", "INFORMATIONAL"];

function outcomeOf(grade: string): Outcome {
  if (grade === "UNIMPLEMENTED") return "skipped";
  return GOOD.includes(grade) ? "passed" : "failed";
}
