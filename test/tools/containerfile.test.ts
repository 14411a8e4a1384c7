import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type Copy, parseContainerfile, type Stage } from "../../tools/images/containerfile.ts";
import type { ImageSpec } from "../../tools/images/image.ts";
import { imageFiles, type LockFile } from "../../tools/images/image-files.ts";
import { assemble, productImage } from "../../tools/images/product-image.ts";
import { trimmed } from "../../tools/images/sbom.ts";
import type { Entry } from "../../tools/images/tar.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const read = (name: string): string => readFileSync(join(ROOT, name), "utf8");
const json = <T>(name: string): T => JSON.parse(read(name)) as T;

describe("the parser", () => {
  const final = (text: string, args: Record<string, string> = {}): Stage | undefined =>
    parseContainerfile(text, args).stages.at(-1);

  const withVariables = (text: string): string => text.replaceAll("{", "${");

  it("joins continued lines, over comments between them", () => {
    const text = 'FROM a\nLABEL one="1 2" \\\n  # between\n  two=2\n';
    expect(final(text)?.steps).toEqual([{ kind: "label", pairs: { one: "1 2", two: "2" } }]);
  });

  it("fills in arguments, which a caller can set", () => {
    const text = withVariables("ARG BASE=a:1\nFROM {BASE} AS base\nFROM {BASE}\nARG V=2\nENV V_IS={V}\n");
    expect(final(text)).toMatchObject({ from: "a:1", steps: [{ pairs: { V_IS: "2" } }] });
    expect(final(text, { BASE: "b@sha256:0", V: "3" })).toMatchObject({
      from: "b@sha256:0",
      steps: [{ pairs: { V_IS: "3" } }],
    });
    expect(() => final(text, { OTHER: "1" })).toThrow("there is no ARG OTHER");
  });

  it("does not know an argument of another stage", () => {
    expect(() => final(withVariables("ARG V=1\nFROM a\nUSER {V}"))).toThrow(
      "Containerfile:3: USER: there is no ARG V in this stage",
    );
  });

  it.each([
    "ADD a /b",
    "CMD a",
    "EXPOSE 80",
    "HEALTHCHECK NONE",
    "SHELL ['/bin/sh']",
    "STOPSIGNAL SIGINT",
    "VOLUME /a",
    "ONBUILD RUN a",
    "copy a b",
    "COPY --chmod=755 a /b",
    "COPY --from=build --chown=1 /a /b",
    "COPY a* /b",
    'COPY ["a", "/b"]',
    "COPY a",
    "COPY a b /c",
    "ENTRYPOINT /bin/sh",
    "ENTRYPOINT []",
    "ENV A b",
    "ENV A='b'",
    "ENV A=$B",
    "ARG V",
    "RUN <<END",
    "RUN --mount=type=cache,target=/a b",
    "USER a b",
    "FROM --quick a",
    "FROM",
  ])("refuses %s, with its line", (line) => {
    expect(() => final(`FROM a\n${line}`)).toThrow(/^Containerfile:2: /);
  });

  it("refuses what is before the first FROM, unfinished or empty", () => {
    expect(() => final("USER 1\nFROM a")).toThrow("only ARG may come before the first FROM");
    expect(() => final("FROM a\nUSER 1 \\\n")).toThrow("ends with a \\");
    expect(() => final("# nothing")).toThrow("there is no FROM");
  });
});

describe("the final stage", () => {
  const file = (path: string): Entry => ({ kind: "file", path, mode: 0o644, source: path });
  const made = (text: string): Pick<ImageSpec, "layers" | "config"> =>
    assemble(parseContainerfile(`FROM a\n${text}\nENTRYPOINT ["/x"]`).stages.at(-1)?.steps ?? [], {
      build: [file("/out/a"), file("/out/dir/b"), file("/out/dir/deep/c"), file("/out/directory")],
    });
  const paths = (text: string): readonly (readonly string[])[] =>
    made(text).layers.map((layer) => layer.map((entry) => entry.path));

  it("copies a file under a name or into a folder, and of a folder its content", () => {
    expect(paths("COPY --from=build /out/a /app/z")).toEqual([["/app/z"]]);
    expect(paths("COPY --from=build /out/a /app/")).toEqual([["/app/a"]]);
    expect(paths("COPY --from=build /out/dir /app")).toEqual([["/app/b", "/app/deep/c"]]);
    expect(paths("COPY --from=build /out/a /out/dir /app/")).toEqual([["/app/a", "/app/b", "/app/deep/c"]]);
  });

  it.each([
    ["COPY --from=build /out/none /app/", "stage build has no /out/none"],
    ["COPY --from=other /a /b", "cannot copy from other"],
    ["COPY a /b", "cannot copy from the context"],
    ["COPY --from=build /out/a b", "needs an absolute path"],
    ["RUN make", 'the final stage runs "make"'],
  ])("refuses %s", (line, message) => {
    expect(() => made(line)).toThrow(message);
  });
});

describe("the SBOM", () => {
  const component = (name: string): Parameters<typeof trimmed>[0]["components"][number] => ({
    "bom-ref": `${name}@1`,
    name,
    version: "1",
    purl: `pkg:npm/${name}@1`,
  });
  const bom = {
    serialNumber: "urn:uuid:0",
    metadata: { timestamp: "now", component: { ...component("mergeway"), name: "folder" } },
    components: [component("a"), component("types")],
    dependencies: [
      { ref: "mergeway@1", dependsOn: ["a@1", "types@1"] },
      { ref: "types@1", dependsOn: [] },
    ],
  };

  it("names what is shipped, with Node, and the package by its name", () => {
    const { metadata, components, dependencies } = trimmed(bom, new Set(["a@1"]), "24.1.0");
    expect(metadata.component.name).toBe("mergeway");
    expect(components.map(({ purl }) => purl)).toEqual(["pkg:npm/a@1", "pkg:generic/node@24.1.0"]);
    expect(dependencies).toEqual([{ ref: "mergeway@1", dependsOn: ["a@1"] }]);
  });
});

