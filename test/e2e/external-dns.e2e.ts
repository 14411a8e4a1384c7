/**
 * The real external-dns reads what Mergeway writes. docs/guides/external-dns.md has the set-up and
 * the records as tables: the rights and flags are taken from there, and the tables are compared
 * with what external-dns prints. Needs `npm run build`.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Bed, ok } from "../../tools/cluster/bed.ts";
import { parseManifests, readText } from "../../tools/cluster/chart.ts";
import { build, builtFile } from "../../tools/programs/build.ts";
import { nextSecond } from "../support/eventually.ts";
import { installMergeway } from "./support/installation.ts";
import { eventually } from "./support/served-cluster.ts";

const GUIDE = readText("docs/guides/external-dns.md");
const TUNNEL = "3c0ffee0-0000-4000-8000-000000000001.cfargotunnel.com";
const NEWER_PREFIX = "--annotation-prefix=external-dns.kubernetes.io/";

let bed: Bed;
let places: string;
let address: string;

beforeAll(async () => {
  await build(["external-dns"]);
  places = mkdtempSync(join(tmpdir(), "mergeway-external-dns-"));
  bed = await Bed.up("e2e-external-dns");
  await installMergeway(bed);
  await ok(bed.kubectl(["apply", "-f", "-"], yamlBlock("kind: ClusterRole\n")));
  await credentials();
  await ok(bed.kubectl(["apply", "-f", "-"], readText("test/e2e/external-dns/manifests.yaml")));
  await nameTheService();
  await settled("team-a", "web", "annotated", "gateway-target", "both-targets", "tunnelled");
  await nextSecond();
  await ok(bed.kubectl(["apply", "-f", "-"], readText("test/e2e/external-dns/later.yaml")));
  await settled("team-b", "late");
  await Promise.all(["gateways", "team-a", "team-b", "other-team"].map(routesAreSeen));
  await ok(
    bed.kubectl(["-n", "gateways", "wait", "gateway/shared", "--for=condition=Programmed", "--timeout=240s"]),
  );
  address = await ok(
    bed.kubectl(["-n", "gateways", "get", "gateway/shared", "-o", "jsonpath={.status.addresses[0].value}"]),
  );
});

afterAll(async () => {
  await bed?.down();
  rmSync(places, { recursive: true, force: true });
});

function yamlBlock(text: string): string {
  const blocks = [...GUIDE.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, block]) => block ?? "");
  const found = blocks.find((block) => block.includes(text));
  if (found === undefined) throw new Error(`the guide has no manifest with ${text.trim()} any more`);
  return found;
}

/** The cells of a table below a heading of the guide. */
function rows(heading: string): readonly (readonly string[])[] {
  const [, rest = ""] = GUIDE.split(`\n### ${heading}\n`);
  const part = rest.split("\n## ")[0]?.split("\n### ")[0] ?? "";
  const lines = part.split("\n").filter((line) => line.startsWith("|"));
  return lines.slice(2).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("`", "")),
  );
}

function kubeconfig(): string {
  return join(places, "kubeconfig");
}

/** external-dns gets the rights of the guide and no others. */
async function credentials(): Promise<void> {
  await ok(bed.run(["cp", bed.cluster.kubeconfig, kubeconfig()]));
  const token = await ok(bed.kubectl(["-n", "external-dns", "create", "token", "external-dns"]));
  const config = (...args: readonly string[]): Promise<string> =>
    ok(bed.kubectl(["--kubeconfig", kubeconfig(), "config", ...args]));
  const cluster = await config("view", "-o", "jsonpath={.clusters[0].name}");
  await config("set-credentials", "external-dns", `--token=${token.trim()}`);
  await config("set-context", "external-dns", `--cluster=${cluster}`, "--user=external-dns");
  await config("use-context", "external-dns");
}

/** A load balancer that gives a hostname in place of an address. */
async function nameTheService(): Promise<void> {
  const service = ["-n", "gateways", "service/by-name-mergeway"];
  await ok(bed.kubectl(["wait", ...service, "--for=create", "--timeout=180s"]));
  const patch = JSON.stringify({ status: { loadBalancer: { ingress: [{ hostname: TUNNEL }] } } });
  await ok(bed.kubectl(["patch", ...service, "--subresource=status", "--type=merge", "-p", patch]));
}

async function settled(namespace: string, ...sets: readonly string[]): Promise<void> {
  const names = sets.map((name) => `listenerset/${name}`);
  const condition = "--for=condition=Programmed";
  await ok(bed.kubectl(["-n", namespace, "wait", ...names, condition, "--timeout=240s"]));
}

async function routesAreSeen(namespace: string): Promise<void> {
  const seen = "--for=jsonpath={.status.parents[0].controllerName}=mergeway.dev/controller";
  await ok(bed.kubectl(["-n", namespace, "wait", "httproutes", "--all", seen, "--timeout=180s"]));
}

