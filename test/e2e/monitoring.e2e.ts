/**
 * The chart's alerts and dashboards with a real promtool and a real Prometheus. It scrapes a
 * `mergeway run`, and the metrics of a controller with values as they may be.
 */
import { execFile, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { ControllerMetrics } from "../../src/controller/metrics.ts";
import { localHelm, ok } from "../../tools/cluster/bed.ts";
import { CHART, parseManifests } from "../../tools/cluster/chart.ts";
import { build, builtFile } from "../../tools/programs/build.ts";
import { folder, freePorts, ROOT, start, until } from "../cli/mergeway.ts";
import { ask } from "../dataplanes/support/http-peers.ts";
import { lastingPort } from "../dataplanes/support/lasting-port.ts";

const run = promisify(execFile);
const ALERTS = join(CHART, "rules/alerts.yaml");
const TESTS = join(ROOT, "test/chart/rules/alerts.test.yaml");
const cleanups: (() => unknown)[] = [];

interface Board {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

const boards = readdirSync(join(CHART, "dashboards")).map(
  (name) => [name, JSON.parse(readFileSync(join(CHART, "dashboards", name), "utf8")) as Board] as const,
);
const panels = boards.flatMap(([name, { panels: all }]) =>
  all.flatMap(({ title, targets }) => targets.map(({ expr }) => [`${name}: ${title}`, expr] as const)),
);

beforeAll(async () => {
  await build(["prometheus"]);
}, 1_800_000);

afterAll(async () => {
  for (const clean of cleanups.reverse()) await clean();
});

function directory(): string {
  const made = mkdtempSync(join(tmpdir(), "mergeway-monitoring-"));
  cleanups.push(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

describe("the alerts", () => {
  test("fire when they should and not before, each of them", async () => {
    const at = directory();
    copyFileSync(ALERTS, join(at, "alerts.yaml"));
    copyFileSync(TESTS, join(at, "alerts.test.yaml"));
    const promtool = builtFile("prometheus", "promtool");
    await run(promtool, ["check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml"], { cwd: at });
    await run(promtool, ["test", "rules", "alerts.test.yaml"], { cwd: at });
    const tested = readFileSync(TESTS, "utf8");
    const { groups } = parse(readFileSync(ALERTS, "utf8")) as {
      groups: { rules: { alert: string }[] }[];
    };
    for (const { alert } of groups.flatMap(({ rules }) => rules))
      expect(tested, alert).toMatch(new RegExp(`alertname: ${alert}\n[^-]*exp_alerts:\n`));
  });

  test("are in the chart as they are in the file, and so are the dashboards", async () => {
    const flags = ["podMonitor", "prometheusRule", "dashboards"].map((name) => `${name}.enabled=true`);
    const base = ["template", "mergeway", CHART, "--namespace", "mergeway-system"];
    const manifests = parseManifests(await ok(localHelm([...base, `--set=${flags.join(",")}`])));
    const rule = manifests.find(({ kind }) => kind === "PrometheusRule");
    expect(rule?.["spec"]).toEqual(parse(readFileSync(ALERTS, "utf8")));
    const maps = manifests.filter(({ kind }) => kind === "ConfigMap");
    const data = maps
      .map((each) => each["data"] as Record<string, string>)
      .find((each) => "platform.json" in each);
    expect(
      Object.fromEntries(Object.entries(data ?? {}).map(([name, text]) => [name, JSON.parse(text)])),
    ).toEqual(Object.fromEntries(boards));
    expect(manifests.some(({ kind }) => kind === "PodMonitor")).toBe(true);
  });
});

describe("the dashboards", () => {
  let prometheus: string;

  beforeAll(async () => {
    const at = directory();
    const admin = await serveTwoTeams();
    const controller = await serveController();
    const listen = `127.0.0.1:${await lastingPort()}`;
    const config = {
      global: { scrape_interval: "1s" },
      scrape_configs: [
        { job_name: "pods", honor_labels: true, static_configs: [{ targets: [admin] }] },
        { job_name: "controller", static_configs: [{ targets: [controller] }] },
      ],
    };
    // JSON is YAML.
    writeFileSync(join(at, "prometheus.yml"), JSON.stringify(config));
    const flags = [
      `--config.file=${join(at, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(at, "data")}`,
      `--web.listen-address=${listen}`,
    ];
    const child = spawn(builtFile("prometheus", "prometheus"), flags, { stdio: "ignore" });
    cleanups.push(() => child.kill("SIGKILL"));
    prometheus = `http://${listen}`;
    await until(async () => {
      const answer = await fetch(`${prometheus}/-/ready`).catch(() => undefined);
      return answer?.ok || undefined;
    }, "a ready Prometheus");
  }, 120_000);

  test.each(panels)("%s: there is data", async (_title, expr) => {
    const query = expr.replaceAll("$__rate_interval", "30s").replaceAll("$namespace", "team-coffee");
    const count = async (): Promise<number> => {
      const response = await fetch(`${prometheus}/api/v1/query?query=${encodeURIComponent(query)}`);
      const { data } = (await response.json()) as { data?: { result: readonly unknown[] } };
      return data?.result.length ?? -1;
    };
    await expect.poll(count, { timeout: 20_000, interval: 500 }).toBeGreaterThan(0);
  });
});

/** Serves the example, and keeps asking for it; returns the address of the admin server. */
async function serveTwoTeams(): Promise<string> {
  const [http = 0, https = 0] = await freePorts(2);
  const example = join(ROOT, "examples/two-teams");
  const text = (name: string): string =>
    readFileSync(join(example, name), "utf8")
      .replaceAll("8080", String(http))
      .replaceAll("8443", String(https));
  const names = readdirSync(example).filter((name) => name.endsWith(".yaml"));
  const after = (clean: () => void | Promise<void>): void => void cleanups.push(clean);
  const path = folder(Object.fromEntries(names.map((name) => [name, text(name)])), after);
  const flags = ["--address", "127.0.0.1", "--admin-address", "127.0.0.1:0", "--workers", "0"];
  const running = start(["run", path, ...flags], {}, after);
  const [, admin = ""] = await running.prints(/admin server on http:\/\/(\S+)/);
  await running.prints(/listeners served/);
  const timer = setInterval(() => {
    void ask(http, { host: "coffee.example.com" }).catch(() => {});
    const socket = connect({
      host: "127.0.0.1",
      port: https,
      servername: "coffee.example.com",
      rejectUnauthorized: false,
    });
    socket.on("error", () => {}).once("secureConnect", () => socket.destroy());
  }, 200);
  cleanups.push(() => clearInterval(timer));
  return admin;
}

async function serveController(): Promise<string> {
  const metrics = new ControllerMetrics();
  metrics.read({
    backlog: () => 3,
    lags: () => [],
    confirmed: () => new Map([["platform/shared", { replicas: 2, lagging: [] }]]),
    eventsDropped: () => 0,
    violations: () => [],
    claims: () => [],
    quotas: () => [
      { gateway: "platform/shared", namespace: "team-tea", resource: "listeners", used: 9, limit: 10 },
    ],
    listeners: () => [{ gateway: "platform/shared", state: "serving", count: 4 }],
  });
  const server = await metrics.serve("127.0.0.1:0");
  cleanups.push(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
