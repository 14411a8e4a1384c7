/**
 * cert-manager's own controllers issue, renew and solve for ListenerSets that Mergeway serves.
 * docs/guides/cert-manager.md has the manifests; they are applied as they stand there. Needs `npm
 * run build`.
 */
import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Bed, type Outcome, ok } from "../../tools/cluster/bed.ts";
import { parseManifests, readText } from "../../tools/cluster/chart.ts";
import { insideEnvironment, loadImage } from "../../tools/cluster/cluster.ts";
import { loadSuiteImages } from "../../tools/cluster/conformance.ts";
import { inside } from "../../tools/cluster/namespace.ts";
import { build, builtFile } from "../../tools/programs/build.ts";
import { versions } from "../../tools/programs/versions.ts";
import { installMergeway } from "./support/installation.ts";
import { eventually } from "./support/served-cluster.ts";

const GUIDE = readText("docs/guides/cert-manager.md");
const CONNECTION = fileURLToPath(new URL("cert-manager/connection.ts", import.meta.url));
/** Each has a Gateway of its name, and a team of its own. */
const PLANES = ["embedded", "envoy"] as const;
type Plane = (typeof PLANES)[number];

let bed: Bed;
let places: string;
let untouched: string;
const addresses = new Map<Plane, string>();

beforeAll(async () => {
  await build(["cert-manager", "pebble"]);
  places = mkdtempSync(join(tmpdir(), "mergeway-cert-manager-"));
  bed = await Bed.up("e2e-cert-manager");
  await Promise.all([installMergeway(bed), loadSuiteImages(bed.cluster), loadImages()]);
  await ok(bed.kubectl(["apply", "--server-side", "-f", builtFile("cert-manager", "crds")]));
  await apply(readText("test/e2e/cert-manager/controllers.yaml"), await rightsOfTheRelease());
  await apply(...PLANES.map((plane) => forPlane("team", plane)));
  for (const plane of PLANES) {
    await rolledOut("deployment/echo", `team-${plane}`);
    await waitFor(`gateway/${plane}`, "Programmed", "gateways");
    await rolledOut(`deployment/${plane}-mergeway`, "gateways");
    const path = "jsonpath={.status.addresses[0].value}";
    addresses.set(plane, await ok(bed.kubectl(["-n", "gateways", "get", "gateway", plane, "-o", path])));
  }
  await rolledOut("deployment/cert-manager", "cert-manager");
  untouched = await podsOfMergeway();
});

afterAll(async () => {
  await bed?.down();
  rmSync(places, { recursive: true, force: true });
});

async function loadImages(): Promise<void> {
  for (const name of ["cert-manager", "pebble"]) {
    const program = { kind: "file", path: `/${name}`, mode: 0o755, source: builtFile(name, name) } as const;
    const config = { entrypoint: [`/${name}`], user: "65532:65532" };
    await loadImage(bed.cluster, { reference: `${name}:bed`, layers: [[program]], config });
  }
}

/**
 * The controllers get the rights that the release's chart gives them, with the settings of the
 * guide.
 */
async function rightsOfTheRelease(): Promise<string> {
  const settings = [...GUIDE.matchAll(/--set \S+/g)].flatMap(([setting]) => setting.split(" "));
  const chart = ["cert-manager", builtFile("cert-manager", "chart"), "-n", "cert-manager"];
  const kubernetes = ["--kube-version", versions.kubernetes];
  const all = parseManifests(await ok(bed.helm(["template", ...chart, ...kubernetes, ...settings])));
  const config = all.find(({ kind }) => kind === "ConfigMap") as unknown as { data: Record<string, string> };
  expect(config.data["config.yaml"]).toMatch(
    /ListenerSets: true[\s\S]*enableListenerSet: true\s+enabled: true/,
  );
  const kinds = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
  return all
    .filter(({ kind }) => kinds.includes(kind))
    .map((manifest) => JSON.stringify(manifest))
    .join("\n---\n");
}

async function apply(...manifests: readonly string[]): Promise<void> {
  await ok(bed.kubectl(["apply", "-f", "-"], manifests.join("\n---\n")));
}

function forPlane(file: string, plane: Plane): string {
  return readText(`test/e2e/cert-manager/${file}.yaml`).replaceAll("PLANE", plane);
}

/** The manifests of one block of the guide, for the Gateway and the team of one data plane. */
function fromGuide(part: string, plane: Plane = "embedded"): string {
  const blocks = [...GUIDE.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, block]) => block ?? "");
  const found = blocks.find((block) => block.includes(part));
  if (found === undefined) throw new Error(`the guide has no manifest with "${part}" any more`);
  return found.replaceAll("name: shared\n", `name: ${plane}\n`).replaceAll("team-a", `team-${plane}`);
}

