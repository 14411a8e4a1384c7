/** Manifests or a cluster, read and computed once: the input of check, status and explain. */
import type { Key } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import { embeddedFeatures } from "../../dataplanes/embedded/features.ts";
import { Engine } from "../../engine/engine.ts";
import type { EngineSettings } from "../../engine/foundation/settings.ts";
import { refusedInCluster } from "../../kubernetes/special-addresses.ts";
import { RoutingTable } from "../../matching/routing-table.ts";
import { loadPaths } from "../../sources/files/load-paths.ts";
import type { DocumentError } from "../../sources/files/yaml/document-error.ts";
import type { LocatedResource } from "../../sources/files/yaml/read-text.ts";
import { CannotRun } from "../foundation/command.ts";
import type { Terminal } from "../foundation/terminal.ts";
import type { ClusterFlags, Target } from "./cluster-flags.ts";
import { standaloneSettings } from "./engine-settings.ts";

export interface Workspace {
  /** The objects come from a cluster: they have no place in a file, and a live status. */
  readonly isLive: boolean;
  readonly files: readonly string[];
  readonly located: ReadonlyMap<Key, LocatedResource>;
  readonly resources: ReadonlyMap<Key, Resource>;
  readonly errors: readonly DocumentError[];
  readonly warnings: readonly DocumentError[];
  readonly engine: Engine;
  readonly table: RoutingTable;
}

export async function openWorkspace(target: Target, signal: AbortSignal): Promise<Workspace> {
  return target.paths === undefined
    ? await openCluster(target.cluster, signal)
    : await openManifests(target.paths);
}

export async function openManifests(paths: readonly string[]): Promise<Workspace> {
  const { files, resources: located, errors, warnings } = await loadPaths(paths);
  const missing = errors.find(({ rule, file }) => rule === "file/unreadable" && paths.includes(file));
  if (missing !== undefined) throw new CannotRun(`${missing.file}: ${missing.message}`, missing.remedy);
  if (files.length === 0) {
    throw new CannotRun(
      `there is no YAML or JSON file in ${paths.join(", ")}`,
      "Name a folder with manifests, the files themselves, or - for standard input.",
    );
  }
  const resources = new Map(Array.from(located, ([key, { resource }]) => [key, resource]));
  return { isLive: false, files, located, errors, warnings, ...compute(resources, true) };
}

async function openCluster(flags: ClusterFlags, signal: AbortSignal): Promise<Workspace> {
  const { readCluster } = await import("./read-cluster.ts");
  const { resources, warnings, mayReadClasses } = await readCluster(flags, signal);
  const start = { line: 1, column: 1 };
  const located = new Map(
    Array.from(resources, ([key, resource]) => [key, { resource, file: key, ...start, locate: () => start }]),
  );
  const computed = compute(resources, !mayReadClasses, refusedInCluster);
  return { isLive: true, files: [], located, errors: [], warnings, ...computed };
}

function compute(
  resources: ReadonlyMap<Key, Resource>,
  adoptUnknownClasses: boolean,
  refusedEndpoint?: EngineSettings["refusedEndpoint"],
): Pick<Workspace, "resources" | "engine" | "table"> {
  const settings = standaloneSettings({ features: embeddedFeatures, assumeProgrammed: true });
  const engine = new Engine({
    ...settings,
    adoptUnknownClasses,
    ...(refusedEndpoint === undefined ? {} : { refusedEndpoint }),
  });
  engine.apply(Array.from(resources, ([key, resource]) => ({ key, resource })));
  const table = new RoutingTable();
  table.apply({ upserts: [...engine.plan()], removes: [] });
  return { resources, engine, table };
}

/** Prints on standard error what could not be read. */
export function printReadErrors({ isLive, errors, warnings }: Workspace, err: Terminal): void {
  for (const { file, message, remedy } of isLive ? warnings : []) {
    err.line(`${err.style("yellow", "warning:")} ${file}: ${message}. ${remedy}`);
  }
  for (const { file, line, column, path, message } of errors) {
    const field = path === undefined ? "" : `${path}: `;
    err.line(`${err.style("red", "error:")} ${file}:${line}:${column}: ${field}${message}`);
  }
}
