// Where things are. The cache outlives clusters and is shared by all checkouts; a cluster is one
// folder under the state root and one set of namespaces, and nothing of it is anywhere else.

import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { ClusterFailure } from "./failure.ts";

export interface Cluster {
  readonly name: string;
  readonly dir: string;
  readonly kubeconfig: string;
  readonly containerdSocket: string;
  /** cgroup under which every container of this cluster lives, in each hierarchy. */
  readonly cgroup: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

export function cacheDir(env: Environment = process.env): string {
  return resolve(
    env["MERGEWAY_CACHE"] || join(env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "mergeway"),
  );
}

export function stateRoot(env: Environment = process.env): string {
  return resolve(env["MERGEWAY_CLUSTER_STATE"] || "/var/tmp/mergeway-cluster");
}

export function clusterNamed(name: string | undefined, env: Environment = process.env): Cluster {
  const chosen = name ?? env["MERGEWAY_CLUSTER"] ?? "default";
  if (!/^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/.test(chosen)) {
    throw new ClusterFailure(
      `"${chosen}" is no cluster name: use 1 to 32 lowercase letters, digits and dashes, as in --name review-7`,
    );
  }
  const dir = join(stateRoot(env), chosen);
  return {
    name: chosen,
    dir,
    kubeconfig: join(dir, "kubeconfig"),
    containerdSocket: join(dir, "containerd", "c.sock"),
    cgroup: `mergeway-${chosen}`,
  };
}

/**
 * Folders that a cluster sees in a version of its own, so that kubelet, CNI and shims leave no
 * traces on the host.
 */
export const privateFolders: readonly string[] = ["/run", "/var/lib", "/var/log"];

export function refuseHidden(what: string, path: string): void {
  const hiding = privateFolders.find((folder) => path === folder || path.startsWith(`${folder}/`));
  if (hiding !== undefined) {
    throw new ClusterFailure(
      `${what} is ${path}, but a cluster sees a ${hiding} of its own. Choose another place` +
        " (MERGEWAY_CACHE, MERGEWAY_CLUSTER_STATE).",
    );
  }
}
