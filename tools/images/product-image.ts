// The image that users get, without a container builder: the final stage of the Containerfile, with
// this checkout's files where the build stage has its own, and this machine's Node and libraries in
// the place of the images that the Containerfile takes from registries.

import { readFileSync, realpathSync } from "node:fs";
import { basename, join } from "node:path";
import { ClusterFailure } from "../host/failure.ts";
import { output } from "../host/processes.ts";
import { type Copy, parseContainerfile, type Step } from "./containerfile.ts";
import type { ImageConfig, ImageSpec } from "./image.ts";
import { imageFiles } from "./image-files.ts";
import type { Entry } from "./tar.ts";

/** Files of an earlier stage that the final stage may copy. */
export type StageFiles = Readonly<Record<string, readonly Entry[]>>;

export async function productImage(root: string, reference: string): Promise<ImageSpec> {
  const node = realpathSync(join(root, "node_modules", "node", "bin", "node"));
  const { stages } = parseContainerfile(readFileSync(join(root, "Containerfile"), "utf8"));
  const files: StageFiles = {
    node: [{ kind: "file", path: "/usr/local/bin/node", mode: 0o755, source: node }],
    build: (await imageFiles(root)).map((entry) => ({ ...entry, path: `/src/image-files${entry.path}` })),
  };
  const { layers, config } = assemble(stages.at(-1)?.steps ?? [], files);
  return { reference, layers: [await baseLayer(node, config.user ?? "0:0"), ...layers], config };
}

/** A layer for each COPY, and the image's settings. */
export function assemble(steps: readonly Step[], files: StageFiles): Pick<ImageSpec, "layers" | "config"> {
  const layers: (readonly Entry[])[] = [];
  let config: ImageConfig = { entrypoint: [] };
  for (const step of steps) {
    switch (step.kind) {
      case "copy":
        layers.push(copied(step, files));
        break;
      case "env": {
        const env = Object.entries(step.pairs).map(([name, value]) => `${name}=${value}`);
        config = { ...config, env: [...(config.env ?? []), ...env] };
        break;
      }
      case "label":
        config = { ...config, labels: { ...config.labels, ...step.pairs } };
        break;
      case "user":
        config = { ...config, user: step.value };
        break;
      case "workdir":
        config = { ...config, workdir: step.value };
        break;
      case "entrypoint":
        config = { ...config, entrypoint: step.command };
        break;
      case "run":
        throw new ClusterFailure(`the final stage runs "${step.command}", and the test bed has no builder`);
    }
  }
  if (config.entrypoint.length === 0) throw new ClusterFailure("the final stage has no ENTRYPOINT");
  return { layers, config };
}

/** As builders do: of a folder its content, of a file itself, into TARGET/ or under TARGET. */
function copied({ from, paths, to }: Copy, files: StageFiles): readonly Entry[] {
  const available = from === undefined ? undefined : files[from];
  if (available === undefined) {
    throw new ClusterFailure(`the test bed cannot copy from ${from ?? "the context"} into the final stage`);
  }
  if (!to.startsWith("/")) throw new ClusterFailure(`COPY to ${to}: the test bed needs an absolute path`);
  return paths.flatMap((path) => {
    const below = available.filter((entry) => entry.path.startsWith(`${path}/`));
    if (below.length > 0) {
      const target = to.replace(/\/$/, "");
      return below.map((entry) => ({ ...entry, path: `${target}${entry.path.slice(path.length)}` }));
    }
    const found = available.find((entry) => entry.path === path);
    if (found === undefined) throw new ClusterFailure(`stage ${from} has no ${path}`);
    return [{ ...found, path: to.endsWith("/") ? `${to}${basename(path)}` : to }];
  });
}

/** What the base image has, as far as Node needs it. */
async function baseLayer(node: string, user: string): Promise<readonly Entry[]> {
  const [uid, gid = uid] = user.split(":");
  const text = (path: string, content: string): Entry => {
    return { kind: "file", path, mode: 0o644, source: Buffer.from(content) };
  };
  return [
    { kind: "directory", path: "/tmp", mode: 0o1777 },
    text("/etc/passwd", `root:x:0:0:root:/:/nologin\nnonroot:x:${uid}:${gid}:nonroot:/tmp:/nologin\n`),
    text("/etc/group", `root:x:0:\nnonroot:x:${gid}:\n`),
    text("/etc/nsswitch.conf", "hosts: files dns\n"),
    ...(await librariesOf(node)),
  ];
}

/**
 * The shared libraries and the loader that a program names, each at the path where the loader looks
 * for it.
 */
export async function librariesOf(program: string): Promise<readonly Entry[]> {
  const named = linkedPaths(await output("ldd", [program]));
  if (named.length === 0) {
    throw new ClusterFailure(`ldd names no libraries of ${program}: is it a program of this machine?`);
  }
  return named.map((path): Entry => ({ kind: "file", path, mode: 0o755, source: realpathSync(path) }));
}

/**
 * Lines look like `libm.so.6 => /lib/x/libm.so.6 (0x…)`, the loader's like `/lib64/ld.so (0x…)`,
 * the kernel's has no path.
 */
export function linkedPaths(text: string): readonly string[] {
  const missing = /^\s*(\S+) => not found/m.exec(text);
  if (missing !== null) {
    throw new ClusterFailure(`this machine lacks the library ${missing[1]}`);
  }
  const paths = [...text.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x/gm)].flatMap(([, path]) => path ?? []);
  return [...new Set(paths)].sort();
}
