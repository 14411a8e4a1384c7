/**
 * Everything of a tunnel on one machine, without Cloudflare: doubles of its API and its edge, a
 * connector (real cloudflared where CLOUDFLARED names one, otherwise our double), `mergeway run
 * --data-plane tunnel` as a process of its own, and the two teams of examples/tunnel.
 *
 *   node tools/tunnel-demo.ts           shows requests on their way edge → tunnel → listener of a
 *                                       ListenerSet → backend, and ends
 *   node tools/tunnel-demo.ts --stay    stays until Ctrl-C, for requests of your own
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ApiDouble } from "../test/dataplanes/tunnel/support/api-double.ts";
import { EdgeDouble } from "../test/dataplanes/tunnel/support/edge-double.ts";
import { closedPair } from "../test/dataplanes/tunnel/support/free-ports.ts";
import { REAL_CLOUDFLARED } from "../test/dataplanes/tunnel/support/real-cloudflared.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CONNECTOR = join(ROOT, "test/dataplanes/tunnel/support/connector-double.ts");
const TEAMS = { "team-a": 9101, "team-b": 9102 } as const;
const WAIT_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "mergeway-tunnel-demo-"));
const ended: (() => Promise<void> | void)[] = [() => rmSync(folder, { recursive: true, force: true })];
const say = (line: string): void => console.log(line);
let code = 1;
try {
  code = await demonstrate();
} catch (error) {
  say((error as Error).message);
} finally {
  for (const end of ended.reverse()) await end();
}
process.exit(code);

async function demonstrate(): Promise<number> {
  const api = await ApiDouble.start();
  ended.push(() => api.close());
  say(`API double        ${api.baseUrl}`);
  const edge = await EdgeDouble.start(api);
  ended.push(() => edge.close());
  writeFileSync(join(folder, "edge-ca.pem"), edge.ca.cert);
  say(`edge double       ${edge.address} for connectors, ${edge.frontUrl} for clients`);
  const manifests = await startBackends();
  const cloudflared = connectorProgram();
  say(
    `connector         ${REAL_CLOUDFLARED ? "real cloudflared" : "our double (CLOUDFLARED names no real one)"}`,
  );
  const log = await startMergeway({ api, edge, manifests, cloudflared });

  const tunnel = await within(
    "the tunnel is connected",
    () => {
      const found = api.named("demo.platform.shared-gateway");
      return found !== undefined && edge.connectionsOf(found.id) > 0 && edge.applied.length > 0
        ? found
        : undefined;
    },
    log,
  );
  say(
    `tunnel            ${tunnel.name}, ${tunnel.id}.cfargotunnel.com, configuration version ${tunnel.version}:`,
  );
  say(`                  ${JSON.stringify(tunnel.config)}`);
  await within(
    "Mergeway says that it serves",
    () => (/listeners served on/.test(log()) ? true : undefined),
    log,
  );
  edge.names.set("*.example.com", tunnel.id);

  const visits = [
    ["team-a.example.com", 200, "team-a"],
    ["team-b.example.com", 200, "team-b"],
    ["nobody.example.com", 404, undefined],
  ] as const;
  let wrong = 0;
  for (const [host, status, backend] of visits) {
    const answer = await visit(edge.frontUrl, host);
    const way =
      backend === undefined
        ? "edge → tunnel → no listener"
        : `edge → tunnel → ListenerSet ${backend}/${backend}-listeners → ${answer.body}`;
    const right =
      answer.status === status && (backend === undefined || answer.body.startsWith(`backend of ${backend}`));
    if (!right) wrong++;
    say(`${right ? "ok   " : "WRONG"} ${host}  ${answer.status}  ${way}`);
  }
  if (process.argv.includes("--stay")) {
    say(`\nTry: curl -H 'Host: team-a.example.com' ${edge.frontUrl}/\nEdit: ${manifests}\nCtrl-C ends it.`);
    await once(process, "SIGINT");
  }
  return wrong === 0 ? 0 : 1;
}

/** One backend per team, on a free port; returns a copy of the example that names those ports. */
async function startBackends(): Promise<string> {
  const ports = new Map<string, string>();
  for (const [team, port] of Object.entries(TEAMS)) {
    const server: Server = createServer((asked, response) => {
      response.end(
        `backend of ${team}, asked for ${asked.headers.host} by ${asked.headers["x-forwarded-for"]}`,
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    ended.push(() => void server.close());
    ports.set(String(port), String((server.address() as { port: number }).port));
  }
  const example = join(ROOT, "examples/tunnel");
  for (const file of readdirSync(example).filter((name) => name.endsWith(".yaml"))) {
    const text = readFileSync(join(example, file), "utf8").replace(
      /\b910[12]\b/g,
      (port) => ports.get(port) ?? port,
    );
    writeFileSync(join(folder, file), text);
  }
  return folder;
}

/** A program like cloudflared, as `--cloudflared` wants one. */
function connectorProgram(): string {
  const command = REAL_CLOUDFLARED ?? [process.execPath, CONNECTOR];
  const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  const program = join(folder, "connector");
  writeFileSync(program, `#!/bin/sh\nexec ${quoted} "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}

interface Setting {
  readonly api: ApiDouble;
  readonly edge: EdgeDouble;
  readonly manifests: string;
  readonly cloudflared: string;
}

async function startMergeway({ api, edge, manifests, cloudflared }: Setting): Promise<() => string> {
  const flags = [
    "--data-plane",
    "tunnel",
    "--tunnel-prefix",
    "demo",
    "--tunnel-port",
    String(await closedPair()),
    "--grace",
    "1",
  ];
  const line = [
    join(ROOT, "src/main.ts"),
    "run",
    manifests,
    ...flags,
    "--cloudflared",
    cloudflared,
    "--admin-address",
    "off",
  ];
  say(`mergeway          mergeway run examples/tunnel ${flags.slice(0, 4).join(" ")} …`);
  const child = spawn(process.execPath, line, {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      CLOUDFLARE_ACCOUNT_ID: api.account,
      CLOUDFLARE_API_TOKEN: api.token,
      CLOUDFLARE_BASE_URL: api.baseUrl,
      TUNNEL_EDGE: edge.address,
      TUNNEL_CACERT: join(folder, "edge-ca.pem"),
    },
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (log += chunk.toString()));
  const exited = once(child, "exit");
  ended.push(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  return () => log;
}

async function within<T>(what: string, find: () => T | undefined, log: () => string): Promise<T> {
  const end = Date.now() + WAIT_MS;
  while (Date.now() < end) {
    const found = find();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`waited in vain until ${what}; Mergeway said:\n${log()}`);
}

async function visit(url: string, host: string): Promise<{ readonly status: number; readonly body: string }> {
  const asked = request(url, { headers: { host }, agent: false }).end();
  const [response] = await once(asked, "response");
  let body = "";
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode, body: body.trim() };
}
