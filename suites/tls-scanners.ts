/** Scanners of TLS servers: testssl.sh, and sslyze with Mozilla's intermediate profile. */

import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { join } from "node:path";
import type { Target } from "./contestants.ts";
import { installDebian, installPython } from "./install.ts";
import { finish, lastLines } from "./program.ts";
import { type Backend, type Case, type Room, type Suite, SuiteFailure } from "./suite.ts";

const SSLYZE = { name: "sslyze", packages: ["sslyze==6.3.1"] };

export const tlsScanners: Suite = {
  name: "tls-scanners",
  source: `Debian's testssl.sh, ${SSLYZE.packages[0]}`,
  about:
    "What scanners find in a TLS server: protocols, ciphers, curves and known attacks. sslyze compares with Mozilla's intermediate profile; the backend is Node's HTTPS server.",
  short: true,
  async install() {
    await installDebian("testssl", "testssl.sh");
    await installPython(SSLYZE);
  },
  start,
  async run(target, room) {
    const port = target.address("web").https;
    if (port === undefined) return [];
    return [...(await runSslyze(port, target, room)), ...(await runTestssl(port, target, room))];
  },
};

async function start(room: Room): Promise<readonly Backend[]> {
  const { cert, key } = room.certificates;
  const clear = createHttpServer((_, response) => response.end("hello\n"));
  const secure = createHttpsServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_, response) =>
    response.end("hello\n"),
  );
  return [
    { name: "web", protocol: "http", port: await listen(clear, room), tlsPort: await listen(secure, room) },
  ];
}

async function listen(server: Server, room: Room): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // Scanners leave connections half open; nobody waits for them.
  room.keep(async () => void server.close());
  return (server.address() as AddressInfo).port;
}

/** What sslyze compares with the profile, by its own names. */
const SSLYZE_CHECKS: readonly string[] = [
  "certificate_curves",
  "certificate_path_validation",
  "certificate_signatures",
  "certificate_types",
  "ciphers",
  "ciphersuites",
  "dh_param_size",
  "ecdh_param_size",
  "maximum_certificate_lifespan",
  "tls_curves",
  "tls_versions",
  "tls_vulnerability_ccs_injection",
  "tls_vulnerability_compression",
  "tls_vulnerability_extended_master_secret",
  "tls_vulnerability_fallback_scsv",
  "tls_vulnerability_heartbleed",
  "tls_vulnerability_renegotiation",
  "tls_vulnerability_robot",
];

async function runSslyze(port: number, target: Target, room: Room): Promise<readonly Case[]> {
  const { command, env } = await installPython(SSLYZE);
  const args = ["-m", "sslyze", "--certinfo_ca_file", room.certificates.ca, `127.0.0.1:${port}`];
  const log = join(room.folder, `${target.contestant}-sslyze.log`);
  const { output } = await finish({ command, args, env }, log, 300);
  return casesOfSslyze(output);
}

export function casesOfSslyze(output: string): readonly Case[] {
  const [, verdict] = output.split("COMPLIANCE AGAINST TLS CONFIGURATION");
  if (verdict === undefined || !/: (?:OK|FAILED) - /.test(verdict)) {
    throw new SuiteFailure(`sslyze gave no verdict:\n${lastLines(output)}`);
  }
  const issues = new Map(
    [...verdict.matchAll(/^\s+\* (\w+): (.+)$/gm)].map(([, name = "", text = ""]) => [name, text] as const),
  );
  const names = [...new Set([...SSLYZE_CHECKS, ...issues.keys()])];
  return names.map((name) => {
    const reason = issues.get(name);
    const part = "sslyze";
    return reason === undefined
      ? { part, name, outcome: "passed" }
      : { part, name, outcome: "failed", reason };
  });
}

/** What testssl.sh looks for, by its own names. */
const TESTSSL_CHECKS: readonly string[] = [
  ...["SSLv2", "SSLv3", "TLS1", "TLS1_1", "TLS1_2", "TLS1_3", "ALPN"],
  ...["NULL", "aNULL", "EXPORT", "LOW", "3DES_IDEA", "AVERAGE", "STRONG"].map((name) => `cipherlist_${name}`),
  ...["PFS", "PFS_ECDHE_curves", "cipher_order", "protocol_negotiated", "cipher_negotiated"],
  ...["heartbleed", "CCS", "ticketbleed", "ROBOT", "secure_renego", "secure_client_renego", "CRIME_TLS"],
  ...[
    "BREACH",
    "POODLE_SSL",
    "fallback_SCSV",
    "SWEET32",
    "FREAK",
    "DROWN",
    "LOGJAM",
    "BEAST",
    "LUCKY13",
    "RC4",
  ],
];

/** Those sections that a change of ours can spoil, for the short form. */
const SHORT_SECTIONS: readonly string[] = ["-p", "-s", "-R", "-L"];
const SECTIONS: readonly string[] = ["-p", "-s", "-P", "-f", "-U"];

async function runTestssl(port: number, target: Target, room: Room): Promise<readonly Case[]> {
  const command = await installDebian("testssl", "testssl.sh");
  const report = join(room.folder, `${target.contestant}-testssl.json`);
  const flags = ["--quiet", "--warnings", "off", "--color", "0", "--nodns", "none", "--jsonfile", report];
  const args = [...flags, ...(room.short ? SHORT_SECTIONS : SECTIONS), `127.0.0.1:${port}`];
  const log = join(room.folder, `${target.contestant}-testssl.log`);
  const { output } = await finish({ command, args, cwd: room.folder }, log, 580);
  if (!existsSync(report)) throw new SuiteFailure(`testssl.sh wrote no report:\n${lastLines(output)}`);
  return casesOfTestssl(readFileSync(report, "utf8"));
}

interface Finding {
  readonly id: string;
  readonly severity: string;
  readonly finding: string;
}

const BAD: readonly string[] = ["LOW", "MEDIUM", "HIGH", "CRITICAL"];

export function casesOfTestssl(report: string): readonly Case[] {
  const findings = JSON.parse(report) as readonly Finding[];
  const known = findings.filter(({ id, severity }) => TESTSSL_CHECKS.includes(id) || BAD.includes(severity));
  return known.map(({ id, severity, finding }) => {
    const part = "testssl.sh";
    if (severity === "WARN") return { part, name: id, outcome: "skipped", reason: finding };
    const failed = BAD.includes(severity);
    return failed
      ? { part, name: id, outcome: "failed", reason: `${severity}: ${finding}` }
      : { part, name: id, outcome: "passed" };
  });
}
