/** The package as published: packed, unpacked with only its production dependencies, run by npx. */
import { execFile } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { folder, ROOT } from "./mergeway.ts";

const run = promisify(execFile);
const PATH = `${dirname(process.execPath)}${delimiter}${process.env["PATH"]}`;

interface Manifest {
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

/** Packs a copy: packing builds, and the dist of the checkout may be in use. */
async function pack(): Promise<{ readonly tarball: string; readonly files: readonly string[] }> {
  const copy = folder({});
  for (const name of [
    "src",
    "examples",
    "package.json",
    "tsconfig.json",
    "tsconfig.build.json",
    "README.md",
    "LICENSE",
    "NOTICE",
  ]) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const { stdout } = await run("npm", ["pack", "--json", "--silent"], {
    cwd: copy,
    env: { ...process.env, PATH },
  });
  const packed = JSON.parse(stdout.slice(stdout.search(/^[[{]/m))) as unknown;
  const [{ filename, files }] = Object.values(packed as object) as [
    { filename: string; files: { path: string }[] },
  ];
  return { tarball: join(copy, filename), files: files.map(({ path }) => path) };
}

async function install(tarball: string): Promise<string> {
  const app = folder({ "package.json": "{}" });
  const home = join(app, "node_modules/mergeway");
  mkdirSync(home, { recursive: true });
  await run("tar", ["-xzf", tarball, "-C", home, "--strip-components=1"]);
  const { bin, dependencies } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as Manifest;
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(app, "node_modules", name)), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), join(app, "node_modules", name));
  }
  // As npm does for every bin.
  mkdirSync(join(app, "node_modules/.bin"));
  for (const [name, file] of Object.entries(bin)) {
    chmodSync(join(home, file), 0o755);
    symlinkSync(join(home, file), join(app, "node_modules/.bin", name));
  }
  return app;
}

test("the packed package runs with npx and only its production dependencies", async () => {
  const { tarball, files } = await pack();
  expect(files).toEqual(
    expect.arrayContaining([
      "dist/main.js",
      "dist/page/index.html",
      "dist/page/main.js",
      "dist/page/page.css",
      "examples/two-teams/demo-ca.crt",
      "LICENSE",
      "README.md",
    ]),
  );
  expect(files.filter((file) => /\.ts$|^(src|test)\//.test(file))).toEqual([]);
  const cwd = await install(tarball);
  const npxOf = async (bin: string, ...args: string[]): Promise<string> =>
    (await run("npx", ["--no-install", bin, ...args], { cwd, env: { ...process.env, PATH } })).stdout;
  const npx = (...args: string[]): Promise<string> => npxOf("mergeway", ...args);
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
  expect(await npx("--version")).toBe(`${version}\n`);
  // kubectl finds its plugins by name alone.
  expect(await npxOf("kubectl-mergeway", "--version")).toBe(`${version}\n`);
  const status = await npx("status", "node_modules/mergeway/examples/two-teams");
  expect(status).toContain("ListenerSet team-coffee/coffee");
  expect(status).toContain("conflicted (HostnameConflict)");
}, 300_000);
