// A cluster is a set of Linux namespaces (network, mounts, processes, host name, IPC) whose first
// process is an idle shell. All of the cluster's programs, containerd's shims and the containers
// run below that process, so the kernel ends every one of them and drops every mount when it dies,
// whoever killed what before. What remains is the state folder and empty cgroups, and `down`
// removes these.
//
// Never enter with `ip netns exec`: it remounts /sys, and kubelet then finds no cgroups.

import { spawn } from "node:child_process";
import { existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ClusterFailure } from "../host/failure.ts";
import { type Cluster, privateFolders } from "../host/places.ts";
import { isAlive, type ProcessId, processIdFromStat, signal, until } from "../host/processes.ts";
import { defaultGateway, nodeAddress, nodeName, nodeNetwork } from "./network.ts";

/**
 * Below /sys/fs/cgroup a cluster sees only a group of its own in each hierarchy, so that all its
 * containers are in it. The host's mounts are taken out of the view, not covered: runc reads the
 * list of mounts and takes the first that fits.
 */
const ownCgroups = `
own() { # HIERARCHY NAME
  mkdir -p "$1/$group" "/run/cgroups/$2"
  if [ -e "$1/cpuset.cpus" ] && [ -e "$1/$group/cpuset.cpus" ]; then
    cat "$1/cpuset.cpus" > "$1/$group/cpuset.cpus"
    cat "$1/cpuset.mems" > "$1/$group/cpuset.mems"
  fi
  mount --bind "$1/$group" "/run/cgroups/$2"
}
mkdir /run/cgroups
mount -t tmpfs --make-private tmpfs /run/cgroups
if [ -e /sys/fs/cgroup/cgroup.procs ]; then
  own /sys/fs/cgroup ""
else
  for hierarchy in /sys/fs/cgroup/*; do
    if [ -L "$hierarchy" ]; then
      cp -P "$hierarchy" /run/cgroups/
    elif [ -e "$hierarchy/cgroup.procs" ]; then
      own "$hierarchy" "\${hierarchy##*/}"
    fi
  done
fi
umount -R /sys/fs/cgroup
mount --rbind /run/cgroups /sys/fs/cgroup
umount -R /run/cgroups
`;

/**
 * The first process. It gives its true pid while the host's /proc is still in place, and then only
 * reaps orphans.
 */
const firstProcess = `
set -eu
state=$1
group=$2
read -r line < /proc/self/stat
printf '%s\\n' "$line" > "$state/first.stat"
mount --make-rshared /
mount -t proc proc /proc
for folder in ${privateFolders.filter((folder) => folder !== "/run").join(" ")}; do
  mkdir -p "$state/private$folder/upper" "$state/private$folder/work"
  mount -t overlay overlay \\
    -o "lowerdir=$folder,upperdir=$state/private$folder/upper,workdir=$state/private$folder/work" "$folder"
done
mount -t tmpfs tmpfs /run
mkdir -p /run/lock
${ownCgroups}
hostname ${nodeName}
ip link set lo up
# A veth pair stands in for the node's network card: not every kernel has the dummy device.
ip link add ${nodeName} type veth peer name ${nodeName}p
ip addr add ${nodeAddress}/${nodeNetwork.split("/")[1]} dev ${nodeName}
ip link set ${nodeName} up
ip link set ${nodeName}p up
ip route add default via ${defaultGateway} dev ${nodeName}
echo 1 > /proc/sys/net/ipv4/ip_forward
touch "$state/first.ready"
while :; do sleep 3600 & wait $! || :; done
`;

function firstProcessOf(cluster: Cluster): ProcessId | undefined {
  try {
    return processIdFromStat(readFileSync(join(cluster.dir, "first.stat"), "utf8"));
  } catch {
    return undefined;
  }
}

/** The cluster's first process, if the cluster's namespaces exist. */
export function runningNamespace(cluster: Cluster): ProcessId | undefined {
  const first = firstProcessOf(cluster);
  return first !== undefined && isAlive(first) ? first : undefined;
}

export async function createNamespace(cluster: Cluster): Promise<void> {
  const log = join(cluster.dir, "log", "namespace.log");
  const descriptor = openSync(log, "a");
  const kinds = ["--net", "--mount", "--pid", "--uts", "--ipc", "--propagation", "slave"];
  const shell = ["bash", "-c", firstProcess, `mergeway-cluster-${cluster.name}`, cluster.dir, cluster.cgroup];
  const child = spawn("unshare", [...kinds, "--fork", "--kill-child", ...shell], {
    cwd: "/",
    detached: true,
    stdio: ["ignore", descriptor, descriptor],
  });
  let ended = false;
  child.on("error", () => {
    ended = true;
  });
  child.on("exit", () => {
    ended = true;
  });
  child.unref();
  const explain = (): string => `It said: ${readFileSync(log, "utf8").trim()}`;
  await until(() => ended || existsSync(join(cluster.dir, "first.ready")), {
    what: "the cluster's namespaces",
    seconds: 15,
    everyMs: 20,
    explain,
  });
  if (ended) {
    throw new ClusterFailure(`the cluster's namespaces could not be made. ${explain()}`);
  }
}

export async function endNamespace(cluster: Cluster): Promise<void> {
  const first = runningNamespace(cluster);
  if (first !== undefined) {
    signal(first, "SIGKILL");
  }
  // The first process stays a zombie until the kernel has ended all others, so its absence is
  // theirs.
  const recorded = firstProcessOf(cluster);
  if (recorded !== undefined) {
    await until(() => !existsSync(`/proc/${recorded.pid}`) || startedOtherwise(recorded), {
      what: `the end of the processes of cluster ${cluster.name}`,
      seconds: 60,
      everyMs: 20,
    });
  }
}

function startedOtherwise(recorded: ProcessId): boolean {
  try {
    return processIdFromStat(readFileSync(`/proc/${recorded.pid}/stat`, "utf8")).started !== recorded.started;
  } catch {
    return true;
  }
}

export function requireRunning(cluster: Cluster): ProcessId {
  const first = runningNamespace(cluster);
  if (first === undefined) {
    throw new ClusterFailure(
      `cluster ${cluster.name} is not up: npm run cluster -- up${cluster.name === "default" ? "" : ` --name ${cluster.name}`}`,
    );
  }
  return first;
}

/**
 * The command line that runs `command` inside, in the caller's folder and with the caller's
 * environment. It ends with its caller: a suite that a time limit cut off must not go on unseen.
 */
export function inside(cluster: Cluster, command: readonly string[]): readonly [string, readonly string[]] {
  const target = ["--target", String(requireRunning(cluster).pid)];
  const mortal = ["--pdeathsig", "TERM"];
  const shell = ["sh", "-c", 'cd "$1" 2>/dev/null || cd /; shift; exec "$@"', "sh", process.cwd()];
  const enter = [
    "nsenter",
    ...target,
    "--net",
    "--mount",
    "--pid",
    "--uts",
    "--ipc",
    "--",
    "setpriv",
    ...mortal,
  ];
  return ["setpriv", [...mortal, ...enter, ...shell, ...command]];
}
