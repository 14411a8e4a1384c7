/**
 * What happens to traffic and to statuses when parts of the system are away. Each fault runs under
 * a steady load of one tenant; the table at the end says how many requests were sent, how many
 * failed, and how long the statuses took to be true again. Needs `npm run build`.
 */
import { spawn } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { Bed, ok } from "../../tools/cluster/bed.ts";
import { CHART, ROOT, readText } from "../../tools/cluster/chart.ts";
import { loadImage } from "../../tools/cluster/cluster.ts";
import { loadSuiteImages } from "../../tools/cluster/conformance.ts";
import { productImage } from "../../tools/images/product-image.ts";
import { ECHO_BACKEND } from "./support/echo-backend.ts";
import { type Load, startLoad } from "./support/running-load.ts";

const rows: string[] = [];
let bed: Bed;
let address: string;

function manifest(kind: string, name: string, apiVersion: string, rest: object): object {
  return { apiVersion, kind, metadata: { name, namespace: "default" }, ...rest };
}

const GATEWAY_API = "gateway.networking.k8s.io/v1";

function set(name: string): object {
  return manifest("ListenerSet", name, GATEWAY_API, {
    spec: {
      parentRef: { name: "shared" },
      listeners: [{ name: "http", port: 80, protocol: "HTTP", hostname: "team.example.com" }],
    },
  });
}

function route(name: string): object {
  return manifest("HTTPRoute", name, GATEWAY_API, {
    spec: {
      parentRefs: [{ kind: "ListenerSet", name }],
      rules: [{ backendRefs: [{ name: "echo", port: 8080 }] }],
    },
  });
}

const WORLD: readonly object[] = [
  manifest("GatewayParameters", "two", "mergeway.dev/v1alpha1", {
    spec: { replicas: 2, dataPlane: "embedded" },
  }),
  manifest("Gateway", "shared", GATEWAY_API, {
    spec: {
      gatewayClassName: "mergeway",
      infrastructure: { parametersRef: { group: "mergeway.dev", kind: "GatewayParameters", name: "two" } },
      allowedListeners: { namespaces: { from: "Same" } },
      listeners: [{ name: "guard", port: 80, protocol: "HTTP", hostname: "guard.example.com" }],
    },
  }),
  set("first"),
  route("first"),
  ...ECHO_BACKEND,
];

beforeAll(async () => {
  bed = await Bed.up("e2e-faults");
  const { version } = JSON.parse(readText("package.json")) as { version: string };
  await loadImage(bed.cluster, await productImage(ROOT, `mergeway:${version}`));
  await loadSuiteImages(bed.cluster);
  await ok(bed.kubectl(["create", "namespace", "mergeway-system"]));
  const manifests = await ok(
    bed.helm(["template", "mergeway", CHART, "--include-crds", "-n", "mergeway-system"]),
  );
  await ok(bed.kubectl(["apply", "--server-side", "-n", "mergeway-system", "-f", "-"], manifests));
  await ok(bed.kubectl(["rollout", "status", "-n", "mergeway-system", "deploy/mergeway", "--timeout=240s"]));
  await apply(...WORLD);
  await ok(bed.kubectl(["rollout", "status", "deploy/echo", "--timeout=240s"]));
  await ok(
    bed.kubectl([
      "wait",
      "--for=condition=Programmed",
      "listenerset/first",
      "gateway/shared",
      "--timeout=240s",
    ]),
  );
  await ok(bed.kubectl(["rollout", "status", "deploy/shared-mergeway", "--timeout=240s"]));
  address = await ok(bed.kubectl(["get", "gateway/shared", "-o", "jsonpath={.status.addresses[0].value}"]));
  const ask = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: team.example.com"];
  await vi.waitUntil(async () => (await bed.run([...ask, `http://${address}/`])).out === "200", WAIT);
});

afterAll(async () => {
  console.log(
    ["| fault | requests | failed | statuses true again |", "|---|---|---|---|", ...rows].join("\n"),
  );
  await bed?.down();
});

async function apply(...objects: readonly object[]): Promise<void> {
  for (const object of objects) await ok(bed.kubectl(["apply", "-f", "-"], JSON.stringify(object)));
}

