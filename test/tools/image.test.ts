import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fullReference, type ImageSpec, writeImage } from "../../tools/images/image.ts";
import { type Entry, entriesBelow, tar } from "../../tools/images/tar.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mergeway-image-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function text(path: string, content: string): Entry {
  return { kind: "file", path, mode: 0o644, source: Buffer.from(content) };
}

/** What another program, the system's tar, makes of the bytes. */
function listed(entries: readonly Entry[]): readonly string[] {
  const input = Buffer.concat([...tar(entries)]);
  const lines = execFileSync("tar", ["-tv", "--full-time", "--utc", "-f", "-"], { input, encoding: "utf8" });
  return lines.trimEnd().split("\n");
}

describe("tar", () => {
  it("sorts, adds parent folders and leaves out times and owners", () => {
    const entries: readonly Entry[] = [
      text("/b/c.txt", "hello"),
      { kind: "directory", path: "/a", mode: 0o1777 },
      { kind: "link", path: "/b/l", target: "c.txt" },
    ];
    expect(listed(entries).map((line) => line.replace(/\s+/g, " "))).toEqual([
      "drwxrwxrwt 0/0 0 1970-01-01 00:00:00 a/",
      "drwxr-xr-x 0/0 0 1970-01-01 00:00:00 b/",
      "-rw-r--r-- 0/0 5 1970-01-01 00:00:00 b/c.txt",
      "lrwxrwxrwx 0/0 0 1970-01-01 00:00:00 b/l -> c.txt",
    ]);
  });

  it.each([99, 100, 101, 110, 255, 990, 1000])("carries names of %i characters", (length) => {
    const name = Array.from({ length: Math.ceil(length / 50) }, () => "x".repeat(49)).join("/");
    const path = `/${name}`.slice(0, length + 1).replace(/\/$/, "y");
    expect(listed([text(path, "z")]).at(-1)).toContain(` ${path.slice(1)}`);
  });

  it("carries long and non-ASCII link targets", () => {
    const target = `ü/${"t".repeat(150)}`;
    const input = Buffer.concat([...tar([{ kind: "link", path: "/l", target }])]);
    execFileSync("tar", ["-xf", "-", "-C", folder], { input });
    expect(execFileSync("readlink", [join(folder, "l")], { encoding: "utf8" }).trimEnd()).toBe(target);
  });

  it("refuses the same path twice", () => {
    expect(() => [...tar([text("/a", "1"), text("/a", "2")])]).toThrow("/a is in the archive twice");
  });

  it("takes a folder of this machine with links and executable bits", () => {
    mkdirSync(join(folder, "sub"));
    writeFileSync(join(folder, "sub", "run"), "#!");
    chmodSync(join(folder, "sub", "run"), 0o700);
    symlinkSync("sub/run", join(folder, "link"));
    expect(entriesBelow(folder, "/app").map((entry) => [entry.kind, entry.path])).toEqual([
      ["link", "/app/link"],
      ["directory", "/app/sub"],
      ["file", "/app/sub/run"],
    ]);
    expect(entriesBelow(folder, "/app")).toContainEqual(
      expect.objectContaining({ path: "/app/sub/run", mode: 0o755 }),
    );
  });
});

interface Manifest {
  readonly config: { readonly digest: string };
  readonly layers: readonly { readonly digest: string; readonly size: number; readonly mediaType: string }[];
}

describe("image", () => {
  const spec = (more: Partial<ImageSpec> = {}): ImageSpec => ({
    reference: "mergeway:dev",
    layers: [[text("/one", "1")], [text("/two", "2")]],
    config: { entrypoint: ["/one"], user: "65532:65532", workdir: "/app", env: ["A=b"] },
    ...more,
  });

  async function written(image: ImageSpec): Promise<string> {
    writeFileSync(join(folder, "out.tar"), "");
    await writeImage(image, join(folder, "out.tar"));
    const out = mkdtempSync(join(folder, "out-"));
    execFileSync("tar", ["-xf", join(folder, "out.tar"), "-C", out]);
    return out;
  }

  function json<T>(out: string, path: string): T {
    return JSON.parse(readFileSync(join(out, path), "utf8")) as T;
  }

  function blob(digest: string): string {
    return `blobs/${digest.replace(":", "/")}`;
  }

  it.each([false, true])("is an OCI layout whose digests are true (compressed: %s)", async (compress) => {
    const out = await written(spec({ compress }));
    const index = json<{ manifests: readonly { digest: string; annotations: Record<string, string> }[] }>(
      out,
      "index.json",
    );
    const [entry] = index.manifests;
    expect(entry?.annotations["io.containerd.image.name"]).toBe("docker.io/library/mergeway:dev");
    const manifest = json<Manifest>(out, blob(entry?.digest ?? ""));
    const config = json<{ rootfs: { diff_ids: readonly string[] }; config: object }>(
      out,
      blob(manifest.config.digest),
    );
    expect(config.config).toEqual({
      Entrypoint: ["/one"],
      User: "65532:65532",
      WorkingDir: "/app",
      Env: ["A=b"],
    });
    expect(manifest.layers).toHaveLength(2);
    for (const [number, layer] of manifest.layers.entries()) {
      const stored = readFileSync(join(out, blob(layer.digest)));
      expect(stored).toHaveLength(layer.size);
      expect(`sha256:${createHash("sha256").update(stored).digest("hex")}`).toBe(layer.digest);
      const plain = compress ? gunzipSync(stored) : stored;
      expect(`sha256:${createHash("sha256").update(plain).digest("hex")}`).toBe(
        config.rootfs.diff_ids[number],
      );
      expect(layer.mediaType.endsWith("+gzip")).toBe(compress);
    }
  });

  it("is what docker load expects as well", async () => {
    const out = await written(spec());
    const [image] = json<
      readonly { Config: string; Layers: readonly string[]; RepoTags: readonly string[] }[]
    >(out, "manifest.json");
    expect(image?.RepoTags).toEqual(["mergeway:dev"]);
    for (const path of [image?.Config ?? "", ...(image?.Layers ?? [])]) {
      expect(readFileSync(join(out, path)).length).toBeGreaterThan(0);
    }
  });

  it("is the same bytes for the same files, whenever they were written", async () => {
    const make = async (name: string, when: number): Promise<Buffer> => {
      const source = join(folder, name);
      mkdirSync(source);
      writeFileSync(join(source, "file"), "same");
      utimesSync(join(source, "file"), when, when);
      const target = join(folder, `${name}.tar`);
      await writeImage(spec({ layers: [entriesBelow(source, "/app")], compress: true }), target);
      return readFileSync(target);
    };
    expect((await make("x", 1)).equals(await make("y", 1_000_000))).toBe(true);
  });

  it("stores two equal layers once and names both", async () => {
    const out = await written(spec({ layers: [[text("/one", "1")], [text("/one", "1")]] }));
    const [image] = json<readonly { Layers: readonly string[] }[]>(out, "manifest.json");
    expect(image?.Layers).toHaveLength(2);
  });

  it.each([
    ["mergeway", "docker.io/library/mergeway:latest"],
    ["mergeway:dev", "docker.io/library/mergeway:dev"],
    ["team/mergeway:dev", "docker.io/team/mergeway:dev"],
    ["localhost/mergeway", "localhost/mergeway:latest"],
    ["example.org:5000/a/b", "example.org:5000/a/b:latest"],
    ["example.org/a/b:v1", "example.org/a/b:v1"],
  ])("%s is stored as %s", (given, full) => {
    expect(fullReference(given)).toBe(full);
  });
});
