/** Programs from registries, kept by name and version in the cache that the test bed uses. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { findCommand, requireGo } from "../tools/host/requirements.ts";
import { buildRecipes, folderOf } from "../tools/programs/build.ts";
import { quietly } from "../tools/programs/go.ts";
import { fromPackages, type PackagePrograms, type Recipe } from "../tools/programs/recipes.ts";
import { SuiteFailure } from "./suite.ts";

/** Programs of one Go module; gives a function that says where a program is. */
export async function installGo(programs: PackagePrograms): Promise<(program: string) => string> {
  const recipe = fromPackages(programs);
  if (!existsSync(folderOf(recipe))) requireGo();
  const folder = await installed(recipe);
  return (program) => join(folder, program);
}

export interface PythonPackages {
  readonly name: string;
  /** Each pinned, as in `sslyze==6.3.1`. */
  readonly packages: readonly string[];
  /** Source packages to be unpacked beside them, for the tests that they carry. */
  readonly sources?: readonly string[];
  /** A version other than that of `python3` on the PATH, as in `2.7`. */
  readonly python?: string;
}

export interface Python {
  readonly command: string;
  readonly folder: string;
  /** To be added to the environment. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Packages in a folder of their own: unlike a virtual environment it can be moved, and so appears
 * only when it is complete.
 */
export async function installPython(wanted: PythonPackages): Promise<Python> {
  const command = pythonCommand(wanted.python);
  const [first = ""] = wanted.packages;
  const folder = await installed({
    name: wanted.name,
    version: `${first.split("==")[1]}-py${pythonVersion(command)}`,
    async build(shop) {
      const pip = [command, "-m", "pip", "--disable-pip-version-check"];
      await quietly(shop, [...pip, "install", "--target", shop.out, ...wanted.packages]);
      for (const source of wanted.sources ?? []) {
        const flags = ["--no-deps", "--no-binary", source.split("==")[0] ?? "", "--dest", shop.scratch];
        await quietly(shop, [...pip, "download", ...flags, source]);
      }
      mkdirSync(join(shop.out, "sources"));
      for (const archive of readdirSync(shop.scratch).filter((name) => name.endsWith(".tar.gz"))) {
        await quietly(shop, ["tar", "-xzf", archive, "-C", join(shop.out, "sources")]);
      }
    },
  });
  return {
    command,
    folder,
    env: { PYTHONPATH: folder, PYTHONNOUSERSITE: "1", PYTHONDONTWRITEBYTECODE: "1" },
  };
}

/**
 * Where a version of Python that is not the machine's own may be: on the PATH, or among pyenv's.
 */
function pythonCommand(version: string | undefined): string {
  if (version === undefined) {
    const python = findCommand("python3");
    if (python === undefined) throw new SuiteFailure("there is no python3: install python3 and python3-pip");
    return python;
  }
  const versions = join(process.env["PYENV_ROOT"] ?? join(homedir(), ".pyenv"), "versions");
  const names = existsSync(versions) ? readdirSync(versions).filter((name) => name.startsWith(version)) : [];
  const found = names.map((name) => join(versions, name, "bin/python")).find((path) => existsSync(path));
  const command = found ?? findCommand(`python${version}`);
  if (command === undefined) {
    throw new SuiteFailure(
      `this suite needs Python ${version}: install it, for example with pyenv install ${version}`,
    );
  }
  return command;
}

function pythonVersion(command: string): string {
  const script = "import sys; print('%d.%d' % sys.version_info[:2])";
  return execFileSync(command, ["-c", script], { encoding: "utf8" }).trim();
}

/** Packages of npm, pinned as in `vite@8.3.8`; gives the folder that holds node_modules. */
export async function installNpm(name: string, version: string): Promise<string> {
  return installed({
    name,
    version,
    async build(shop) {
      const flags = ["--prefix", shop.out, "--no-audit", "--no-fund", "--no-save"];
      await quietly(shop, ["npm", "install", ...flags, `${name}@${version}`]);
    },
  });
}

async function installed(recipe: Recipe): Promise<string> {
  await buildRecipes([recipe], "suite-build");
  return folderOf(recipe);
}

/** A program of a Debian package, installed with apt where it is missing. */
export async function installDebian(program: string, name: string): Promise<string> {
  const before = findCommand(program);
  if (before !== undefined) return before;
  if (findCommand("apt-get") === undefined || process.getuid?.() !== 0) {
    throw new SuiteFailure(
      `${program} is missing: install it (Debian's package is ${name}), or run this as root with apt`,
    );
  }
  console.log(`installing ${name} with apt`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const wait = ["-o", "DPkg::Lock::Timeout=300", "-qq"];
  for (const args of [["update"], ["install", "-y", "--no-install-recommends", name]]) {
    execFileSync("apt-get", [...wait, ...args], { env, stdio: ["ignore", "ignore", "inherit"] });
  }
  const found = findCommand(program);
  if (found === undefined)
    throw new SuiteFailure(`apt's package ${name} gave no ${program}: install it by hand`);
  return found;
}