function documentedFlags(): readonly string[] {
  const [deployment] = parseManifests(yamlBlock("kind: Deployment\n"));
  const spec = deployment?.["spec"] as {
    template: { spec: { containers: { args: string[]; image: string }[] } };
  };
  const [container] = spec.template.spec.containers;
  expect(container?.image).toBe("registry.k8s.io/external-dns/external-dns:v0.21.0");
  return container?.args.filter((flag) => !flag.startsWith("--provider")) ?? [];
}

interface Answer {
  readonly records: readonly string[];
  readonly log: string;
}

async function externalDns(...more: readonly string[]): Promise<Answer> {
  const own = ["--provider=inmemory", "--inmemory-zone=example.com", "--once", "--registry=noop"];
  const log = ["--log-format=json", "--log-level=debug"];
  const flags = [...documentedFlags(), ...own, ...log, `--kubeconfig=${kubeconfig()}`, ...more];
  const { code, out, err } = await bed.run([builtFile("external-dns", "external-dns"), ...flags]);
  expect(code, err).toBe(0);
  const messages = `${out}\n${err}`
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => (JSON.parse(line) as { msg: string }).msg);
  const records = messages.flatMap((message) => {
    const [, name, type, targets] = /^CREATE: (\S+) 0 IN (\S+) {2}(.*) \[\]$/.exec(message) ?? [];
    return name === undefined ? [] : [`${name} ${type} ${targets}`];
  });
  expect(records).toHaveLength(messages.filter((message) => message.startsWith("CREATE")).length);
  return { records: records.sort(), log: messages.join("\n") };
}

/** Both lists, side by side, for whoever reads the run; then they must be the same. */
function compare(title: string, printed: readonly string[], expected: readonly string[]): void {
  const width = Math.max(...expected.map(({ length }) => length), title.length);
  const all = [...new Set([...expected, ...printed])].sort();
  const lines = all.map((record) => {
    const [left, right] = [expected, printed].map((list) => (list.includes(record) ? record : ""));
    return `${left === right ? " " : "!"} ${left?.padEnd(width)} | ${right}`;
  });
  console.log([title, `  ${"expected".padEnd(width)} | external-dns printed`, ...lines].join("\n"));
  expect(printed).toEqual(expected);
}

function expectedRecords(column: 2 | 3): readonly string[] {
  const records = rows("Records").map(
    (cells) => `${cells[0]} ${cells[1]} ${cells[column]?.replace("ADDRESS", address)}`,
  );
  return records.sort();
}

test("records of everything that is accepted, and of nothing else", async () => {
  const { records, log } = await externalDns();
  expect(log).not.toMatch(/forbidden/i);
  compare("annotations with prefix external-dns.alpha.kubernetes.io/", records, expectedRecords(2));
});

test("the newer prefix of annotations", async () => {
  const { records } = await externalDns(NEWER_PREFIX);
  compare("annotations with prefix external-dns.kubernetes.io/", records, expectedRecords(3));
});

test("a second look finds the same", async () => {
  expect((await externalDns()).records).toEqual((await externalDns()).records);
});

test.each(rows("No records"))("no record of %s: %s (%s)", async (route = "", _why, says = "") => {
  const { log } = await externalDns();
  expect(log).toContain(`No endpoints could be generated from HTTPRoute ${route}`);
  const [, kind = "", listener, namespace = "", name = "", verdict] =
    /^(route|set|listener (\S+) of) (\S+)\/(\S+): Accepted=(.*)$/.exec(says) ?? [];
  const within =
    listener === undefined
      ? {
          route: ".status.parents[0]",
          set: ".status",
        }[kind]
      : `.status.listeners[?(@.name=="${listener}")]`;
  const condition = `${within}.conditions[?(@.type=="Accepted")]`;
  const path = `jsonpath={${condition}.status} {${condition}.reason}`;
  const resource = kind === "route" ? "httproute" : "listenerset";
  expect(await ok(bed.kubectl(["-n", namespace, "get", resource, name, "-o", path]))).toBe(verdict);
});

test("a holder that goes: the name leads to the next one", async () => {
  await ok(bed.kubectl(["-n", "team-a", "delete", "listenerset/web"]));
  const taken = '{.status.listeners[?(@.name=="taken")].conditions[?(@.type=="Programmed")].status}=True';
  const wait = ["-n", "team-b", "wait", `--for=jsonpath=${taken}`, "--timeout=180s"];
  await ok(bed.kubectl([...wait, "listenerset/late", "listenerset/all-taken"]));
  const kept = ["both-targets", "gateway-target", "own", "platform", "set-target", "tunnelled"];
  const left = expectedRecords(2).filter((record) => kept.some((name) => record.startsWith(`${name}.`)));
  const won = [`inherited.example.com A ${address}`, "shop.example.com CNAME team-b.example.net"];
  await eventually(async () => {
    const { records } = await externalDns();
    compare("team-a's set is gone", records, [...left, ...won].sort());
  });
});

test("a Gateway that goes takes its records along", async () => {
  await ok(bed.kubectl(["-n", "gateways", "delete", "gateway/by-name", "--wait"]));
  await eventually(async () => expect((await externalDns()).records.join("\n")).not.toContain("tunnelled"));
});
