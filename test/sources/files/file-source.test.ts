import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Resource } from "../../../src/api/resource.ts";
import { FileSource, type FileSourceOptions } from "../../../src/sources/files/file-source.ts";
import { FolderState, type Settled } from "../../../src/sources/files/folder-state.ts";
import type { ResourceChange } from "../../../src/sources/source.ts";

let root: string;
let stop: AbortController;
let running: Promise<void> | undefined;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "mergeway-watch-"));
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await running;
  running = undefined;
  rmSync(root, { recursive: true, force: true });
});

const config = (name: string, value: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {v: "${value}"}\n`;

function put(name: string, text: string): void {
  writeFileSync(join(root, name), text);
}

/** Applies the changes of a source, and waits for conditions on the result. */
class Follower {
  readonly state = new Map<string, Resource>();
  readonly batches: (readonly ResourceChange[])[] = [];
  settled: Settled | undefined;
  #onChange: () => void = () => {};

  readonly sink = (changes: readonly ResourceChange[]): void => {
    this.batches.push(changes);
    for (const { key, resource } of changes) {
      if (resource === undefined) this.state.delete(key);
      else this.state.set(key, resource);
    }
    this.#onChange();
  };

  readonly onSettled = (settled: Settled): void => {
    this.settled = settled;
    this.#onChange();
  };

  /** Resolves when the condition holds; only the time limit of the test ends the wait. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#onChange = resolve;
      });
    }
  }

  value(name: string): unknown {
    const found = this.state.get(`ConfigMap/default/${name}`) as { data?: { v?: string } } | undefined;
    return found?.data?.v;
  }
}

function follow(paths: readonly string[] = [root], options: FileSourceOptions = {}): Follower {
  const follower = new Follower();
  // No poll during the test: watching alone must be enough.
  const source = new FileSource(paths, {
    debounceMs: 20,
    pollMs: 600_000,
    onSettled: follower.onSettled,
    ...options,
  });
  running = source.run(follower.sink, stop.signal);
  return follower;
}

test("the first batch has everything, later batches only what changed", async () => {
  put("a.yaml", config("a", "1"));
  put("b.yaml", config("b", "1"));
  const follower = follow();
  await follower.until(() => follower.batches.length === 1);
  expect(follower.batches[0]?.map(({ key }) => key)).toEqual(["ConfigMap/default/a", "ConfigMap/default/b"]);
  put("a.yaml", config("a", "2"));
  await follower.until(() => follower.value("a") === "2");
  expect(follower.batches.at(-1)?.map(({ key }) => key)).toEqual(["ConfigMap/default/a"]);
  rmSync(join(root, "b.yaml"));
  await follower.until(() => !follower.state.has("ConfigMap/default/b"));
});

test("the first batch of an empty folder is empty", async () => {
  const follower = follow();
  await follower.until(() => follower.batches.length === 1);
  expect(follower.batches[0]).toEqual([]);
  put("a.yaml", config("a", "1"));
  await follower.until(() => follower.value("a") === "1");
});

test("a file that an editor replaces by renaming is read, its scratch files are not", async () => {
  put("a.yaml", config("a", "1"));
  const follower = follow();
  await follower.until(() => follower.value("a") === "1");
  put(".a.yaml.swp", "\u0000");
  put("a.yaml~", "broken: [");
  put("a.yaml.tmp", config("a", "2"));
  renameSync(join(root, "a.yaml.tmp"), join(root, "a.yaml"));
  await follower.until(() => follower.value("a") === "2");
  expect(follower.settled?.errors).toEqual([]);
});

test("folders that are created with files, and removed, are followed", async () => {
  const follower = follow();
  await follower.until(() => follower.batches.length === 1);
  mkdirSync(join(root, "x/y"), { recursive: true });
  put("x/y/a.yaml", config("a", "1"));
  await follower.until(() => follower.value("a") === "1");
  put("x/y/a.yaml", config("a", "2"));
  await follower.until(() => follower.value("a") === "2");
  rmSync(join(root, "x"), { recursive: true });
  await follower.until(() => follower.state.size === 0);
});

test("a ConfigMap volume is followed when its ..data link is swapped", async () => {
  mkdirSync(join(root, "..1"));
  put("..1/a.yaml", config("a", "1"));
  symlinkSync("..1", join(root, "..data"));
  symlinkSync("..data/a.yaml", join(root, "a.yaml"));
  const follower = follow();
  await follower.until(() => follower.value("a") === "1");
  mkdirSync(join(root, "..2"));
  put("..2/a.yaml", config("a", "2"));
  symlinkSync("..2", join(root, "..data_tmp"));
  renameSync(join(root, "..data_tmp"), join(root, "..data"));
  rmSync(join(root, "..1"), { recursive: true });
  await follower.until(() => follower.value("a") === "2");
});

test("a single file is followed before it exists and after it is replaced", async () => {
  const follower = follow([join(root, "a.yaml")]);
  await follower.until(() => follower.settled !== undefined);
  expect(follower.settled?.errors).toMatchObject([{ rule: "file/unreadable" }]);
  put("a.yaml", config("a", "1"));
  await follower.until(() => follower.value("a") === "1");
  put("new", config("a", "2"));
  renameSync(join(root, "new"), join(root, "a.yaml"));
  await follower.until(() => follower.value("a") === "2");
});

test("polling finds changes where nothing can be watched", async () => {
  const missing = join(root, "not/yet/there");
  const follower = follow([missing], { pollMs: 20 });
  await follower.until(() => follower.batches.length === 1);
  mkdirSync(missing, { recursive: true });
  put("not/yet/there/a.yaml", config("a", "1"));
  await follower.until(() => follower.value("a") === "1");
});

test("a file that breaks keeps its last good objects, is reported, and recovers", async () => {
  put("a.yaml", `${config("a", "1")}---\n${config("b", "1")}---\n${config("c", "1")}`);
  const follower = follow();
  await follower.until(() => follower.state.size === 3);
  put("a.yaml", `${config("a", "2")}---\nbroken: [\n---\n${config("c", "1")}`);
  await follower.until(() => follower.value("a") === "2" && (follower.settled?.errors.length ?? 0) > 0);
  expect(follower.value("b")).toBe("1");
  expect(follower.settled?.errors.at(-1)).toMatchObject({
    rule: "file/last-good",
    message: expect.stringContaining("ConfigMap default/b"),
  });
  put("a.yaml", config("a", "3"));
  await follower.until(() => follower.value("a") === "3");
  expect([...follower.state.keys()]).toEqual(["ConfigMap/default/a"]);
  expect(follower.settled?.errors).toEqual([]);
});

test("a refused object keeps its last good version; an object removed from the file goes", async () => {
  put("a.yaml", `${config("a", "1")}---\n${config("b", "1")}`);
  const follower = follow();
  await follower.until(() => follower.state.size === 2);
  put("a.yaml", `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: 1}\n`);
  await follower.until(() => !follower.state.has("ConfigMap/default/b"));
  expect(follower.value("a")).toBe("1");
  expect(follower.settled?.errors.map(({ rule }) => rule)).toEqual(["schema/type", "file/last-good"]);
  rmSync(join(root, "a.yaml"));
  await follower.until(() => follower.state.size === 0);
});

test("only changed files are read again, and an equal object is no change", async () => {
  put("a.yaml", config("a", "1"));
  put("b.yaml", config("b", "1"));
  const state = new FolderState([root], {});
  const first = await state.refresh(stop.signal);
  put("a.yaml", `# only a comment\n${config("a", "1")}`);
  utimesSync(join(root, "a.yaml"), new Date(), new Date(Date.now() + 10_000));
  const second = await state.refresh(stop.signal);
  expect(second.changes).toEqual([]);
  expect(second.resources.get("ConfigMap/default/a")?.line).toBe(2);
  expect(second.resources.get("ConfigMap/default/b")).toBe(first.resources.get("ConfigMap/default/b"));
});

test("when the first of two objects with one name goes, the second replaces it in one batch", async () => {
  put("a.yaml", config("x", "first"));
  put("b.yaml", config("x", "second"));
  const state = new FolderState([root], {});
  const before = await state.refresh(stop.signal);
  expect(before.errors).toMatchObject([{ rule: "duplicate-object", file: join(root, "b.yaml") }]);
  rmSync(join(root, "a.yaml"));
  const after = await state.refresh(stop.signal);
  expect(after.errors).toEqual([]);
  expect(after.changes).toMatchObject([{ key: "ConfigMap/default/x", resource: { data: { v: "second" } } }]);
});

test("aborting ends the run", async () => {
  const follower = follow();
  await follower.until(() => follower.batches.length === 1);
  stop.abort();
  await expect(running).resolves.toBeUndefined();
});