describe("the Containerfile", () => {
  const { stages } = parseContainerfile(read("Containerfile"));
  const build = stages.find(({ name }) => name === "build");
  const contextPaths = (build?.steps ?? []).flatMap((step) =>
    step.kind === "copy" && step.from === undefined ? step.paths : [],
  );

  it("has the version of the package, and the Node that the tests run with", () => {
    const lock = json<LockFile>("package-lock.json");
    const labels = stages.at(-1)?.steps.find(({ kind }) => kind === "label");
    const { name, description, license, version } = json<Record<string, string>>("package.json");
    expect(labels).toMatchObject({
      pairs: {
        "org.opencontainers.image.title": name,
        "org.opencontainers.image.description": description,
        "org.opencontainers.image.licenses": license,
        "org.opencontainers.image.version": version,
      },
    });
    const node = stages.find((stage) => stage.name === "node");
    expect(node?.from).toContain(`node:${lock.packages["node_modules/node"]?.version}-`);
    expect(build?.from).toBe(node?.from);
  });

  it("runs as the user that the chart's pods run as", () => {
    const user = stages.at(-1)?.steps.find(({ kind }) => kind === "user");
    const { podSecurityContext } = parse(read("charts/mergeway/values.yaml")) as {
      podSecurityContext: { runAsUser: number; runAsGroup?: number };
    };
    expect(user).toEqual({ kind: "user", value: `${podSecurityContext.runAsUser}:65532` });
  });

  it("copies from the context what exists, and .dockerignore lets through that alone", () => {
    const allowed = read(".dockerignore")
      .split("\n")
      .flatMap((line) => (line.startsWith("!") ? [line.slice(1)] : []));
    expect(allowed.sort()).toEqual([...contextPaths].sort());
    for (const path of contextPaths) expect(existsSync(join(ROOT, path)), path).toBe(true);
  });
});

describe("a build", () => {
  const { stages } = parseContainerfile(read("Containerfile"));
  let work: string;
  beforeAll(() => {
    work = mkdtempSync(join(tmpdir(), "mergeway-build-"));
    runBuildStage(stages.find(({ name }) => name === "build"));
  }, 300_000);
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  /** As a builder would, in `work`, but with the packages that are installed already. */
  function runBuildStage(stage: Stage | undefined): void {
    const PATH = `${dirname(process.execPath)}${delimiter}${process.env["PATH"]}`;
    for (const step of stage?.steps ?? []) {
      if (step.kind === "copy") copyContext(step);
      else if (step.kind === "run" && step.command === "npm ci") installed();
      else if (step.kind === "run") {
        execFileSync("sh", ["-ec", step.command], {
          cwd: work,
          env: { ...process.env, PATH },
          stdio: "pipe",
        });
      }
    }
  }

  function copyContext({ paths, to }: Copy): void {
    for (const path of paths) {
      const target = join(work, to, to.endsWith("/") ? path : "");
      mkdirSync(dirname(target), { recursive: true });
      cpSync(join(ROOT, path), target, { recursive: true });
    }
  }

  function installed(): void {
    symlinkSync(join(ROOT, "node_modules"), join(work, "node_modules"));
  }

  function filesBelow(folder: string): readonly string[] {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
      .sort();
  }

  it("needs no file but those that it copies, and makes the files of the test bed's image", async () => {
    const made = filesBelow(join(work, "image-files"));
    const expected = (await imageFiles(work)).filter(({ kind }) => kind === "file");
    expect(made).toEqual(expected.map(({ path }) => path.slice(1)).sort());
    expect(expected.length).toBeGreaterThan(1000);
  });

  it("gives an SBOM of exactly the packages in it, the same each time", () => {
    const text = readFileSync(join(work, "image-files/sbom.cdx.json"), "utf8");
    const again = execFileSync("npm", ["run", "-s", "sbom"], { cwd: work, encoding: "utf8" });
    expect(again).toBe(text);
    const { components } = JSON.parse(text) as { components: readonly { "bom-ref": string }[] };
    const packages = filesBelow(join(work, "image-files"))
      .filter((path) => /node_modules\/(?:@[^/]+\/)?[^/@]+\/package\.json$/.test(path))
      .map(
        (path) =>
          JSON.parse(readFileSync(join(work, "image-files", path), "utf8")) as {
            name: string;
            version: string;
          },
      )
      .map(({ name, version }) => `${name}@${version}`);
    const node = json<LockFile>("package-lock.json").packages["node_modules/node"]?.version;
    expect(components.map((each) => each["bom-ref"]).sort()).toEqual(
      [...new Set([...packages, `node@${node}`])].sort(),
    );
  });

  it("and the test bed's image have the entry point that the chart starts, and the program it names", async () => {
    cpSync(join(ROOT, "Containerfile"), join(work, "Containerfile"));
    const { config, layers } = await productImage(work, "mergeway:dev");
    expect(config).toMatchObject({
      entrypoint: ["/usr/bin/node", "/app/dist/main.js"],
      user: "65532:65532",
      workdir: "/app",
      env: ["PATH=/usr/bin", "NODE_ENV=production", "HOME=/tmp"],
    });
    const paths = new Set(layers.flat().map(({ path }) => path));
    for (const path of [...config.entrypoint, "/app/package.json", "/app/sbom.cdx.json", "/tmp"]) {
      expect(paths).toContain(path);
    }
  });
});
