import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import type { PolicyRule } from "../../test/chart/rights.ts";

export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));
export const CHART: string = join(ROOT, "charts", "mergeway");
export const CRD_FOLDER: string = join(CHART, "charts", "crds", "crds");
export const CRD_FILE: string = join(CRD_FOLDER, "mergeway.dev_gatewayparameters.yaml");

export interface RenderedManifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly rules?: readonly PolicyRule[];
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly { readonly kind: string; readonly name: string; readonly namespace: string }[];
  readonly [field: string]: unknown;
}

export function parseManifests(text: string): readonly RenderedManifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    const [problem] = document.errors;
    if (problem !== undefined) throw problem;
    const manifest = document.toJS() as RenderedManifest | null;
    return manifest === null ? [] : [manifest];
  });
}

export function readText(...path: readonly string[]): string {
  return readFileSync(join(ROOT, ...path), "utf8");
}

export function installManifests(): readonly RenderedManifest[] {
  return parseManifests(readText("install.yaml"));
}

export function manifestOf(
  manifests: readonly RenderedManifest[],
  kind: string,
  name?: string,
): RenderedManifest {
  const found = manifests.find(
    (each) => each.kind === kind && (name === undefined || each.metadata.name === name),
  );
  if (found === undefined) throw new Error(`there is no ${kind} ${name ?? ""} among the manifests`);
  return found;
}
