/**
 * The files of the product's image besides Node: the built package, its production dependencies and
 * the SBOM. The build stage of the Containerfile writes them to a folder; the test bed takes them
 * from where they are.
 *
 *   npm run image:files -- FOLDER
 *   npm run sbom                    prints the SBOM alone
 */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ClusterFailure } from "../host/failure.ts";
import { sbom } from "./sbom.ts";
import { type Entry, entriesBelow } from "./tar.ts";

export interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly version?: string;
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

/** Entries with paths below `/`, which stands for the folder that the build stage writes to. */
export async function imageFiles(root: string): Promise<readonly Entry[]> {
  if (!existsSync(join(root, "dist", "main.js"))) {
    throw new ClusterFailure("the package is not built: there is no dist/main.js. Run npm run build first.");
  }
  const documents = ["package.json", "LICENSE", "NOTICE", "README.md"];
  return [
    ...dependencies(root),
    ...documents.map((name) => file(`/${name}`, join(root, name))),
    file("/sbom.cdx.json", Buffer.from(await imageSbom(root))),
    { kind: "directory", path: "/dist", mode: 0o755 },
    ...entriesBelow(join(root, "dist"), "/dist"),
  ];
}

function file(path: string, source: string | Uint8Array): Entry {
  return { kind: "file", path, mode: 0o644, source };
}

function dependencies(root: string): readonly Entry[] {
  const lock = lockOf(root);
  return productionFolders(lock).flatMap((folder) => {
    const installed = join(root, folder);
    if (existsSync(installed)) {
      // A package's own dependencies have entries of their own in the lock file.
      return entriesBelow(installed, `/${folder}`).filter((entry) => !isNested(entry.path, `/${folder}`));
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

async function imageSbom(root: string): Promise<string> {
  const lock = lockOf(root);
  const installed = productionFolders(lock).filter((folder) => existsSync(join(root, folder)));
  const shipped = installed.map((folder) => {
    const name = folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
    return `${name}@${lock.packages[folder]?.version}`;
  });
  return sbom(root, new Set(shipped), lock.packages["node_modules/node"]?.version ?? process.versions.node);
}

function lockOf(root: string): LockFile {
  return JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as LockFile;
}

function write(entries: readonly Entry[], folder: string): void {
  for (const entry of entries) {
    const path = join(folder, entry.path);
    mkdirSync(entry.kind === "directory" ? path : dirname(path), { recursive: true });
    if (entry.kind !== "file") continue;
    if (typeof entry.source === "string") cpSync(entry.source, path);
    else writeFileSync(path, entry.source);
  }
}

if (import.meta.main) {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const [target] = process.argv.slice(2);
  if (target === "--sbom") {
    process.stdout.write(await imageSbom(root));
  } else if (target === undefined || target.startsWith("-")) {
    console.error("say where to: npm run image:files -- FOLDER");
    process.exitCode = 2;
  } else {
    write(await imageFiles(root), resolve(target));
  }
}
