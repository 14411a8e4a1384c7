// The image that users get: Node with the libraries it is linked to, the production dependencies,
// and the built package. No shell, no package manager, nobody but an unprivileged user.

import { existsSync, readFileSync, realpathSync } from "node:fs";
import { basename, join } from "node:path";
import { ClusterFailure } from "../host/failure.ts";
import { output } from "../host/processes.ts";
import type { ImageSpec } from "./image.ts";
import { type Entry, entriesBelow } from "./tar.ts";

/** The number that images without accounts commonly use for "nobody in particular". */
const user = 65532;

export interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly optional?: boolean;
}

/**
 * Folders below the package's root that hold its production dependencies. Packages of types alone
 * do nothing at run time.
 */
export function productionFolders(lock: LockFile): readonly string[] {
  const isWanted = (path: string, entry: LockedPackage): boolean =>
    path.startsWith("node_modules/") &&
    !path.includes("/@types/") &&
    entry.dev !== true &&
    entry.devOptional !== true;
  return Object.entries(lock.packages)
    .filter(([path, entry]) => isWanted(path, entry))
    .map(([path]) => path)
    .sort();
}

export async function productImage(root: string, reference: string): Promise<ImageSpec> {
  if (!existsSync(join(root, "dist", "main.js"))) {
    throw new ClusterFailure("the package is not built: there is no dist/main.js. Run npm run build first.");
  }
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Record<string, string>;
  return {
    reference,
    layers: [await runtimeLayer(root), dependencyLayer(root), packageLayer(root)],
    config: {
      entrypoint: ["/usr/bin/node", "/app/dist/main.js"],
      user: `${user}:${user}`,
      env: ["PATH=/usr/bin", "NODE_ENV=production", "HOME=/tmp"],
      workdir: "/app",
      labels: {
        "org.opencontainers.image.title": manifest["name"] ?? "",
        "org.opencontainers.image.version": manifest["version"] ?? "",
        "org.opencontainers.image.licenses": manifest["license"] ?? "",
      },
    },
  };
}

async function runtimeLayer(root: string): Promise<readonly Entry[]> {
  const node = realpathSync(join(root, "node_modules", "node", "bin", "node"));
  const accounts = `root:x:0:0:root:/:/nologin\nmergeway:x:${user}:${user}:mergeway:/tmp:/nologin\n`;
  return [
    { kind: "directory", path: "/tmp", mode: 0o1777 },
    { kind: "file", path: "/usr/bin/node", mode: 0o755, source: node },
    { kind: "file", path: "/etc/passwd", mode: 0o644, source: Buffer.from(accounts) },
    {
      kind: "file",
      path: "/etc/group",
      mode: 0o644,
      source: Buffer.from(`root:x:0:\nmergeway:x:${user}:\n`),
    },
    { kind: "file", path: "/etc/nsswitch.conf", mode: 0o644, source: Buffer.from("hosts: files dns\n") },
    ...(await librariesOf(node)),
  ];
}

/**
 * The shared libraries and the loader that a program names, each at the path where the loader looks
 * for it.
 */
export async function librariesOf(program: string): Promise<readonly Entry[]> {
  const named = linkedPaths(await output("ldd", [program]));
  if (named.length === 0) {
    throw new ClusterFailure(`ldd names no libraries of ${program}: is it a program of this machine?`);
  }
  return named.map((path): Entry => ({ kind: "file", path, mode: 0o755, source: realpathSync(path) }));
}

/**
 * Lines look like `libm.so.6 => /lib/x/libm.so.6 (0x…)`, the loader's like `/lib64/ld.so (0x…)`,
 * the kernel's has no path.
 */
export function linkedPaths(text: string): readonly string[] {
  const missing = /^\s*(\S+) => not found/m.exec(text);
  if (missing !== null) {
    throw new ClusterFailure(`this machine lacks the library ${missing[1]}`);
  }
  const paths = [...text.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x/gm)].flatMap(([, path]) => path ?? []);
  return [...new Set(paths)].sort();
}

function dependencyLayer(root: string): readonly Entry[] {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as LockFile;
  return productionFolders(lock).flatMap((folder) => {
    const installed = join(root, folder);
    if (existsSync(installed)) {
      // A package's own dependencies have entries of their own in the lock file.
      return entriesBelow(installed, `/app/${folder}`).filter(
        (entry) => !isNested(entry.path, `/app/${folder}`),
      );
    }
    if (lock.packages[folder]?.optional === true) {
      return [];
    }
    throw new ClusterFailure(`${folder} is not installed: run npm ci first`);
  });
}

function isNested(path: string, folder: string): boolean {
  return path === `${folder}/node_modules` || path.startsWith(`${folder}/node_modules/`);
}

function packageLayer(root: string): readonly Entry[] {
  const files = ["package.json", "LICENSE", "NOTICE", "README.md"].filter((name) =>
    existsSync(join(root, name)),
  );
  return [
    ...entriesBelow(join(root, "dist"), "/app/dist"),
    ...files.map(
      (name): Entry => ({
        kind: "file",
        path: `/app/${basename(name)}`,
        mode: 0o644,
        source: join(root, name),
      }),
    ),
  ];
}
