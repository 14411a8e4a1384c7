/** The flags of commands that read manifests or, without any, a cluster. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { CannotRun, type FlagValues, type Host } from "../foundation/command.ts";

export const CLUSTER_FLAGS = {
  kubeconfig: { type: "text", value: "FILE", help: "read a cluster, reached by this kubeconfig" },
  context: { type: "text", value: "NAME", help: "read the cluster of this context of the kubeconfig" },
  namespace: {
    type: "list",
    short: "n",
    value: "NAME",
    help: "read only this namespace of the cluster; what lies outside counts as absent",
  },
} as const;

/** Of commands whose argument is something else. */
export const FILE_FLAG = {
  type: "list",
  short: "f",
  value: "PATH",
  help: "manifests: files, folders, or - for standard input",
} as const;

export type ClusterFlags = FlagValues<typeof CLUSTER_FLAGS>;

/** What a command reads: manifests, or a cluster. */
export type Target =
  | { readonly paths: readonly string[] }
  | { readonly cluster: ClusterFlags; readonly paths?: never };

/** A command without manifests reads the cluster that `kubectl` would talk to. */
export function chooseTarget(
  paths: readonly string[],
  { kubeconfig, context, namespace }: ClusterFlags,
  { env }: Pick<Host, "env">,
): Target {
  const given = Object.entries({ kubeconfig, context, namespace: namespace[0] }).find(
    ([, value]) => value !== undefined,
  );
  if (paths.length > 0) {
    if (given === undefined) return { paths };
    throw new CannotRun(
      `--${given[0]} is about a cluster, ${paths[0]} about files`,
      "Give either manifests or the flags of a cluster.",
    );
  }
  const isExplicit = kubeconfig !== undefined || context !== undefined;
  if (!isExplicit && !hasKubeconfig(env)) {
    throw new CannotRun(
      "there is nothing to read: neither manifests nor a kubeconfig",
      "Name files or folders, or - for standard input; or a cluster, with --kubeconfig or $KUBECONFIG.",
    );
  }
  return { cluster: { kubeconfig, context, namespace } };
}

function hasKubeconfig(env: Host["env"]): boolean {
  if (env["KUBECONFIG"] || env["KUBERNETES_SERVICE_HOST"]) return true;
  return existsSync(join(env["HOME"] || homedir(), ".kube", "config"));
}
