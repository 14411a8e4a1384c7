// Container images without an image builder and without a network: one archive that is an OCI
// layout and at the same time what `docker load` expects. The same files always give the same
// archive, byte for byte.

import { createHash } from "node:crypto";
import { createWriteStream, mkdtempSync, rmSync, statSync } from "node:fs";
import { rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { type Entry, tar } from "./tar.ts";

export interface ImageConfig {
  readonly entrypoint: readonly string[];
  readonly user?: string;
  readonly env?: readonly string[];
  readonly workdir?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface ImageSpec {
  readonly reference: string;
  /** From the one that changes least to the one that changes most. */
  readonly layers: readonly (readonly Entry[])[];
  readonly config: ImageConfig;
  /**
   * For an archive that is moved to another machine. Loading into a cluster on the same machine is
   * quicker without.
   */
  readonly compress?: boolean;
}

interface Layer {
  readonly file: string;
  readonly size: number;
  /** Of the layer as stored. */
  readonly digest: string;
  /** Of the layer's plain tar. */
  readonly diffId: string;
}

interface Blob {
  readonly digest: string;
  readonly size: number;
  readonly source: string | Uint8Array;
}

export async function writeImage(spec: ImageSpec, file: string): Promise<void> {
  const work = mkdtempSync(join(dirname(file), ".image-"));
  try {
    const layers: Layer[] = [];
    for (const [index, entries] of spec.layers.entries()) {
      layers.push(await writeLayer(entries, join(work, `layer-${index}`), spec.compress === true));
    }
    const assembled = join(work, "image.tar");
    const chunks = Readable.from(tar(archiveEntries(spec, layers)));
    await pipeline(chunks, createWriteStream(assembled));
    await rename(assembled, file);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function writeLayer(entries: readonly Entry[], file: string, compress: boolean): Promise<Layer> {
  const plain = createHash("sha256");
  const stored = createHash("sha256");
  const chunks = Readable.from(tar(entries));
  const packing = compress ? [createGzip({ level: 9 })] : [];
  await pipeline([chunks, hashing(plain), ...packing, hashing(stored), createWriteStream(file)]);
  return { file, size: statSync(file).size, digest: stored.digest("hex"), diffId: plain.digest("hex") };
}

function hashing(hash: import("node:crypto").Hash): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done): void {
      hash.update(chunk);
      done(undefined, chunk);
    },
  });
}

function archiveEntries(spec: ImageSpec, layers: readonly Layer[]): readonly Entry[] {
  const layerType = `application/vnd.oci.image.layer.v1.tar${spec.compress === true ? "+gzip" : ""}`;
  const reference = fullReference(spec.reference);
  const config = jsonBlob(configOf(spec.config, layers));
  const manifestType = "application/vnd.oci.image.manifest.v1+json";
  const manifest = jsonBlob({
    schemaVersion: 2,
    mediaType: manifestType,
    config: { mediaType: "application/vnd.oci.image.config.v1+json", ...descriptor(config) },
    layers: layers.map((layer) => ({ mediaType: layerType, ...descriptor(layer) })),
  });
  const annotations = {
    "io.containerd.image.name": reference,
    "org.opencontainers.image.ref.name": reference.slice(reference.lastIndexOf(":") + 1),
  };
  const index = {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.index.v1+json",
    manifests: [{ mediaType: manifestType, ...descriptor(manifest), platform: platform(), annotations }],
  };
  const docker = [
    {
      Config: blobPath(config),
      RepoTags: [spec.reference],
      Layers: layers.map(blobPath),
    },
  ];
  const blobs = [config, manifest, ...layers.map((layer): Blob => ({ ...layer, source: layer.file }))];
  // Two layers may be the same bytes, and are then stored once.
  const distinct = new Map(blobs.map((blob) => [blob.digest, blob]));
  return [
    fileEntry("/oci-layout", json({ imageLayoutVersion: "1.0.0" })),
    fileEntry("/index.json", json(index)),
    fileEntry("/manifest.json", json(docker)),
    ...[...distinct.values()].map((blob) => fileEntry(`/${blobPath(blob)}`, blob.source)),
  ];
}

function configOf(config: ImageConfig, layers: readonly Layer[]): object {
  return {
    ...platform(),
    created: "1970-01-01T00:00:00Z",
    config: {
      Entrypoint: config.entrypoint,
      Env: config.env ?? ["PATH=/usr/bin:/bin"],
      ...(config.user === undefined ? {} : { User: config.user }),
      ...(config.workdir === undefined ? {} : { WorkingDir: config.workdir }),
      ...(config.labels === undefined ? {} : { Labels: config.labels }),
    },
    rootfs: { type: "layers", diff_ids: layers.map((layer) => `sha256:${layer.diffId}`) },
    history: layers.map(() => ({ created: "1970-01-01T00:00:00Z", created_by: "mergeway" })),
  };
}

function platform(): { readonly architecture: string; readonly os: string } {
  return { architecture: process.arch === "x64" ? "amd64" : process.arch, os: "linux" };
}

/**
 * The name as runtimes store it: short names belong to the default registry, and no tag means
 * `latest`.
 */
export function fullReference(reference: string): string {
  const first = reference.split("/")[0] ?? "";
  const hasHost = reference.includes("/") && (/[.:]/.test(first) || first === "localhost");
  const hosted = hasHost ? reference : `docker.io/${reference.includes("/") ? "" : "library/"}${reference}`;
  return hosted.slice(hosted.lastIndexOf("/")).includes(":") ? hosted : `${hosted}:latest`;
}

function descriptor(blob: Pick<Blob, "digest" | "size">): { readonly digest: string; readonly size: number } {
  return { digest: `sha256:${blob.digest}`, size: blob.size };
}

function blobPath(blob: Pick<Blob, "digest">): string {
  return `blobs/sha256/${blob.digest}`;
}

function json(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

function jsonBlob(value: unknown): Blob {
  const source = json(value);
  return { digest: createHash("sha256").update(source).digest("hex"), size: source.length, source };
}

function fileEntry(path: string, source: string | Uint8Array): Entry {
  return { kind: "file", path, mode: 0o644, source };
}
