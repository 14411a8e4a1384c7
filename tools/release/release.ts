// One release: the version in every file that names it, the CHANGELOG, install.yaml, a commit and a
// tag. Nothing is pushed.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { releasedChangelog, releaseNotes } from "./changelog.ts";
import { ReleaseFailure } from "./failure.ts";
import { nextVersion, versionFiles, withVersion } from "./version.ts";

export interface ReleaseOptions {
  readonly root: string;
  /** major, minor, patch or X.Y.Z */
  readonly step: string;
  readonly date: string;
  readonly isDryRun: boolean;
  /** install.yaml of the chart as it then is. */
  readonly renderInstall: () => Promise<string>;
  readonly print: (line: string) => void;
}

export async function release({ root, ...options }: ReleaseOptions): Promise<void> {
  const { print } = options;
  const read = (path: string): string => readFileSync(join(root, path), "utf8");
  const write = (path: string, text: string): void => writeFileSync(join(root, path), text);
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();

  const from = currentVersion(read("package.json"));
  const version = nextVersion(from, options.step);
  const tag = `v${version}`;
  requireClean(git("status", "--porcelain"));
  if (git("tag", "--list", tag) !== "") throw new ReleaseFailure(`there is a tag ${tag} already`);

  const changelog = releasedChangelog(read("CHANGELOG.md"), version, options.date);
  const notes = releaseNotes(changelog, version);
  const edits = [
    { path: "CHANGELOG.md", text: changelog },
    ...versionFiles.map((file) => ({
      path: file.path,
      text: withVersion(file, read(file.path), from, version),
    })),
  ];
  const changed = edits.filter(({ path, text }) => text !== read(path));
  const paths = [...changed.map(({ path }) => path), "install.yaml"];

  print(`${from} -> ${version}, ${options.date}`);
  if (options.isDryRun) {
    for (const path of paths) print(`would write ${path}`);
    print(`would commit and tag ${tag}. Notes:\n\n${notes}`);
    return;
  }
  for (const { path, text } of changed) write(path, text);
  write("install.yaml", await options.renderInstall());
  for (const path of paths) print(`wrote ${path}`);
  git("add", "--", ...paths);
  git("commit", "--quiet", "--message", `Release ${version}`);
  git("tag", "--annotate", tag, "--cleanup=verbatim", "--message", `${tag}\n\n${notes}`);
  print(`committed and tagged ${tag}. Publish it with: git push --follow-tags`);
}

/** For the forge: what the CHANGELOG says of a tag that is the package's version. */
export function notesOfTag(root: string, tag: string): string {
  const version = currentVersion(readFileSync(join(root, "package.json"), "utf8"));
  if (tag !== `v${version}`) throw new ReleaseFailure(`the tag is ${tag}, the package's version ${version}`);
  return releaseNotes(readFileSync(join(root, "CHANGELOG.md"), "utf8"), version);
}

function currentVersion(manifest: string): string {
  return (JSON.parse(manifest) as { readonly version: string }).version;
}

function requireClean(status: string): void {
  if (status !== "") throw new ReleaseFailure(`commit or remove these first:\n${status}`);
}
