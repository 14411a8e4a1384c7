/**
 * h2spec: what a server must do with frames and header blocks, right and wrong (RFC 9113 and RFC
 * 7541).
 */

import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import {
  createSecureServer,
  createServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Target } from "./contestants.ts";
import { installGo } from "./install.ts";
import { parseJunit } from "./junit.ts";
import { finish, lastLines } from "./program.ts";
import { type Backend, type Case, type Room, type Suite, SuiteFailure } from "./suite.ts";

/** The newest that Go's proxy serves: later tags are not modules by Go's rules. */
const VERSION = "v2.2.1+incompatible";

const programs = installGo.bind(undefined, {
  name: "h2spec",
  version: VERSION,
  module: "github.com/summerwind/h2spec",
  packages: ["/cmd/h2spec"],
});

export const h2spec: Suite = {
  name: "h2spec",
  source: `github.com/summerwind/h2spec ${VERSION}`,
  about:
    "What an HTTP/2 server must do with frames and header blocks, with strict cases; the backend is Node's HTTP/2 server.",
  short: true,
  install: async () => void (await programs()),
  start,
  run,
};

async function start(room: Room): Promise<readonly Backend[]> {
  const { cert, key } = room.certificates;
  const port = await listen(createServer(), room);
  const secure = createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) });
  const tlsPort = await listen(secure, room);
  return [{ name: "http2", protocol: "h2c", port, tlsPort }];
}

async function listen(server: Http2Server, room: Room): Promise<number> {
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => undefined).on("close", () => sessions.delete(session));
  });
  server.on("sessionError", () => undefined);
  server.on("stream", answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  room.keep(async () => {
    for (const session of sessions) session.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

/**
 * Answers whole requests only: an earlier answer would race with what a case sends after the
 * headers.
 */
function answer(stream: ServerHttp2Stream): void {
  // Many cases break a stream on purpose, and the server only has to outlive it.
  stream.on("error", () => undefined).resume();
  stream.once("end", () => {
    if (stream.destroyed) return;
    stream.respond({ ":status": 200, "content-type": "text/plain" });
    stream.end("an answer of some length, so that windows matter\n");
  });
}

async function run(target: Target, room: Room): Promise<readonly Case[]> {
  const { http, https } = target.address("http2");
  const secure: Part | undefined =
    https === undefined ? undefined : { part: "TLS", flags: ["-p", String(https), "-t", "-k"] };
  const clear: Part = { part: "cleartext", flags: ["-p", String(http)] };
  // The codec is the same, and what Envoy leaves unanswered costs the whole waiting time of a case.
  const parts = room.short && secure !== undefined ? [secure] : [clear, secure];
  const cases: Case[] = [];
  for (const part of parts) {
    if (part !== undefined) cases.push(...(await runPart(part, target, room)));
  }
  return cases;
}

interface Part {
  readonly part: string;
  readonly flags: readonly string[];
}

async function runPart({ part, flags }: Part, target: Target, room: Room): Promise<readonly Case[]> {
  const name = `${target.contestant}-${part}`;
  const report = join(room.folder, `${name}.xml`);
  // A case waits this long for an answer that never comes; a busy machine must not be taken for
  // silence.
  const args = ["-h", "127.0.0.1", "--strict", "-o", "5", "-j", report, ...flags];
  const command = (await programs())("h2spec");
  const { output } = await finish({ command, args }, join(room.folder, `${name}.log`), 580);
  if (!existsSync(report)) throw new SuiteFailure(`h2spec wrote no report:\n${lastLines(output)}`);
  return casesIn(readFileSync(report, "utf8"), part);
}

/** The report gives what was expected, a line each, and then what came. */
export function casesIn(report: string, part: string): readonly Case[] {
  return parseJunit(report).map(({ attributes, outcome, text }) => {
    const name = `${attributes["package"]}: ${attributes["classname"]}`;
    if (text === undefined) return { part, name, outcome };
    const lines = text.split("\n").map((line) => line.trim());
    return {
      part,
      name,
      outcome,
      reason: `expected ${lines.slice(0, -1).join(" or ")}; got ${lines.at(-1)}`,
    };
  });
}
