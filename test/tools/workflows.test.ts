/** What the forge runs and asks, checked against the checkout: a name that is gone fails here. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const filesIn = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`);

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly concurrency?: object;
  readonly jobs: Readonly<
    Record<string, { "timeout-minutes"?: number; "runs-on": string; steps: readonly Step[] }>
  >;
}

const workflows = filesIn(".github/workflows");
const actions = filesIn(".github/actions").map((folder) => `${folder}/action.yml`);
const { scripts } = JSON.parse(read("package.json")) as { scripts: Readonly<Record<string, string>> };

it("there are workflows for tests, clusters, conformance and releases", () => {
  expect(workflows.map((path) => path.split("/").at(-1))).toEqual([
    "conformance.yml",
    "e2e.yml",
    "release.yml",
    "test.yml",
  ]);
});

describe.each(workflows)("%s", (path) => {
  const workflow = parse(read(path)) as Workflow;

  it("may read the repository and nothing else, unless a job says so", () => {
    expect(workflow.permissions).toEqual({ contents: "read" });
    expect(workflow.concurrency).toBeDefined();
  });

  it("ends each job after a time, and leaves no token in the checkout", () => {
    for (const [name, job] of Object.entries(workflow.jobs)) {
      expect(job["timeout-minutes"], name).toBeGreaterThan(0);
      const checkout = job.steps.find(({ uses }) => uses?.startsWith("actions/checkout@"));
      expect(checkout?.with, name).toMatchObject({ "persist-credentials": false });
    }
  });
});

/** The command of each `run`, of workflows and of the scripts below .ci, line by line. */
function commandsOf(path: string): readonly string[] {
  const text = read(path);
  if (!path.endsWith(".yml")) return text.split("\n").filter((line) => !line.startsWith("#"));
  const parsed = parse(text) as Partial<Workflow> & { runs?: { steps: readonly Step[] } };
  const steps = parsed.runs?.steps ?? Object.values(parsed.jobs ?? {}).flatMap((job) => job.steps);
  return steps.flatMap(({ run }) => run?.split("\n") ?? []);
}

describe.each([...workflows, ...actions, ...filesIn(".ci")])("the commands of %s", (path) => {
  const commands = commandsOf(path).join("\n");

  it("name npm scripts that exist", () => {
    for (const [, name = ""] of commands.matchAll(/npm run (?:-s )?([\w:-]+)/g)) {
      expect(Object.keys(scripts)).toContain(name);
    }
  });

  it("name files that exist", () => {
    for (const [, name = ""] of commands.matchAll(/(?:^|[\s"])((?:\.ci|tools|charts|test)\/[\w./-]+)/gm)) {
      expect(existsSync(join(ROOT, name)), name).toBe(true);
    }
  });

  it("are the project's own, so that they can be run without the forge", () => {
    if (!path.endsWith(".yml")) return;
    for (const command of commandsOf(path)) {
      expect(command).toMatch(/^(?:sudo -E env "PATH=\$PATH" )?(?:npm (?:ci|test|run )|\.ci\/)/);
    }
  });
});

it("actions of others are pinned to a commit, with the version beside it", () => {
  for (const path of [...workflows, ...actions]) {
    for (const [line, name = ""] of read(path).matchAll(/uses: (\S+).*$/gm)) {
      if (name.startsWith("./")) expect(existsSync(join(ROOT, name, "action.yml")), name).toBe(true);
      else expect(line).toMatch(/@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    }
  }
});

it("scripts of .ci are executable and stop at the first failure", () => {
  for (const path of filesIn(".ci")) {
    expect(statSync(join(ROOT, path)).mode & 0o111, path).toBe(0o111);
    expect(read(path), path).toContain("set -euo pipefail");
  }
});

it("owners are named for paths that exist", () => {
  const lines = read(".github/CODEOWNERS")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    const [pattern = "", ...owners] = line.split(/\s+/);
    expect(pattern === "*" || existsSync(join(ROOT, pattern)), pattern).toBe(true);
    expect(owners.length, line).toBeGreaterThan(0);
  }
});

describe("Renovate", () => {
  interface CustomManager {
    readonly managerFilePatterns: readonly string[];
    readonly matchStrings: readonly string[];
  }
  const config = JSON.parse(read("renovate.json")) as { customManagers: readonly CustomManager[] };

  it.each(config.customManagers.map((manager) => [manager.matchStrings[0] ?? "", manager] as const))(
    "finds %s",
    (_, { managerFilePatterns: [file = ""], matchStrings }) => {
      for (const pattern of matchStrings) {
        expect(new RegExp(pattern).exec(read(file))?.groups?.["currentValue"]).toMatch(/^v?\d+\./);
      }
    },
  );
});

it("issue forms have a name, a description and questions", () => {
  const forms = filesIn(".github/ISSUE_TEMPLATE").filter((path) => !path.endsWith("config.yml"));
  expect(forms.length).toBeGreaterThan(0);
  for (const path of forms) {
    const form = parse(read(path)) as Record<string, unknown>;
    expect(form, path).toMatchObject({ name: expect.any(String), description: expect.any(String) });
    expect(form["body"], path).not.toHaveLength(0);
  }
});

it("the message that CONTRIBUTING.md lets a newcomer change is where it says", () => {
  const message = "is already held by another listener of the Gateway";
  expect(read("CONTRIBUTING.md").replaceAll(/\s+/g, " ")).toContain(message);
  expect(read("src/engine/listeners/merge.ts")).toContain(message);
});

describe("links of the pages for newcomers", () => {
  it.each([
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "ARCHITECTURE.md",
    ".github/pull_request_template.md",
  ])("%s leads to files that exist", (page) => {
    for (const [, target = ""] of read(page).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      expect(existsSync(join(ROOT, page, "..", target)), target).toBe(true);
    }
  });
});
