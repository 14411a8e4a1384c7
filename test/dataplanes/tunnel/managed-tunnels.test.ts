/**
 * Tunnels over their whole life: made, found again, configured, connected, deleted; and what nobody
 * may see of it.
 */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import {
  ConnectorProcess,
  type ConnectorState,
} from "../../../src/dataplanes/tunnel/cloudflare/connector.ts";
import { Credential } from "../../../src/dataplanes/tunnel/cloudflare/credential.ts";
import { Bed } from "./support/bed.ts";
import { gateway } from "./support/manifests.ts";

const KEY = "Gateway/infra/edge";
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(...options: Parameters<typeof Bed.start>): Promise<Bed> {
  const bed = await Bed.start(...options);
  cleanups.push(() => bed.close());
  return bed;
}

function message(bed: Bed): string {
  const { conditions = [] } = bed.status(KEY) as { conditions?: { type: string; message: string }[] };
  return conditions.find(({ type }) => type === "Programmed")?.message ?? "";
}

describe("a Gateway's tunnel", () => {
  test("is named after the Gateway, and leads everything to our proxy", async () => {
    const bed = await start();
    bed.apply(gateway());
    await bed.gatewaySays("Programmed=True Programmed");
    expect(bed.tunnel()).toMatchObject({
      name: "test.infra.edge",
      version: 1,
      config: { ingress: [{ service: `http://127.0.0.1:${bed.port}` }] },
    });
  });

  test("that is there already is used, and a configuration that fits is not written", async () => {
    let tunnel = "";
    const bed = await start({
      prepare: (api) => {
        tunnel = api.add("test.infra.edge").id;
      },
    });
    const config = { ingress: [{ service: `http://127.0.0.1:${bed.port}` }] };
    Object.assign(bed.api.tunnels.get(tunnel) ?? {}, { config, version: 7 });
    bed.apply(gateway());
    await bed.gatewaySays("Programmed=True Programmed");
    expect(bed.tunnel()).toMatchObject({ id: tunnel, version: 7 });
    expect(bed.api.count("PUT", /./)).toBe(0);
  });

  test("keeps the rules of others, and the log says so", async () => {
    const foreign = { hostname: "ssh.example.com", service: "ssh://10.0.0.1:22" };
    const config = { ingress: [foreign, { service: "http_status:404" }] };
    const bed = await start({ prepare: (api) => void api.add("test.infra.edge", { config }) });
    bed.apply(gateway());
    await bed.gatewaySays("Programmed=True Programmed");
    expect(bed.tunnel().config?.ingress?.[0]).toEqual(foreign);
    expect(bed.log.join("")).toContain("ssh.example.com");
  });

  test("is not written when its last rule is somebody's own, and the Gateway says so", async () => {
    const config = { ingress: [{ service: "http://10.0.0.7:3000" }] };
    const bed = await start({ prepare: (api) => void api.add("test.infra.edge", { config }) });
    bed.apply(gateway());
    await bed.gatewaySays("Programmed=False Invalid");
    expect(message(bed)).toContain("last rule");
    expect(bed.tunnel().config).toEqual(config);
  });

  test("is there when the API comes back", async () => {
    const bed = await start({
      prepare: (api) => {
        api.faultFor = () => ({ status: 403 });
      },
    });
    bed.apply(gateway());
    await bed.gatewaySays("Programmed=False Invalid");
    bed.api.faultFor = () => undefined;
    await bed.gatewaySays("Programmed=True Programmed");
  });

  test("goes with its Gateway where that is asked for", async () => {
    const bed = await start({ deleteWithGateway: true });
    bed.apply(gateway());
    await bed.gatewaySays("Programmed=True Programmed");
    const tunnel = bed.tunnel();
    bed.apply();
    await bed.edge.until(() => bed.edge.connectionsOf(tunnel.id) === 0);
    while (!tunnel.deleted) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  test("stays when the Gateway goes, unless that is asked for", async () => {
    const bed = await start();
    bed.apply(gateway());
    await bed.gatewaySays("Programmed=True Programmed");
    const tunnel = bed.tunnel();
    bed.apply();
    await bed.edge.until(() => bed.edge.connectionsOf(tunnel.id) === 0);
    bed.apply(gateway());
    await bed.edge.until(() => bed.edge.connectionsOf(tunnel.id) > 0);
    await bed.gatewaySays("Programmed=True Programmed");
    expect(bed.tunnel().id).toBe(tunnel.id);
    expect(bed.api.count("DELETE", /./)).toBe(0);
  });
});

describe("credentials", () => {
  test("that are refused become the Gateway's status, and nobody sees them", async () => {
    const bed = await start({ token: (api) => api.powerlessToken });
    bed.apply(gateway());
    await bed.gatewaySays("Programmed=False Invalid");
    expect(message(bed)).toContain("Cloudflare refuses the API token");
    expect(bed.status(KEY)["addresses"]).toEqual([]);
    expect(bed.conditions(KEY, "platform")).toContain("Programmed=False Pending");
    expect(JSON.stringify(bed.status(KEY)) + bed.log.join("")).not.toContain(bed.api.powerlessToken);
  });

  test("stand in no log and on no command line, and the connector gets its own alone", async () => {
    const bed = await start({ connections: 1 });
    bed.apply(gateway());
    await bed.gatewaySays("Programmed=True Programmed");
    const token = bed.api.tokenOf(bed.tunnel());
    const connectors = processesWith("connector-double.ts").filter(({ environment }) =>
      environment.includes(token),
    );
    expect(connectors).toHaveLength(1);
    for (const { commandLine, environment } of connectors) {
      expect(commandLine).not.toContain(token);
      expect(environment).not.toContain(bed.api.token);
    }
    const log = bed.log.join("");
    for (const secret of [token, bed.api.token]) expect(log).not.toContain(secret);
  });
});

describe("a connector", () => {
  function connect(
    script: string,
    token = "tkn",
  ): { readonly states: ConnectorState[]; readonly lines: string[] } {
    const folder = mkdtempSync(join(tmpdir(), "mergeway-connector-"));
    const program = join(folder, "cloudflared");
    writeFileSync(program, script);
    chmodSync(program, 0o755);
    return run([program], token, () => rmSync(folder, { recursive: true }));
  }

  function run(
    command: readonly string[],
    token: string,
    after: () => void = () => {},
  ): { readonly states: ConnectorState[]; readonly lines: string[] } {
    const states: ConnectorState[] = [];
    const lines: string[] = [];
    const connector = new ConnectorProcess({
      command,
      token: new Credential(token),
      env: { PATH: process.env["PATH"], CLOUDFLARE_API_TOKEN: "api" },
      pollMs: 10,
      restart: { firstDelayMs: 5, maxDelayMs: 20 },
      onState: (state) => states.push(state),
      onLine: (line) => lines.push(line),
    });
    cleanups.push(async () => {
      await connector.stop(100);
      after();
    });
    return { states, lines };
  }

  async function until(satisfied: () => boolean): Promise<void> {
    while (!satisfied()) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  test("that is not installed says so", async () => {
    const { states } = run(["/nowhere/cloudflared"], "t");
    await until(() => states.length > 0);
    expect(states[0]).toMatchObject({ connections: 0, problem: { reason: "ConnectorMissing" } });
  });

  test("that ends is started again", async () => {
    const { lines, states } = connect("#!/bin/sh\necho started\nexit 3\n");
    await until(() => lines.length >= 3);
    expect(states[0]).toEqual({
      connections: 0,
      problem: { reason: "ConnectorStopped", message: "cloudflared has ended (3) and is started again" },
    });
  });

  test("that prints its token does not print it here", async () => {
    const { lines } = connect(
      '#!/bin/sh\necho "token is $TUNNEL_TOKEN, api is $CLOUDFLARE_API_TOKEN."\nsleep 60\n',
      "hush",
    );
    await until(() => lines.length > 0);
    expect(lines[0]).toBe("token is [token], api is .");
  });

  test("is told to use HTTP/2 and a metrics address of its own", async () => {
    const { lines } = connect('#!/bin/sh\necho "$@"\nsleep 60\n');
    await until(() => lines.length > 0);
    expect(lines[0]).toMatch(/^tunnel --no-autoupdate --protocol http2 --metrics 127\.0\.0\.1:\d+ run$/);
  });

  test("that does not end when it is asked to is ended", async () => {
    const { lines } = connect("#!/bin/sh\ntrap '' TERM\necho up\nwhile :; do sleep 0.05; done\n");
    await until(() => lines.length > 0);
    // The clean-up waits for its end; a connector that stayed would hold it for ever.
  });
});

/** Of those that this process has started. */
function processesWith(
  word: string,
): readonly { readonly commandLine: string; readonly environment: string }[] {
  const found: { commandLine: string; environment: string }[] = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const parent = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
      if (Number(parent) !== process.pid) continue;
      const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      if (commandLine.includes(word))
        found.push({ commandLine, environment: readFileSync(`/proc/${pid}/environ`, "utf8") });
    } catch {
      // It has ended meanwhile, or is not ours.
    }
  }
  return found;
}
