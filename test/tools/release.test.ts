import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { copyChart } from "../../tools/copy-chart.ts";
import { parseContainerfile } from "../../tools/images/containerfile.ts";
import { releasedChangelog, releaseNotes } from "../../tools/release/changelog.ts";
import { notesOfTag, release } from "../../tools/release/release.ts";
import { nextVersion, versionFiles, withVersion } from "../../tools/release/version.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "mergeway-release-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("the next version", () => {
  it.each([
    ["patch", "1.2.4"],
    ["minor", "1.3.0"],
    ["major", "2.0.0"],
    ["1.2.3", "1.2.3"],
    ["1.10.0", "1.10.0"],
  ])("of 1.2.3 after %s is %s", (step, next) => {
    expect(nextVersion("1.2.3", step)).toBe(next);
  });

  it.each(["1.2.2", "1.1.9", "0.9.9"])("is not %s, which is older than 1.2.3", (step) => {
    expect(() => nextVersion("1.2.3", step)).toThrow("is older than");
  });

  it.each(["", "v1.2.4", "1.3", "next"])("is not %j", (step) => {
    expect(() => nextVersion("1.2.3", step)).toThrow("is not major, minor, patch or X.Y.Z");
  });
});

describe("the changelog", () => {
  const before = "# Changelog\n\n## Unreleased\n\n### Added\n\n- a\n\n## 1.0.0 - 2026-01-01\n\n- old\n";

  it("has what was unreleased under the version and date, and room for what comes next", () => {
    const after = releasedChangelog(before, "1.1.0", "2026-02-03");
    expect(after).toBe(
      "# Changelog\n\n## Unreleased\n\n## 1.1.0 - 2026-02-03\n\n### Added\n\n- a\n\n## 1.0.0 - 2026-01-01\n\n- old\n",
    );
    expect(releaseNotes(after, "1.1.0")).toBe("### Added\n\n- a\n");
    expect(() => releaseNotes(after, "1.2.0")).toThrow("no released version 1.2.0");
  });

  it("may name the version that it prepares", () => {
    const text = before.replace("Unreleased", "0.1.0 (unreleased)");
    expect(releasedChangelog(text, "0.1.0", "2026-02-03")).toContain("## 0.1.0 - 2026-02-03\n\n### Added");
  });

  it("is not released when nothing is unreleased", () => {
    const after = releasedChangelog(before, "1.1.0", "2026-02-03");
    expect(() => releasedChangelog(after, "1.2.0", "2026-02-04")).toThrow("nothing that is unreleased");
    expect(() => releasedChangelog("# Changelog\n", "1.2.0", "2026-02-04")).toThrow("has no part");
  });
});

it("a file that does not name the version where it should stops the release", () => {
  const [file] = versionFiles;
  if (file === undefined) throw new Error("there are no files");
  expect(() => withVersion(file, '{\n  "version": "1.0.0"\n}', "1.0.1", "1.0.2")).toThrow(
    'package.json has "\\n  \\"version\\": \\"1.0.1" 0 times, not 1',
  );
});

describe("a release", () => {
  const read = (path: string): string => readFileSync(join(root, path), "utf8");
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  const printed: string[] = [];

  /** This checkout's files that a release edits, committed in a repository of their own. */
  beforeEach(() => {
    for (const path of ["CHANGELOG.md", "install.yaml", ...versionFiles.map((file) => file.path)]) {
      mkdirSync(join(root, dirname(path)), { recursive: true });
      cpSync(join(ROOT, path), join(root, path));
    }
    const changelog = read("CHANGELOG.md").replace(/^## .*$/m, "## Unreleased\n\n- something\n\n## 0 - then");
    writeFileSync(join(root, "CHANGELOG.md"), changelog);
    git("init", "--quiet");
    git("config", "user.email", "test@example.com");
    git("config", "user.name", "Test");
    git("add", "--all");
    git("commit", "--quiet", "--message", "Before");
    printed.length = 0;
  });

  const run = (step: string, isDryRun = false): Promise<void> =>
    release({
      root,
      step,
      date: "2026-02-03",
      isDryRun,
      renderInstall: async () => `# rendered with ${parse(read("charts/mergeway/Chart.yaml")).version}\n`,
      print: (line) => printed.push(line),
    });

  it("sets the version in every file, and makes one commit and one tag", async () => {
    await run("99.0.0");
    expect(JSON.parse(read("package.json")).version).toBe("99.0.0");
    const lock = JSON.parse(read("package-lock.json")) as Record<string, Record<string, { version: string }>>;
    expect([lock["version"], lock["packages"]?.[""]?.version]).toEqual(["99.0.0", "99.0.0"]);
    expect(parse(read("charts/mergeway/Chart.yaml"))).toMatchObject({
      version: "99.0.0",
      appVersion: "99.0.0",
      dependencies: [{ name: "crds", version: "99.0.0" }],
    });
    expect(parse(read("charts/mergeway/charts/crds/Chart.yaml"))).toMatchObject({
      version: "99.0.0",
      appVersion: "99.0.0",
    });
    expect(JSON.stringify(parseContainerfile(read("Containerfile")).stages)).toContain(
      '"org.opencontainers.image.version":"99.0.0"',
    );
    expect(read("install.yaml")).toBe("# rendered with 99.0.0\n");
    expect(read("CHANGELOG.md")).toContain("## Unreleased\n\n## 99.0.0 - 2026-02-03\n\n- something\n");
    expect(git("status", "--porcelain")).toBe("");
    expect(git("log", "-1", "--format=%s")).toBe("Release 99.0.0");
    expect(git("tag", "--points-at", "HEAD")).toBe("v99.0.0");
    expect(git("tag", "-n9", "--list", "v99.0.0")).toContain("- something");
    expect(notesOfTag(root, "v99.0.0")).toBe("- something\n");
    expect(() => notesOfTag(root, "v98.0.0")).toThrow("the tag is v98.0.0, the package's version 99.0.0");
    expect(printed.at(-1)).toBe("committed and tagged v99.0.0. Publish it with: git push --follow-tags");
  });

  it("with --dry-run writes nothing, and prints all that it would do", async () => {
    const head = git("rev-parse", "HEAD");
    await run("minor", true);
    expect(git("status", "--porcelain")).toBe("");
    expect(git("rev-parse", "HEAD")).toBe(head);
    expect(git("tag")).toBe("");
    expect(printed.join("\n")).toContain("would write charts/mergeway/Chart.yaml\n");
    expect(printed.join("\n")).toContain("- something");
  });

  it("is refused when the tree is not clean or the tag exists", async () => {
    git("tag", "v99.0.0");
    await expect(run("99.0.0")).rejects.toThrow("there is a tag v99.0.0 already");
    writeFileSync(join(root, "note"), "");
    await expect(run("99.0.1")).rejects.toThrow("commit or remove these first:\n?? note");
  });
});

it("the published chart takes its image from where the image was published", () => {
  copyChart(join(root, "mergeway"), "ghcr.io/someone/mergeway");
  const values = readFileSync(join(root, "mergeway/values.yaml"), "utf8");
  expect(parse(values).image).toMatchObject({ registry: "ghcr.io", repository: "someone/mergeway" });
  const original = readFileSync(join(ROOT, "charts/mergeway/values.yaml"), "utf8");
  expect(values.match(/#/g)).toHaveLength(original.match(/#/g)?.length ?? 0);
  expect(() => copyChart(join(root, "other"), "mergeway")).toThrow("is not REGISTRY/NAME");
});