/** Names and restarts of every pod of controller and data plane: what must stay as it is. */
async function podsOfMergeway(): Promise<string> {
  const restarts =
    "{.status.containerStatuses[*].restartCount} {.status.initContainerStatuses[*].restartCount}";
  const what = `jsonpath={range .items[*]}{.metadata.uid} ${restarts}\n{end}`;
  const of = (namespace: string): Promise<string> =>
    ok(bed.kubectl(["-n", namespace, "get", "pods", "-o", what]));
  return (await of("mergeway-system")) + (await of("gateways"));
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
}

async function conditions(plane: Plane, listener: string): Promise<Readonly<Record<string, string>>> {
  const path = `jsonpath={.status.listeners[?(@.name=="${listener}")].conditions}`;
  const out = await ok(bed.kubectl(["-n", `team-${plane}`, "get", "listenerset", "shop", "-o", path]));
  const all = JSON.parse(out || "[]") as readonly Condition[];
  return Object.fromEntries(all.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
}

function waitFor(object: string, condition: string, namespace: string): Promise<string> {
  return ok(bed.kubectl(["-n", namespace, "wait", object, `--for=condition=${condition}`, "--timeout=240s"]));
}

function rolledOut(deployment: string, namespace: string): Promise<string> {
  return ok(bed.kubectl(["-n", namespace, "rollout", "status", deployment, "--timeout=240s"]));
}

async function secretValue(name: string, key: string, namespace: string): Promise<string> {
  const path = `jsonpath={.data.${key.replaceAll(".", "\\.")}}`;
  const out = await ok(bed.kubectl(["-n", namespace, "get", "secret", name, "-o", path]));
  return Buffer.from(out, "base64").toString();
}

async function certificateOf(name: string, namespace: string): Promise<X509Certificate> {
  return new X509Certificate(await secretValue(name, "tls.crt", namespace));
}

interface Asking {
  readonly plane: Plane;
  readonly url: string;
  readonly authority?: string;
}

async function ask({ plane, url, authority }: Asking): Promise<Outcome> {
  const { hostname, protocol } = new URL(url);
  const at = `${hostname}:${protocol === "https:" ? "443" : "80"}:${addresses.get(plane)}`;
  const trust = join(places, "authority.crt");
  if (authority !== undefined) writeFileSync(trust, authority);
  const flags = ["-sS", "-i", "--max-time", "20", "--noproxy", "*", "--resolve", at];
  return bed.run(["curl", ...flags, ...(authority === undefined ? [] : ["--cacert", trust]), url]);
}

function served(asking: Asking): Promise<string> {
  return eventually(async () => {
    const answer = await ask(asking);
    expect(answer.out, answer.err).toMatch(/^HTTP\/[\d.]+ 200/);
    return answer.out;
  });
}

describe("cert-manager's own controllers, started by a main of ours, without its webhook and cainjector", () => {
  test("a ListenerSet with an issuer: from no certificate to HTTPS, and nothing is restarted", async () => {
    for (const plane of PLANES) {
      await apply(fromGuide("cluster-issuer: ca\n", plane));
      await eventually(async () =>
        expect(await conditions(plane, "shop")).toMatchObject({
          Accepted: "False Invalid",
          ResolvedRefs: "False InvalidCertificateRef",
          Programmed: "False Invalid",
        }),
      );
      expect((await ask({ plane, url: "https://shop.example.com/" })).code).not.toBe(0);
    }

    await apply(fromGuide("selfSigned: {}"));
    for (const plane of PLANES) {
      await waitFor("listenerset/shop", "Programmed", `team-${plane}`);
      for (const listener of ["shop", "cart"]) {
        await eventually(async () =>
          expect(await conditions(plane, listener)).toMatchObject({
            Accepted: "True Accepted",
            ResolvedRefs: "True ResolvedRefs",
            Programmed: "True Programmed",
          }),
        );
      }
      const authority = await secretValue("ca", "tls.crt", "cert-manager");
      for (const hostname of ["shop.example.com", "cart.example.com"]) {
        const answer = await served({ plane, url: `https://${hostname}/`, authority });
        expect(answer).toContain(`"namespace": "team-${plane}"`);
      }
      await eventually(async () => expect(await eventsOf("shop", plane)).toEqual(WAITED_AND_SERVED));
    }
    expect(await podsOfMergeway()).toBe(untouched);
  });

  const WAITED_AND_SERVED = [
    "Normal Accepted the set is accepted",
    "Normal ResolvedRefs listener cart: all references resolve",
    "Normal ResolvedRefs listener shop: all references resolve",
    "Warning InvalidCertificateRef listener cart: Secret shop does not exist",
    "Warning InvalidCertificateRef listener shop: Secret shop does not exist",
    "Warning ListenersNotValid not valid: shop, cart",
  ];

  /** Mergeway's Events about a set; cert-manager has its own. */
  async function eventsOf(set: string, plane: Plane): Promise<readonly string[]> {
    const chosen = `--field-selector=regarding.kind=ListenerSet,regarding.name=${set}`;
    const all = await ok(
      bed.kubectl(["-n", `team-${plane}`, "get", "events.v1.events.k8s.io", chosen, "-o", "json"]),
    );
    const { items } = JSON.parse(all) as { items: Readonly<Record<string, string>>[] };
    const own = items.filter(({ reportingController }) => reportingController === "mergeway.dev/controller");
    return own.map(({ type, reason, note }) => `${type} ${reason} ${note}`).sort();
  }

  /** Clients want the issuer to have a name, and here that is the subject's. */
  const COMMON_NAME = "\n    cert-manager.io/common-name: own.example.com";

  test("an issuer of the team's own that signs itself", async () => {
    const plane = "embedded";
    const issuer = {
      apiVersion: "cert-manager.io/v1",
      kind: "Issuer",
      metadata: { name: "own", namespace: `team-${plane}` },
      spec: { selfSigned: {} },
    };
    const set = fromGuide("cluster-issuer: ca\n", plane)
      .replaceAll("cert-manager.io/cluster-issuer: ca", `cert-manager.io/issuer: own${COMMON_NAME}`)
      .replaceAll(/(?<!host)name: shop/g, "name: own")
      .replaceAll(".example.com", ".own.example.com");
    await apply(JSON.stringify(issuer), set);
    await waitFor("listenerset/own", "Programmed", `team-${plane}`);
    const own = await certificateOf("own", `team-${plane}`);
    expect(own.verify(own.publicKey)).toBe(true);
    await served({ plane, url: "https://shop.own.example.com/", authority: own.toString() });
  });

  interface Seen {
    readonly serials: readonly string[];
    readonly failures: readonly string[];
    readonly answers: number;
    readonly connections: number;
  }

  test.each(PLANES)(
    "a renewal (%s): the next handshake meets the new certificate, connections in use go on",
    async (plane) => {
      const team = `team-${plane}`;
      const before = await certificateOf("shop", team);
      const client = [process.execPath, CONNECTION, addresses.get(plane) ?? "", "shop.example.com"];
      const [program, args] = inside(bed.cluster, client);
      const env = insideEnvironment(bed.cluster);
      const child = spawn(program, args, { env, stdio: ["pipe", "pipe", "inherit"] });
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      expect(await lines.next()).toMatchObject({ value: "busy" });

      await renew("shop", team);
      // cert-manager may issue twice for one renewal: what is served is compared with what the
      // Secret has now.
      const after = await eventually(async () => {
        const now = await certificateOf("shop", team);
        expect(now.serialNumber).not.toBe(before.serialNumber);
        expect(await servedSerial(plane, "shop.example.com")).toBe(now.serialNumber);
        return now;
      });
      child.stdin.end();

      const { h1, h2, fresh } = JSON.parse((await lines.next()).value ?? "") as Readonly<
        Record<"h1" | "h2" | "fresh", Seen>
      >;
      for (const kept of [h1, h2]) {
        expect(kept).toMatchObject({ serials: [before.serialNumber], failures: [] });
        expect(kept.answers).toBeGreaterThan(10);
      }
      expect(h1.connections).toBe(1);
      expect(fresh.failures).toEqual([]);
      expect(fresh.serials[0]).toBe(before.serialNumber);
      expect(fresh.serials).toContain(after.serialNumber);
      expect(after.publicKey.equals(before.publicKey)).toBe(false);
      expect(await podsOfMergeway()).toBe(untouched);
    },
  );

  /** What `cmctl renew` does. */
  async function renew(certificate: string, namespace: string): Promise<void> {
    const get = ["-n", namespace, "get", "certificate", certificate, "-o", "json"];
    const { status } = JSON.parse(await ok(bed.kubectl(get))) as { status: { conditions: Condition[] } };
    const issuing = { type: "Issuing", status: "True", reason: "ManuallyTriggered", message: "by a test" };
    const patch = JSON.stringify({ status: { conditions: [...status.conditions, issuing] } });
    const flags = ["--subresource=status", "--type=merge", "-p", patch];
    await ok(bed.kubectl(["-n", namespace, "patch", "certificate", certificate, ...flags]));
  }

  async function servedSerial(plane: Plane, hostname: string): Promise<string> {
    const at = `${addresses.get(plane)}:443`;
    const connect = `openssl s_client -connect ${at} -servername ${hostname} </dev/null 2>/dev/null`;
    const out = await ok(bed.shell(`${connect} | openssl x509 -noout -serial`));
    return out.trim().replace("serial=", "");
  }

  test.each(PLANES)("the Gateway's own listener (%s)", async (plane) => {
    const listener = {
      name: "platform",
      port: 443,
      protocol: "HTTPS",
      hostname: "platform.example.com",
      tls: { mode: "Terminate", certificateRefs: [{ name: `platform-${plane}` }] },
    };
    const annotations = { "cert-manager.io/cluster-issuer": "ca" };
    const patch = JSON.stringify([
      { op: "add", path: "/spec/listeners/-", value: listener },
      { op: "add", path: "/metadata/annotations", value: annotations },
    ]);
    await ok(bed.kubectl(["-n", "gateways", "patch", `gateway/${plane}`, "--type=json", "-p", patch]));
    await eventually(async () => {
      const issued = await certificateOf(`platform-${plane}`, "gateways");
      expect(issued.checkHost("platform.example.com")).toBe("platform.example.com");
      expect(await servedSerial(plane, "platform.example.com")).toBe(issued.serialNumber);
    });
  });

  describe("HTTP-01", () => {
    beforeAll(async () => {
      await apply(readText("test/e2e/cert-manager/acme.yaml"));
      const authority = await secretValue("ca", "tls.crt", "cert-manager");
      const server = "https://pebble.pebble.svc.cluster.local:14000/dir";
      const [issuer] = parseManifests(fromGuide("gatewayHTTPRoute"));
      const spec = issuer?.["spec"] as { readonly acme: object };
      const acme = { ...spec.acme, server, caBundle: Buffer.from(authority).toString("base64") };
      await rolledOut("deployment/pebble", "pebble");
      await apply(JSON.stringify({ ...issuer, spec: { acme } }));
      await waitFor("clusterissuer/acme", "Ready", "");
    });

    test.each(PLANES)(
      "the solver's route comes before the team's prefixes, and the authority is convinced (%s)",
      async (plane) => {
        const team = `team-${plane}`;
        const hostname = `challenged.${team}.svc.cluster.local`;
        await apply(
          addressOfTheName(plane),
          fromGuide("cluster-issuer: acme", plane),
          forPlane("prefixes", plane),
        );
        const solver = await eventually(() => solverRoute(team));
        expect(solver.spec).toMatchObject({
          hostnames: [hostname],
          parentRefs: [{ kind: "ListenerSet", name: "challenged" }],
          rules: [{ matches: [{ path: { type: "Exact" } }] }],
        });
        expect(solver.spec.parentRefs[0]).not.toHaveProperty("sectionName");
        const path = "/.well-known/acme-challenge/another";
        expect(await served({ plane, url: `http://${hostname}${path}` })).toContain(`"path": "${path}"`);

        await waitFor("certificate/challenged", "Ready", team);
        await waitFor("listenerset/challenged", "Programmed", team);
        const issued = await certificateOf("challenged", team);
        expect(issued.issuer).toContain("Pebble");
        await eventually(async () => expect(await servedSerial(plane, hostname)).toBe(issued.serialNumber));
        await eventually(async () => await expect(solverRoute(team)).rejects.toThrow());
        expect(await podsOfMergeway()).toBe(untouched);
      },
    );
  });
});

/** The name resolves, inside the cluster, to the Gateway. */
function addressOfTheName(plane: Plane): string {
  return JSON.stringify({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: "challenged",
      namespace: `team-${plane}`,
      labels: { "kubernetes.io/service-name": "challenged" },
    },
    addressType: "IPv4",
    endpoints: [{ addresses: [addresses.get(plane)] }],
    ports: [{ port: 80 }],
  });
}

interface SolverRoute {
  readonly spec: { readonly parentRefs: readonly object[] };
}

async function solverRoute(namespace: string): Promise<SolverRoute> {
  const label = ["-l", "acme.cert-manager.io/http01-solver=true", "-o", "json"];
  const { items } = JSON.parse(await ok(bed.kubectl(["-n", namespace, "get", "httproutes", ...label]))) as {
    items: SolverRoute[];
  };
  const [route] = items;
  if (route === undefined) throw new Error("cert-manager has no route for a solver");
  return route;
}