/** Runs the fault under load, and says what became of the requests. */
async function under(name: string, fault: () => Promise<void>, restored: () => Promise<void>): Promise<Load> {
  const running = startLoad(bed, address, "team.example.com");
  await running.answered(50);
  await fault();
  const began = performance.now();
  await restored();
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  await running.answered(200);
  const load = await running.stop();
  rows.push(`| ${name} | ${load.sent} | ${load.failed} | ${seconds} s |`);
  if (load.failed > 0) console.log(name, load.reasons);
  return load;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A change made after the fault reaches a status: the system works as a whole again. */
async function statusFollows(): Promise<void> {
  const name = `probe-${Math.random().toString(36).slice(2, 8)}`;
  const probe = manifest("HTTPRoute", name, GATEWAY_API, {
    spec: { parentRefs: [{ kind: "ListenerSet", name: "first", sectionName: "nowhere" }], rules: [{}] },
  });
  await expect
    .poll(async () => (await bed.kubectl(["apply", "-f", "-"], JSON.stringify(probe))).code, WAIT)
    .toBe(0);
  const reason = ["get", `httproute/${name}`, "-o", "jsonpath={.status.parents[0].conditions[0].reason}"];
  await expect.poll(async () => (await bed.kubectl(reason)).out, WAIT).toBe("NoMatchingParent");
  await ok(bed.kubectl(["delete", `httproute/${name}`]));
}

const WAIT = { timeout: 120_000, interval: 500 };

async function programmed(name: string): Promise<void> {
  await ok(bed.kubectl(["wait", "--for=condition=Programmed", name, "--timeout=240s"]));
}

describe("traffic goes on, and statuses are true again", () => {
  test("a hostname changes hands: the holder is deleted, the next in line serves", async () => {
    await apply(set("second"), route("second"));
    const reason = [
      "get",
      "listenerset/second",
      "-o",
      "jsonpath={.status.listeners[0].conditions[?(@.type=='Accepted')].reason}",
    ];
    await expect.poll(async () => (await bed.kubectl(reason)).out, WAIT).toBe("HostnameConflict");
    const load = await under(
      "hostname handed over",
      async () => void (await ok(bed.kubectl(["delete", "listenerset/first"]))),
      () => programmed("listenerset/second"),
    );
    expect(load.failed).toBe(0);
    await apply(set("first"));
    await ok(bed.kubectl(["delete", "listenerset/second", "httproute/second"]));
    await programmed("listenerset/first");
  });

  test("the leader is killed", async () => {
    const leader = await ok(
      bed.kubectl([
        "get",
        "lease/mergeway",
        "-n",
        "mergeway-system",
        "-o",
        "jsonpath={.spec.holderIdentity}",
      ]),
    );
    const load = await under(
      "leader killed",
      async () =>
        void (await ok(
          bed.kubectl([
            "delete",
            `pod/${leader}`,
            "-n",
            "mergeway-system",
            "--grace-period=0",
            "--force",
            "--wait=false",
          ]),
        )),
      statusFollows,
    );
    expect(load.failed).toBe(0);
  });

  test("all controllers are killed", async () => {
    const load = await under(
      "all controllers killed",
      async () =>
        void (await ok(
          bed.kubectl([
            "delete",
            "pods",
            "-n",
            "mergeway-system",
            "--all",
            "--grace-period=0",
            "--force",
            "--wait=false",
          ]),
        )),
      statusFollows,
    );
    expect(load.failed).toBe(0);
  });

  test("a data plane pod is deleted: it drains", async () => {
    const load = await under(
      "data plane pod deleted",
      () => deletePod([]),
      () => ready(),
    );
    expect(load.failed).toBe(0);
  });

  test("data planes are rolled", async () => {
    const load = await under(
      "data planes rolled",
      async () => void (await ok(bed.kubectl(["rollout", "restart", "deploy/shared-mergeway"]))),
      () => ready(),
    );
    expect(load.failed).toBe(0);
  });

  // Last: a node whose heartbeats were held up counts as not ready for a while, and so does every
  // pod on it.
  test("the API server is away for 30 seconds", async () => {
    const load = await under(
      "API server away for 30 s",
      async () => {
        await component("stop", "kube-apiserver");
        await pause(30_000);
        await component("start", "kube-apiserver");
      },
      statusFollows,
    );
    expect(load.failed).toBe(0);
  });

  test("etcd hangs for 10 seconds", async () => {
    const load = await under(
      "etcd paused for 10 s",
      async () => {
        await component("pause", "etcd");
        await pause(10_000);
        await component("resume", "etcd");
      },
      statusFollows,
    );
    expect(load.failed).toBe(0);
  });
});

async function deletePod(flags: readonly string[]): Promise<void> {
  const selector = "gateway.networking.k8s.io/gateway-name=shared";
  const pod = await ok(
    bed.kubectl(["get", "pods", "-l", selector, "-o", "jsonpath={.items[0].metadata.name}"]),
  );
  await ok(bed.kubectl(["delete", `pod/${pod}`, "--wait=false", ...flags]));
}

async function ready(): Promise<void> {
  await ok(bed.kubectl(["rollout", "status", "deploy/shared-mergeway", "--timeout=180s"]));
  await statusFollows();
}

async function component(verb: string, name: string): Promise<void> {
  const child = spawn(
    process.execPath,
    [`${ROOT}/tools/cluster/main.ts`, verb, "--name", "e2e-faults", name],
    {
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect(code).toBe(0);
}
