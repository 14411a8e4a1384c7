/**
 * The tests of two widely used HTTP clients against httpbin, which answers from behind the gateway.
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { lastingPort } from "../../test/dataplanes/support/lasting-port.ts";
import type { Target } from "../contestants.ts";
import { installPython, type PythonPackages } from "../install.ts";
import { parseJunit } from "../junit.ts";
import { finish, lastLines, serve } from "../program.ts";
import { type Backend, type Case, type Room, type Suite, SuiteFailure } from "../suite.ts";

const CLIENTS = { requests: "requests==2.34.2", httpie: "httpie==3.2.4" } as const;

const PACKAGES: PythonPackages = {
  name: "http-clients",
  packages: [
    ...Object.values(CLIENTS),
    ...[
      "httpbin==0.10.4",
      "gunicorn==27.0.1",
      "pytest-httpbin==2.1.0",
      "pytest==9.2.0",
      "pytest-mock==3.17.0",
    ],
    ...["responses==0.26.3", "trustme==1.2.1", "PySocks==1.7.1", "setuptools==84.2.1"],
  ],
  sources: Object.values(CLIENTS),
};

export const httpbin: Suite = {
  name: "http-clients",
  source: `${Object.values(CLIENTS).join(", ")} against httpbin==0.10.4`,
  about: [
    "The tests of requests and httpie that ask a server; it is httpbin, served by gunicorn.",
    "Gateways send names of header fields in lower case; httpie's tests look for capitals, so the",
    "client capitalises the names it receives (`suites/httpbin/served_elsewhere.py`), in all three runs.",
  ].join(" "),
  short: false,
  install: async () => void (await installPython(PACKAGES)),
  start,
  async run(target, room) {
    const cases: Case[] = [];
    for (const [client, source] of Object.entries(CLIENTS)) {
      cases.push(...(await runTests(client, source.replace("==", "-"), target, room)));
    }
    return cases;
  },
};

async function start(room: Room): Promise<readonly Backend[]> {
  const { command, env } = await installPython(PACKAGES);
  const { cert, key } = room.certificates;
  const [port, tlsPort] = [await lastingPort(), await lastingPort()];
  for (const [at, flags] of [
    [port, []] as const,
    [tlsPort, ["--certfile", cert, "--keyfile", key]] as const,
  ]) {
    const server = ["-m", "gunicorn", "--bind", `127.0.0.1:${at}`, "--threads", "8", ...flags, "httpbin:app"];
    const log = join(room.folder, `httpbin-${at}.log`);
    room.keep((await serve({ command, args: server, env, cwd: room.folder }, log, at)).end);
  }
  return [{ name: "httpbin", protocol: "http", port, tlsPort }];
}

/** Tests that ask the machine and not the server. */
const NOT_OF_SERVERS: readonly string[] = [
  // A file without permissions is to be unreadable, which it is not for root.
  "tests/test_config.py::test_config_file_inaccessible",
  // A child process is to have begun within a tenth of a second.
  "tests/test_uploads.py::test_stdin_read_warning",
];

const PLUGIN = fileURLToPath(new URL(".", import.meta.url));

async function runTests(part: string, folder: string, target: Target, room: Room): Promise<readonly Case[]> {
  const { command, env, folder: packages } = await installPython(PACKAGES);
  const { http, https } = target.address("httpbin");
  const report = join(room.folder, `${target.contestant}-${part}.xml`);
  const options = [
    ...["-q", "-p", "served_elsewhere", "-p", "no:cacheprovider", "--junitxml", report],
    ...NOT_OF_SERVERS.flatMap((test) => ["--deselect", test]),
  ];
  const settings = {
    ...env,
    PYTHONPATH: `${PLUGIN}:${packages}`,
    SUITES_HTTP_PORT: String(http),
    SUITES_HTTPS_PORT: String(https),
    SUITES_CA: room.certificates.ca,
  };
  const cwd = join(packages, "sources", folder);
  const log = join(room.folder, `${target.contestant}-${part}.log`);
  const { output } = await finish(
    { command, args: ["-m", "pytest", ...options, "tests"], env: settings, cwd },
    log,
    500,
  );
  if (!existsSync(report)) throw new SuiteFailure(`pytest wrote no report:\n${lastLines(output)}`);
  return casesIn(readFileSync(report, "utf8"), part);
}

export function casesIn(report: string, part: string): readonly Case[] {
  return parseJunit(report).map(({ attributes, outcome, text }) => {
    const name = `${attributes["classname"]}.${attributes["name"]}`;
    return { part, name, outcome, ...(text === undefined ? {} : { reason: text.split("\n")[0] ?? "" }) };
  });
}
