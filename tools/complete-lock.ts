/**
 * Completes package-lock.json: `npm install` leaves out optional packages of platforms that its
 * registry does not carry, and `npm ci` then refuses the lock file on every platform. An entry
 * without an integrity would be installed unchecked: it is asked of the registry, as far as that
 * carries the package. Run after changing dependencies; a test fails when an entry, or an integrity
 * of a supported platform, is missing.
 *
 *   node tools/complete-lock.ts
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

interface LockEntry {
  readonly version?: string;
  readonly dev?: boolean;
  readonly integrity?: string;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

export type LockedPackages = Readonly<Record<string, LockEntry>>;

/**
 * Optional packages that a locked package names and the lock file does not have, with the entries
 * that they should have.
 */
export function missingOptional(packages: LockedPackages): Record<string, LockEntry> {
  const missing: Record<string, LockEntry> = {};
  for (const [path, entry] of Object.entries(packages)) {
    for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
      if (!isLocked(packages, path, name))
        missing[`node_modules/${name}`] = entryFor(name, range, entry.dev === true);
    }
  }
  return missing;
}

/** As Node looks a package up: beside its user, then further out. */
function isLocked(packages: LockedPackages, from: string, name: string): boolean {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    if (packages[`${folder === "" ? "" : `${folder}/`}node_modules/${name}`] !== undefined) return true;
    if (folder === "") return false;
  }
}

const SYSTEMS: Readonly<Record<string, string>> = { windows: "win32" };
const KNOWN_SYSTEMS = /^(android|darwin|win32|windows|linux|freebsd|netbsd|openbsd|openharmony|sunos|aix)$/;
const KNOWN_PROCESSORS = /^(x64|arm64|arm|ia32|ppc64|riscv64|s390x|loong64|mips64el|wasm32)$/;

/** Such packages carry their platform in their name. */
function entryFor(name: string, range: string, dev: boolean): LockEntry {
  const words = (name.split("/").at(-1) ?? "").split(/[-.]/);
  const system = words.find((word) => KNOWN_SYSTEMS.test(word));
  const processor = words.find((word) => KNOWN_PROCESSORS.test(word));
  const isMusl = words.some((word) => word.startsWith("musl"));
  return {
    version: range.replace(/^[\^~>=]+/, ""),
    ...(processor === undefined ? {} : { cpu: [processor] }),
    ...(dev ? { dev } : {}),
    ...(system === "linux" ? { libc: [isMusl ? "musl" : "glibc"] } : {}),
    optional: true,
    ...(system === undefined ? {} : { os: [SYSTEMS[system] ?? system] }),
  };
}

/** Packages that npm would take as they come, on whatever platform. */
export function unchecked(packages: LockedPackages): readonly string[] {
  return Object.entries(packages).flatMap(([path, entry]) =>
    path === "" || entry.integrity !== undefined ? [] : [path],
  );
}

/**
 * Whether the package is ever installed where Mergeway is built, tested and shipped: Linux on x64
 * and arm64.
 */
export function isForSupportedPlatform({ os, cpu }: LockEntry): boolean {
  const processors = ["x64", "arm64"];
  return (
    (os === undefined || os.includes("linux")) &&
    (cpu === undefined || cpu.some((each) => processors.includes(each)))
  );
}

/** Undefined where the registry does not carry the package. */
function integrityOf(path: string, version: string | undefined): string | undefined {
  const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
  try {
    const told = execFileSync("npm", ["view", `${name}@${version}`, "dist.integrity"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
    return /^sha512-[A-Za-z0-9+/=]+$/.test(told) ? told : undefined;
  } catch {
    return undefined;
  }
}

function withIntegrity([path, entry]: [string, LockEntry]): [string, LockEntry] {
  if (path === "" || entry.integrity !== undefined) return [path, entry];
  const integrity = integrityOf(path, entry.version);
  const { version, ...rest } = entry;
  return [path, integrity === undefined || version === undefined ? entry : { version, integrity, ...rest }];
}

if (import.meta.main) {
  const file = new URL("../package-lock.json", import.meta.url);
  const lock = JSON.parse(readFileSync(file, "utf8")) as { packages: Record<string, LockEntry> };
  const missing = missingOptional(lock.packages);
  const entries = Object.entries({ ...lock.packages, ...missing }).sort(([a], [b]) => (a < b ? -1 : 1));
  const packages = Object.fromEntries(entries.map(withIntegrity));
  writeFileSync(file, `${JSON.stringify({ ...lock, packages }, null, 2)}\n`);
  const before = unchecked({ ...lock.packages, ...missing }).length;
  const after = unchecked(packages);
  console.log(
    `added ${Object.keys(missing).length} entries and ${before - after.length} integrities; ${after.length} are without`,
  );
  for (const path of after) console.log(`without: ${path}`);
}
