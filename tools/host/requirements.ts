// What the machine must give: root, Debian's container and network tools, and Go for the first
// build.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { ClusterFailure } from "./failure.ts";
import { foreground } from "./processes.ts";

const packageOf: Readonly<Record<string, string>> = {
  runc: "runc",
  nft: "nftables",
  conntrack: "conntrack",
  ip: "iproute2",
  nsenter: "util-linux",
  unshare: "util-linux",
  flock: "util-linux",
  setpriv: "util-linux",
  mount: "mount",
  bash: "bash",
  openssl: "openssl",
};

const pluginFolders: readonly string[] = ["/usr/lib/cni", "/opt/cni/bin"];

export function findCommand(name: string): string | undefined {
  // Debian keeps network tools in sbin, which the PATH of a plain user session lacks.
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin", "/sbin"];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

export function pluginFolder(): string | undefined {
  return pluginFolders.find((folder) =>
    ["ptp", "host-local", "loopback"].every((name) => isExecutable(join(folder, name))),
  );
}

export function requireRoot(): void {
  if (process.getuid?.() !== 0) {
    throw new ClusterFailure(
      "a cluster needs root (it makes namespaces and mounts): run the same command as root, for example with sudo -E",
    );
  }
}

export function requireGo(): void {
  if (findCommand("go") === undefined) {
    throw new ClusterFailure(
      "the cluster's programs are built from Go modules and there is no go on the PATH: install Go 1.21 or newer" +
        " (it fetches the exact version it needs), or point MERGEWAY_CACHE at a cache that has been built",
    );
  }
}

/** Installs with apt what is missing; says what to install where there is no apt. */
export async function requireTools(): Promise<void> {
  const missing = missingPackages();
  if (missing.length === 0) {
    return;
  }
  if (findCommand("apt-get") === undefined) {
    throw new ClusterFailure(
      `install these packages first (names as in Debian): ${missing.join(" ")}. There is no apt-get here to do it.`,
    );
  }
  requireRoot();
  console.log(`installing ${missing.join(" ")} with apt`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const quiet = { env, stdio: ["ignore", "ignore", "inherit"] as ["ignore", "ignore", "inherit"] };
  await foreground("apt-get", ["update", "-qq"], quiet);
  await foreground("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...missing], quiet);
  const still = missingPackages();
  if (still.length > 0) {
    throw new ClusterFailure(`apt could not install ${still.join(" ")}: install them by hand and try again`);
  }
}

function missingPackages(): readonly string[] {
  const commands = Object.entries(packageOf).filter(([command]) => findCommand(command) === undefined);
  const plugins = pluginFolder() === undefined ? ["containernetworking-plugins"] : [];
  return [...new Set([...commands.map(([, name]) => name), ...plugins])];
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
