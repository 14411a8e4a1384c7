import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listFiles } from "../../../src/sources/files/list-files.ts";
import { loadPaths, readListed } from "../../../src/sources/files/load-paths.ts";
import { pathError } from "../../../src/sources/files/path-error.ts";
import { decode } from "../../../src/sources/files/read-file.ts";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "mergeway-load-"));
});

afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function put(name: string, text: string): string {
  const path = join(root, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const namespace = (name: string): string => `apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${name}\n`;

test("folders are read with all YAML and JSON below them, without hidden entries", async () => {
  for (const name of [
    "b.yaml",
    "a.yml",
    "sub/c.json",
    "sub/deeper/d.YAML",
    ".hidden/e.yaml",
    "node_modules/f.yaml",
  ]) {
    put(name, namespace(name.replaceAll(/\W/g, "").toLowerCase()));
  }
  put(".g.yaml", namespace("g"));
  put("notes.txt", "not yaml: [");
  put("c.yaml.swp", "not yaml: [");
  const { files, resources, errors } = await loadPaths([root]);
  expect(errors).toEqual([]);
  expect(files.map((file) => file.slice(root.length + 1))).toEqual([
    "a.yml",
    "b.yaml",
    "sub/c.json",
    "sub/deeper/d.YAML",
  ]);
  expect([...resources.keys()]).toEqual(
    ["ayml", "byaml", "subcjson", "subdeeperdyaml"].map((name) => `Namespace//${name}`),
  );
});

test("examples like those of the three revisions of GEP-1713 are admitted", async () => {
  const { resources, errors, warnings } = await loadPaths([join(import.meta.dirname, "examples")]);
  expect(errors).toEqual([]);
  expect(warnings).toEqual([]);
  expect([...resources.keys()]).toEqual([
    "Gateway/default/parent",
    "Gateway/default/child",
    "HTTPRoute/default/to-child",
    "Gateway/infra/shared",
    "ListenerSet/team-a/listeners",
    "HTTPRoute/team-a/web",
    "XListenerSet/team-b/no-port",
    "XListenerSet/team-b/with-port",
  ]);
  expect(resources.get("XListenerSet/team-b/no-port")?.resource).toMatchObject({
    status: { listeners: [{ port: 30001 }] },
  });
});

test("of an object in two files the first in sorted order counts, and the error names both", async () => {
  const first = put("a.yaml", `${namespace("x")}---\n${namespace("x")}`);
  const second = put("b.yaml", `# later\n${namespace("x")}`);
  const { resources, errors } = await loadPaths([second, first]);
  expect(resources.get("Namespace//x")).toMatchObject({ file: first, line: 1 });
  expect(errors).toMatchObject([
    {
      file: first,
      line: 6,
      rule: "duplicate-object",
      object: "Namespace x",
      message: expect.stringContaining(`${first}:1`),
    },
    { file: second, line: 2, rule: "duplicate-object", remedy: expect.stringContaining(`${first}:1`) },
  ]);
});

test("a file named twice, or by a link, is read once", async () => {
  const file = put("a.yaml", namespace("x"));
  symlinkSync(file, join(root, "z.yaml"));
  const { errors, files } = await loadPaths([root, file, join(root, "z.yaml")]);
  expect(errors).toEqual([]);
  expect(files).toEqual([file]);
});

test("circular links are not followed for ever", async () => {
  put("a/b/c.yaml", namespace("x"));
  symlinkSync(join(root, "a"), join(root, "a/b/back"));
  symlinkSync(join(root, "self"), join(root, "self"));
  const { resources, errors } = await loadPaths([root]);
  expect([...resources.keys()]).toEqual(["Namespace//x"]);
  expect(errors).toMatchObject([
    { file: join(root, "self"), message: expect.stringContaining("leads back to itself") },
  ]);
});

test("a path that does not exist is an error for that path alone", async () => {
  const file = put("a.yaml", namespace("x"));
  const { resources, errors } = await loadPaths([join(root, "missing"), file, join(file, "below")]);
  expect(resources.size).toBe(1);
  expect(errors.map(({ rule, message }) => [rule, message])).toEqual([
    ["file/unreadable", "there is no such file or folder"],
    ["file/unreadable", "there is no such file or folder"],
  ]);
});

test("a file that vanishes between listing and reading is an error for that file alone", async () => {
  put("a.yaml", namespace("x"));
  put("b.yaml", namespace("other"));
  const { files } = await listFiles([root]);
  rmSync(join(root, "a.yaml"));
  const contents = await Promise.all(files.map((file) => readListed(file, {})));
  expect(contents.map(({ documents }) => documents.length)).toEqual([0, 1]);
  expect(contents[0]?.errors).toMatchObject([
    { rule: "file/unreadable", remedy: expect.stringContaining("removed while") },
  ]);
});

test.each([
  ["EACCES", "may not be read"],
  ["EMFILE", "too many files are open"],
  ["EIO", "could not be read (EIO)"],
])("the error of a file that fails with %s says: %s", (code, message) => {
  const error = pathError("f.yaml", Object.assign(new Error("no"), { code }));
  expect(error).toMatchObject({ file: "f.yaml", line: 1, column: 1, rule: "file/unreadable", message });
});

test("a file over the size limit is refused without reading it", async () => {
  const file = put("a.yaml", "");
  truncateSync(file, 64 * 1024 * 1024);
  put("b.yaml", namespace("other"));
  const { resources, errors } = await loadPaths([root]);
  expect(resources.size).toBe(1);
  expect(errors).toMatchObject([{ file, rule: "file/too-large", remedy: "Split it into several files." }]);
});

test("the error of text that is not UTF-8 has its line and column", () => {
  const bytes = Buffer.concat([Buffer.from("a: b\nc: é"), Buffer.from([0xff, 0xfe])]);
  expect(decode(bytes, "f.yaml").error).toMatchObject({
    file: "f.yaml",
    line: 2,
    column: 5,
    rule: "file/not-utf8",
  });
  expect(decode(Buffer.from("a: é"), "f.yaml")).toEqual({ text: "a: é" });
});

test("a set with sixty-five listeners is refused among a hundred with sixty-four", async () => {
  const entry = (i: number): string => `  - {name: l${i}, port: ${i + 1}, protocol: HTTP}`;
  const listeners = Array.from({ length: 64 }, (_, i) => entry(i)).join("\n");
  const set = (name: string): string =>
    `apiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {name: ${name}}\nspec:\n  parentRef: {name: gw}\n  listeners:\n${listeners}\n`;
  put("sets.yaml", Array.from({ length: 100 }, (_, i) => set(`s${i}`)).join("---\n"));
  put("bad.yaml", `${set("bad")}  - {name: one-too-many, port: 65, protocol: HTTP}\n`);
  const { resources, errors } = await loadPaths([root]);
  expect(resources.size).toBe(100);
  expect(errors.map(({ rule, path }) => [rule, path])).toEqual([["schema/max-items", "spec.listeners"]]);
});
