// Runs inside the cluster's namespaces: starts the programs in order, and stops or pauses single
// ones for fault tests.

import { spawn } from "node:child_process";
import { existsSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ClusterFailure } from "../host/failure.ts";
import type { Cluster } from "../host/places.ts";
import { identify, isAlive, type ProcessId, signal, until } from "../host/processes.ts";
import { Api } from "./api.ts";
import { type ComponentName, commandOf, componentNames, componentPath } from "./components.ts";
import { nodeName } from "./network.ts";

interface Node {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

export async function boot(cluster: Cluster): Promise<void> {
  start(cluster, "etcd");
  start(cluster, "containerd");
  start(cluster, "kube-apiserver");
  const api = new Api(cluster);
  await settled(cluster, ["etcd", "kube-apiserver"], "the API server", () => api.answers("/readyz"));
  start(cluster, "kube-controller-manager");
  start(cluster, "kube-scheduler");
  await settled(cluster, ["containerd"], "containerd", () => existsSync(cluster.containerdSocket));
  for (const name of ["kubelet", "kube-proxy", "coredns", "load-balancer"] as const) {
    start(cluster, name);
  }
  await settled(cluster, componentNames, "the node to be ready", async () => {
    const node = await api.get<Node>(`/api/v1/nodes/${nodeName}`).catch(() => undefined);
    return node?.status?.conditions?.some((each) => each.type === "Ready" && each.status === "True") === true;
  });
  // Pods are refused until it exists.
  const account = "/api/v1/namespaces/default/serviceaccounts/default";
  await settled(cluster, componentNames, "the default service account", () => api.answers(account));
}

/** Waits, and fails early with the last words of whichever program ended instead. */
async function settled(
  cluster: Cluster,
  needed: readonly ComponentName[],
  what: string,
  test: () => boolean | Promise<boolean>,
): Promise<void> {
  await until(
    async () => {
      const dead = needed.find((name) => !isComponentAlive(cluster, name));
      if (dead !== undefined) {
        throw new ClusterFailure(
          `${dead} ended while waiting for ${what}. Its last lines:\n${lastLines(cluster, dead)}`,
        );
      }
      return test();
    },
    { what, seconds: 120, everyMs: 150, explain: () => `Logs: ${join(cluster.dir, "log")}` },
  );
}

export function start(cluster: Cluster, name: ComponentName): void {
  if (isComponentAlive(cluster, name)) {
    throw new ClusterFailure(`${name} is running already`);
  }
  const [program = "", ...args] = commandOf(cluster, name);
  const log = openSync(logOf(cluster, name), "a");
  const child = spawn(program, args, {
    cwd: cluster.dir,
    detached: true,
    stdio: ["ignore", log, log],
    // Nothing of the caller's settings, proxies above all, may leak in.
    env: { PATH: componentPath(), HOME: cluster.dir, LANG: "C.UTF-8", ...sameplaces() },
  });
  // A program that cannot be started at all shows in its absence.
  child.on("error", (error) => console.error(`${name}: ${error.message}`));
  child.unref();
  const id = child.pid === undefined ? undefined : identify(child.pid);
  if (id !== undefined) {
    writeFileSync(recordOf(cluster, name), JSON.stringify(id));
  }
}

/** The load balancer is this very program: it must find the same folders. */
function sameplaces(): Record<string, string> {
  const names = ["MERGEWAY_CACHE", "MERGEWAY_CLUSTER_STATE", "XDG_CACHE_HOME"];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

export async function stop(cluster: Cluster, name: ComponentName): Promise<void> {
  const id = running(cluster, name);
  signal(id, "SIGCONT");
  signal(id, "SIGKILL");
  await until(() => !isAlive(id), { what: `the end of ${name}`, seconds: 30 });
  rmSync(recordOf(cluster, name), { force: true });
}

export function pause(cluster: Cluster, name: ComponentName): void {
  signal(running(cluster, name), "SIGSTOP");
}

export function resume(cluster: Cluster, name: ComponentName): void {
  signal(running(cluster, name), "SIGCONT");
}

function running(cluster: Cluster, name: ComponentName): ProcessId {
  const id = recordedId(cluster, name);
  if (id === undefined || !isAlive(id)) {
    throw new ClusterFailure(`${name} is not running`);
  }
  return id;
}

/** From outside, `proc` is the cluster's own /proc, in which the recorded numbers are true. */
export function isComponentAlive(cluster: Cluster, name: ComponentName, proc = "/proc"): boolean {
  const id = recordedId(cluster, name);
  return id !== undefined && isAlive(id, proc);
}

function recordedId(cluster: Cluster, name: ComponentName): ProcessId | undefined {
  try {
    return JSON.parse(readFileSync(recordOf(cluster, name), "utf8")) as ProcessId;
  } catch {
    return undefined;
  }
}

function recordOf(cluster: Cluster, name: ComponentName): string {
  return join(cluster.dir, "components", `${name}.json`);
}

function logOf(cluster: Cluster, name: ComponentName): string {
  return join(cluster.dir, "log", `${name}.log`);
}

function lastLines(cluster: Cluster, name: ComponentName): string {
  try {
    return readFileSync(logOf(cluster, name), "utf8").trimEnd().split("\n").slice(-12).join("\n");
  } catch {
    return "(no log)";
  }
}
