// A cluster from birth to death, seen from the host.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ClusterFailure } from "../host/failure.ts";
import { withLock } from "../host/lock.ts";
import { type Cluster, cacheDir, clusterNamed, refuseHidden, stateRoot } from "../host/places.ts";
import { foreground, output, until } from "../host/processes.ts";
import { requireRoot, requireTools } from "../host/requirements.ts";
import { fullReference, type ImageSpec, writeImage } from "../images/image.ts";
import { bootParts, build, builtFile } from "../programs/build.ts";
import { isComponentAlive } from "./boot.ts";
import { componentNames, pauseImage, writeSettings } from "./components.ts";
import { createNamespace, endNamespace, inside, requireRunning, runningNamespace } from "./namespace.ts";
import { createPki } from "./pki.ts";

interface Birth {
  readonly seconds: number;
}

export async function up(cluster: Cluster): Promise<void> {
  requireRoot();
  refuseHidden("the cache", cacheDir());
  refuseHidden("the state folder", stateRoot());
  await requireTools();
  await build(bootParts);
  await exclusively(cluster, async () => {
    if (birthOf(cluster) !== undefined && runningNamespace(cluster) !== undefined) {
      console.log(`cluster ${cluster.name} is up already`);
      return;
    }
    if (existsSync(cluster.dir)) {
      console.log(`removing what a run that died left of cluster ${cluster.name}`);
      await remove(cluster);
    }
    const began = Date.now();
    await create(cluster);
    const seconds = (Date.now() - began) / 1000;
    writeFileSync(birthFile(cluster), JSON.stringify({ seconds } satisfies Birth));
    console.log(`cluster ${cluster.name} is up after ${seconds.toFixed(1)} s`);
  });
}

async function create(cluster: Cluster): Promise<void> {
  mkdirSync(join(cluster.dir, "log"), { recursive: true, mode: 0o755 });
  writeSettings(cluster);
  await Promise.all([createPki(cluster), createNamespace(cluster)]);
  const [command, args] = inside(cluster, ownCommand("boot", "--name", cluster.name));
  const code = await foreground(command, args);
  if (code !== 0) {
    throw new ClusterFailure(
      `cluster ${cluster.name} did not come up. Its logs are in ${join(cluster.dir, "log")};` +
        " the next up starts afresh, down removes it.",
    );
  }
  const pause = builtFile("pause", "pause");
  await loadImage(cluster, {
    reference: pauseImage,
    layers: [[{ kind: "file", path: "/pause", mode: 0o755, source: pause }]],
    config: { entrypoint: ["/pause"], user: "65535:65535" },
  });
}

/** This program's own command line, for steps that must run inside a cluster's namespaces. */
export function ownCommand(...args: readonly string[]): readonly string[] {
  return [process.execPath, fileURLToPath(new URL("main.ts", import.meta.url)), ...args];
}

export async function down(cluster: Cluster): Promise<void> {
  requireRoot();
  await exclusively(cluster, async () => {
    const existed = existsSync(cluster.dir);
    await remove(cluster);
    console.log(`cluster ${cluster.name} is ${existed ? "down" : "not there"}`);
  });
}

export function existingClusters(): readonly Cluster[] {
  if (!existsSync(stateRoot())) {
    return [];
  }
  return readdirSync(stateRoot())
    .sort()
    .map((name) => clusterNamed(name));
}

async function remove(cluster: Cluster): Promise<void> {
  await endNamespace(cluster);
  // All mounts were the namespace's own. One that is visible here is not, and must not be emptied.
  const foreign = readFileSync("/proc/self/mountinfo", "utf8").includes(` ${cluster.dir}/`);
  if (foreign) {
    throw new ClusterFailure(
      `something is mounted below ${cluster.dir} that no cluster mounted: unmount it first`,
    );
  }
  await removeCgroups(cluster);
  rmSync(cluster.dir, { recursive: true, force: true });
  try {
    rmdirSync(stateRoot());
  } catch {
    // Another cluster is in it, or it never was.
  }
}

