/**
 * Envoy in Kubernetes, as the chart installs it when nobody says anything else: what serves, what
 * is left when parts are away, and what the statuses follow. Needs `npm run build`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Bed, ok } from "../../tools/cluster/bed.ts";
import { containerPid, insideEnvironment, killContainer } from "../../tools/cluster/cluster.ts";
import { loadSuiteImages } from "../../tools/cluster/conformance.ts";
import { inside } from "../../tools/cluster/namespace.ts";
import { selfSigned } from "../dataplanes/support/certificates.ts";
import { ECHO_BACKEND } from "./support/echo-backend.ts";
import { installMergeway } from "./support/installation.ts";
import { type Load, startLoad } from "./support/running-load.ts";

const GATEWAY_API = "gateway.networking.k8s.io/v1";
const OWN_API = "mergeway.dev/v1alpha1";
const WAIT = { timeout: 120_000, interval: 500 };
const UNAUTHORISED_CLIENT = fileURLToPath(new URL("support/unauthorised-client.ts", import.meta.url));
const NEVER_ASKED = "never-asked.example.com";

let bed: Bed;
let address: string;

function object(kind: string, name: string, apiVersion: string, rest: object): object {
  return { apiVersion, kind, metadata: { name, namespace: "default" }, ...rest };
}

function parameters(name: string, spec: object): object {
  return object("GatewayParameters", name, OWN_API, { spec });
}

function gateway(name: string, parametersName: string): object {
  return object("Gateway", name, GATEWAY_API, {
    spec: {
      gatewayClassName: "mergeway",
      infrastructure: {
        parametersRef: { group: "mergeway.dev", kind: "GatewayParameters", name: parametersName },
      },
      allowedListeners: { namespaces: { from: "Same" } },
      listeners: [{ name: "guard", port: 80, protocol: "HTTP", hostname: "guard.example.com" }],
    },
  });
}

function set(name: string, parent: string, listeners: readonly object[]): object {
  return object("ListenerSet", name, GATEWAY_API, { spec: { parentRef: { name: parent }, listeners } });
}

function route(name: string): object {
  return object("HTTPRoute", name, GATEWAY_API, {
    spec: {
      parentRefs: [{ kind: "ListenerSet", name }],
      rules: [{ backendRefs: [{ name: "echo", port: 8080 }] }],
    },
  });
}

const HTTP = { name: "http", port: 80, protocol: "HTTP" };
const certificate = selfSigned([NEVER_ASKED]);

const WORLD: readonly object[] = [
  parameters("logged", { accessLog: { stdout: {} } }),
  gateway("shared", "logged"),
  set("team", "shared", [
    { ...HTTP, hostname: "team.example.com" },
    {
      name: "https",
      port: 443,
      protocol: "HTTPS",
      hostname: NEVER_ASKED,
      tls: { certificateRefs: [{ name: "never-asked" }] },
    },
  ]),
  route("team"),
  object("Secret", "never-asked", "v1", {
    type: "kubernetes.io/tls",
    stringData: { "tls.crt": certificate.cert, "tls.key": certificate.key },
  }),
  parameters("moving", { dataPlane: "embedded" }),
  gateway("moving", "moving"),
  set("moved", "moving", [{ ...HTTP, hostname: "moved.example.com" }]),
  route("moved"),
  ...ECHO_BACKEND,
];

beforeAll(async () => {
  bed = await Bed.up("e2e-envoy");
  await installMergeway(bed);
  await loadSuiteImages(bed.cluster);
  await apply(...WORLD);
  await ok(bed.kubectl(["rollout", "status", "deploy/echo", "--timeout=240s"]));
  await programmed("listenerset/team", "listenerset/moved", "gateway/shared", "gateway/moving");
  address = await addressOf("shared");
});

afterAll(async () => {
  await bed?.down();
});

async function apply(...objects: readonly object[]): Promise<void> {
  const list = { apiVersion: "v1", kind: "List", items: objects };
  await ok(bed.kubectl(["apply", "-f", "-"], JSON.stringify(list)));
}

async function programmed(...names: readonly string[]): Promise<void> {
  await ok(bed.kubectl(["wait", "--for=condition=Programmed", ...names, "--timeout=240s"]));
}

function addressOf(name: string): Promise<string> {
  return ok(bed.kubectl(["get", `gateway/${name}`, "-o", "jsonpath={.status.addresses[0].value}"]));
}

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly containers: readonly { readonly name: string; readonly image: string }[] };
  readonly status: {
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

interface ContainerStatus {
  readonly name: string;
  readonly containerID: string;
  readonly restartCount: number;
}

/** Pods of a Gateway that nobody has told to go. */
async function podsOf(name: string): Promise<readonly Pod[]> {
  const selector = `gateway.networking.k8s.io/gateway-name=${name}`;
  const out = await ok(bed.kubectl(["get", "pods", "-l", selector, "-o", "json"]));
  const { items } = JSON.parse(out) as { readonly items: readonly Pod[] };
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

async function onlyPod(name: string): Promise<Pod> {
  const [pod, ...others] = await podsOf(name);
  if (pod === undefined || others.length > 0) throw new Error(`${name} has not one pod`);
  return pod;
}

function containers({ status }: Pod): ReadonlyMap<string, ContainerStatus> {
  const all = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
  return new Map(all.map((each) => [each.name, each]));
}

function isReady({ status }: Pod): boolean {
  return status.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") === true;
}

/** The answer's code; 000 where there is none. */
async function ask(url: string, at: string): Promise<string> {
  const { hostname, port, protocol } = new URL(url);
  const number = port === "" ? (protocol === "https:" ? "443" : "80") : port;
  const resolve = `${hostname}:${number}:${at}`;
  const flags = ["-sk", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20", "--resolve", resolve];
  return (await bed.run(["curl", ...flags, url])).out;
}

async function underLoad(at: string, host: string, work: () => Promise<void>): Promise<Load> {
  const running = startLoad(bed, at, host);
  await running.answered(50);
  await work();
  await running.answered(200);
  const load = await running.stop();
  if (load.failed > 0) console.log(load.reasons);
  return load;
}

describe("as the chart installs it", () => {
  test("a ListenerSet is served by a stock Envoy, and the agent logs the listener and the route of each request", async () => {
    await expect.poll(() => ask("http://team.example.com/hello", address), WAIT).toBe("200");
    const pod = await onlyPod("shared");
    expect(pod.spec.containers.map(({ name, image }) => `${name} ${image.split(":")[0]}`)).toEqual([
      "envoy envoyproxy/envoy",
    ]);
    const lines = async (): Promise<readonly Record<string, unknown>[]> => {
      const log = await ok(bed.kubectl(["logs", pod.metadata.name, "-c", "agent"]));
      const found = log.split("\n").filter((line) => line.startsWith('{"time"'));
      return found.map((line) => JSON.parse(line) as Record<string, unknown>);
    };
    await expect.poll(lines, WAIT).toContainEqual(
      expect.objectContaining({
        status: 200,
        authority: "team.example.com",
        method: "GET",
        path: "/hello",
        listenerKind: "ListenerSet",
        listenerNamespace: "default",
        listenerName: "team",
        listenerSection: "http",
        routeKind: "HTTPRoute",
        routeName: "team",
        rule: 0,
      }),
    );
  });

  test("pods roll under load, and no request fails", async () => {
    const load = await underLoad(address, "team.example.com", async () => {
      await ok(bed.kubectl(["rollout", "restart", "deploy/shared-mergeway"]));
      await ok(bed.kubectl(["rollout", "status", "deploy/shared-mergeway", "--timeout=240s"]));
      // Until the old one has drained and gone.
      await expect.poll(async () => (await allPods("shared")).length, WAIT).toBe(1);
    });
    expect(load.failed).toBe(0);
  });

  test("nobody without the kubelet's token can have a pod drained", async () => {
    const pod = await onlyPod("shared");
    const at = await ok(bed.kubectl(["get", "pod", pod.metadata.name, "-o", "jsonpath={.status.podIP}"]));
    const url = `http://${at}:19901/drain`;
    const code = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}"];
    expect(await ok(bed.run([...code, url]))).toBe("403");
    expect(await ok(bed.run([...code, "-H", "Authorization: Bearer guess", url]))).toBe("403");
    expect(isReady(await onlyPod("shared"))).toBe(true);
  });
});

async function allPods(name: string): Promise<readonly string[]> {
  const selector = `gateway.networking.k8s.io/gateway-name=${name}`;
  const out = await ok(bed.kubectl(["get", "pods", "-l", selector, "-o", "name"]));
  return out.split("\n").filter((line) => line !== "");
}

describe("a Gateway changes its data plane", () => {
  test.each(["envoy", "embedded"])("to %s, and no request fails", async (dataPlane) => {
    const moving = await addressOf("moving");
    await expect.poll(() => ask("http://moved.example.com/", moving), WAIT).toBe("200");
    const load = await underLoad(moving, "moved.example.com", async () => {
      await apply(parameters("moving", { dataPlane }));
      const container = dataPlane === "envoy" ? "envoy" : "gateway";
      const template = [
        "get",
        "deploy/moving-mergeway",
        "-o",
        "jsonpath={.spec.template.spec.containers[0].name}",
      ];
      await expect.poll(async () => (await bed.kubectl(template)).out, WAIT).toBe(container);
      await ok(bed.kubectl(["rollout", "status", "deploy/moving-mergeway", "--timeout=240s"]));
      await expect.poll(async () => (await allPods("moving")).length, WAIT).toBe(1);
    });
    expect(load.failed).toBe(0);
  });
});

describe("Programmed", () => {
  test("follows Envoy: a port that somebody else has is the listener's trouble alone, and served once it is free", async () => {
    const taken = await takePort(await onlyPod("shared"), 8888);
    await apply(
      set("taken", "shared", [{ ...HTTP, port: 8888, hostname: "taken.example.com" }]),
      route("taken"),
    );
    const condition = (field: string): readonly string[] => [
      "get",
      "listenerset/taken",
      "-o",
      `jsonpath={.status.listeners[0].conditions[?(@.type=='Programmed')].${field}}`,
    ];
    await expect
      .poll(async () => (await bed.kubectl(condition("message"))).out, WAIT)
      .toContain("port 8888 cannot be opened");
    expect(await ok(bed.kubectl(condition("status")))).toBe("False");
    expect(await ask("http://team.example.com/", address)).toBe("200");
    await taken.release();
    await programmed("listenerset/taken");
    await expect.poll(() => ask("http://taken.example.com:8888/", address), WAIT).toBe("200");
  });
});

/** Somebody in the pod's network who listens where a listener should. */
async function takePort(pod: Pod, port: number): Promise<{ readonly release: () => Promise<void> }> {
  const id =
    containers(pod)
      .get("envoy")
      ?.containerID.replace(/^.*:\/\//, "") ?? "";
  const pid = await containerPid(bed.cluster, id);
  const script = `require("net").createServer().listen(${port}, "::", () => console.log("open"))`;
  const [program, args] = inside(bed.cluster, [
    "nsenter",
    "-t",
    String(pid),
    "-n",
    process.execPath,
    "-e",
    script,
  ]);
  const child = spawn(program, [...args], {
    env: insideEnvironment(bed.cluster),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  await once(child.stdout, "data");
  return {
    async release() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

describe("a pod's identity", () => {
  test("a pod of another Gateway does not get this Gateway's plan", async () => {
    const authority = join(bed.cluster.dir, "authority.pem");
    const environment = '{.spec.template.spec.initContainers[0].env[?(@.name=="MERGEWAY_AUTHORITY")].value}';
    writeFileSync(
      authority,
      await ok(bed.kubectl(["get", "deploy/shared-mergeway", "-o", `jsonpath=${environment}`])),
    );
    const controllers = ["get", "pods", "-n", "mergeway-system", "-o", "jsonpath={.items[0].status.podIP}"];
    const at = `${await ok(bed.kubectl(controllers))}:18000`;
    const knock = async (name: string, wanted: string): Promise<string> => {
      const { metadata } = await onlyPod(name);
      const bound = [
        "--bound-object-kind=Pod",
        `--bound-object-name=${metadata.name}`,
        `--bound-object-uid=${metadata.uid}`,
      ];
      const audience = "--audience=mergeway.dev/controller";
      const token = await ok(bed.kubectl(["create", "token", `${name}-mergeway`, audience, ...bound]));
      const client = [process.execPath, UNAUTHORISED_CLIENT, at];
      const whom = ["mergeway.mergeway-system.svc", authority, `default/${wanted}`, metadata.name];
      return (await ok(bed.run([...client, ...whom, token.trim()]))).trim();
    };
    expect(await knock("moving", "shared")).toBe("403");
    // Its own it may have; but the real pod has it already.
    expect(await knock("moving", "moving")).toBe("409");
  });
});

describe("all controllers are away", () => {
  beforeAll(async () => {
    await ok(bed.kubectl(["scale", "-n", "mergeway-system", "deploy/mergeway", "--replicas=0"]));
    const all = ["pods", "-n", "mergeway-system", "-l", "app.kubernetes.io/name=mergeway"];
    await ok(bed.kubectl(["wait", "--for=delete", ...all, "--timeout=180s"]));
  });

  test.each([
    ["Envoy has been killed", ["envoy"]],
    ["the agent has been killed", ["agent"]],
    ["both have been killed", ["envoy", "agent"]],
  ])("everybody is served again when %s, also a tenant that was never asked for", async (_name, killed) => {
    const before = containers(await onlyPod("shared"));
    for (const name of killed) {
      const id = before.get(name)?.containerID.replace(/^.*:\/\//, "");
      await killContainer(bed.cluster, id ?? "");
    }
    await expect
      .poll(async () => {
        const pod = await onlyPod("shared");
        const now = containers(pod);
        const isAgain = killed.every(
          (name) => (now.get(name)?.restartCount ?? 0) > (before.get(name)?.restartCount ?? 0),
        );
        return isAgain && isReady(pod);
      }, WAIT)
      .toBe(true);
    await expect.poll(() => ask("http://team.example.com/", address), WAIT).toBe("200");
    await expect.poll(() => ask(`https://${NEVER_ASKED}/`, address), WAIT).toBe("200");
  });
});
