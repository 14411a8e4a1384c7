/**
 * Documents that others wrote for other tests: the inputs of the engine's cases and the objects of
 * the admission cases.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { type KnownKind, knownKinds } from "../../../src/api/admission/kinds.ts";
import { wholeObjects } from "./whole-objects.ts";

export type Fields = Record<string, unknown>;

export interface Seed {
  readonly kind: KnownKind;
  readonly object: Fields;
}

const TEST = join(import.meta.dirname, "../..");
/**
 * The one namespace that is sure to be there; a dry run in one that is not fails for that reason
 * alone.
 */
export const NAMESPACE = "default";

const KINDS: ReadonlyMap<string, KnownKind> = new Map(
  knownKinds("standard").map((known) => [`${known.group} ${known.kind}`, known]),
);

export function readSeeds(): readonly Seed[] {
  const texts = new Map<string, Seed>();
  for (const object of [...wholeObjects(), ...engineInputs(), ...admissionCases()]) {
    const seed = asSeed(object);
    if (seed !== undefined) texts.set(JSON.stringify(seed.object), seed);
  }
  return [...texts.values()];
}

function asSeed(value: unknown): Seed | undefined {
  if (!isFields(value) || !isFields(value["metadata"])) return undefined;
  const apiVersion = String(value["apiVersion"]);
  const kind = KINDS.get(
    `${apiVersion.includes("/") ? apiVersion.split("/")[0] : ""} ${String(value["kind"])}`,
  );
  if (kind === undefined) return undefined;
  // Status is dropped on creation, and of the metadata only the writer's part can be compared.
  const { status: _, metadata, ...fields } = value;
  const { name, labels, annotations } = metadata as Fields;
  const own = {
    name,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  };
  return {
    kind,
    object: { ...fields, metadata: kind.namespaced ? { ...own, namespace: NAMESPACE } : own },
  };
}

function* engineInputs(): Generator<unknown> {
  const folder = join(TEST, "engine/cases");
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith(".yaml"))
    .sort()) {
    const [input = ""] = readFileSync(join(folder, file), "utf8").split("--- # expected");
    // Certificates are made when a case runs; here anything that is base64 will do.
    for (const document of parseAllDocuments(input.replaceAll(/\$\{[^}]*\}/g, "eA=="), { merge: true })) {
      yield document.toJS() as unknown;
    }
  }
}

function* admissionCases(): Generator<unknown> {
  const folder = join(TEST, "api/admission-cases");
  for (const file of readdirSync(folder).sort()) {
    const cases = parse(readFileSync(join(folder, file), "utf8"), { merge: true }) as readonly Fields[];
    for (const { object } of cases) yield object;
  }
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