async function removeCgroups(cluster: Cluster): Promise<void> {
  const base = "/sys/fs/cgroup";
  // Version 1 has one hierarchy per folder; version 2 is the folder itself.
  const hierarchies = [base, ...readdirSync(base).map((name) => join(base, name))];
  for (const group of hierarchies.map((hierarchy) => join(hierarchy, cluster.cgroup)).filter(existsSync)) {
    // The kernel takes a moment to forget processes that have just ended.
    await until(() => removeGroup(group), { what: `the end of cgroup ${group}`, seconds: 20 });
  }
}

function removeGroup(group: string): boolean {
  const below = readdirSync(group, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const emptied = below.map((entry) => removeGroup(join(group, entry.name))).every(Boolean);
  if (!emptied) {
    return false;
  }
  try {
    rmdirSync(group);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
  return true;
}

export function status(cluster: Cluster): string {
  const first = runningNamespace(cluster);
  const birth = birthOf(cluster);
  if (first === undefined) {
    const remains = existsSync(cluster.dir) ? "; a run that died left files behind, down removes them" : "";
    return `cluster ${cluster.name}: not up${remains}`;
  }
  const proc = `/proc/${first.pid}/root/proc`;
  const components = componentNames.map(
    (name) => `  ${name.padEnd(24)}${isComponentAlive(cluster, name, proc) ? "running" : "not running"}`,
  );
  const came =
    birth === undefined ? "starting, or its start failed" : `up, booted in ${birth.seconds.toFixed(1)} s`;
  const places = [
    `  logs        ${join(cluster.dir, "log")}`,
    `  kubeconfig  ${cluster.kubeconfig} (valid inside)`,
  ];
  return [`cluster ${cluster.name}: ${came}`, ...components, ...places].join("\n");
}

/** Runs a command inside with the cluster's kubeconfig, in the foreground. */
export function runInside(cluster: Cluster, command: readonly string[]): Promise<number> {
  const [program, args] = inside(cluster, command);
  return foreground(program, args, { env: insideEnvironment(cluster) });
}

export function insideEnvironment(cluster: Cluster): NodeJS.ProcessEnv {
  // No proxy can be reached from in there, and a client that tries one waits for nothing.
  return { ...process.env, KUBECONFIG: cluster.kubeconfig, NO_PROXY: "*", no_proxy: "*" };
}

export async function loadImage(cluster: Cluster, spec: ImageSpec): Promise<void> {
  requireRunning(cluster);
  const archive = join(cluster.dir, `image-${process.pid}-${Date.now()}.tar`);
  try {
    await writeImage(spec, archive);
    await ctr(cluster, ["images", "import", archive]);
  } finally {
    rmSync(archive, { force: true });
  }
}

export async function hasImage(cluster: Cluster, reference: string): Promise<boolean> {
  const names = (await ctr(cluster, ["images", "ls", "-q"])).split("\n");
  return names.includes(fullReference(reference));
}

/** Ends a container as a crash would; the id is the pod status's, without the runtime's name. */
export async function killContainer(cluster: Cluster, id: string): Promise<void> {
  await ctr(cluster, ["tasks", "kill", "--signal", "SIGKILL", id]);
}

/** A container's first process, as the cluster's programs see it. */
export async function containerPid(cluster: Cluster, id: string): Promise<number> {
  const tasks = await ctr(cluster, ["tasks", "ls"]);
  const [, pid] = new RegExp(`^${id}\\s+(\\d+)\\s`, "m").exec(tasks) ?? [];
  if (pid === undefined) throw new ClusterFailure(`there is no container ${id}`);
  return Number(pid);
}

function ctr(cluster: Cluster, args: readonly string[]): Promise<string> {
  const [program, entering] = inside(cluster, [builtFile("containerd", "ctr")]);
  return output(program, [...entering, "-a", cluster.containerdSocket, "-n", "k8s.io", ...args]);
}

function exclusively(cluster: Cluster, work: () => Promise<void>): Promise<void> {
  return withLock(
    `cluster-${cluster.name}`,
    `another run is changing cluster ${cluster.name}; waiting for it`,
    work,
  );
}

function birthFile(cluster: Cluster): string {
  return join(cluster.dir, "birth.json");
}

function birthOf(cluster: Cluster): Birth | undefined {
  try {
    return JSON.parse(readFileSync(birthFile(cluster), "utf8")) as Birth;
  } catch {
    return undefined;
  }
}
