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
import type { MergedState } from "../../view/merged-state.ts";
import type { ReadingScope } from "../../view/written/reading-scope.ts";
import { stateInScope } from "../../view/written/state-in-scope.ts";
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
  /** How much of the cluster its user may read; absent for manifests. */
  readonly scope?: ReadingScope;
  readonly settings: EngineSettings;
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
  return { isLive: false, files, located, errors, warnings, ...compute(resources, settingsFor(true)) };
}

async function openCluster(flags: ClusterFlags, signal: AbortSignal): Promise<Workspace> {
  const { readCluster } = await import("./read-cluster.ts");
  const { resources, warnings, mayReadClasses, scope } = await readCluster(flags, signal);
  const start = { line: 1, column: 1 };
  const located = new Map(
    Array.from(resources, ([key, resource]) => [key, { resource, file: key, ...start, locate: () => start }]),
  );
  const computed = compute(resources, settingsFor(!mayReadClasses, refusedInCluster));
  return { isLive: true, files: [], located, errors: [], warnings, scope, ...computed };
}

export function settingsFor(
  adoptUnknownClasses: boolean,
  refusedEndpoint?: EngineSettings["refusedEndpoint"],
): EngineSettings {
  return {
    ...standaloneSettings({ features: embeddedFeatures, assumeProgrammed: true }),
    adoptUnknownClasses,
    ...(refusedEndpoint === undefined ? {} : { refusedEndpoint }),
  };
}

/** The same objects with others added, or put in the place of those with the same key. */
export function withObjects(workspace: Workspace, objects: Workspace["located"]): Workspace {
  const located = new Map([...workspace.located, ...objects]);
  const resources = new Map(Array.from(located, ([key, { resource }]) => [key, resource]));
  return { ...workspace, located, ...compute(resources, workspace.settings) };
}

export function withoutObjects(workspace: Workspace, keys: ReadonlySet<string>): Workspace {
  const located = new Map([...workspace.located].filter(([key]) => !keys.has(key)));
  const resources = new Map(Array.from(located, ([key, { resource }]) => [key, resource]));
  return { ...workspace, located, ...compute(resources, workspace.settings) };
}

function compute(
  resources: ReadonlyMap<Key, Resource>,
  settings: EngineSettings,
): Pick<Workspace, "resources" | "settings" | "engine" | "table"> {
  const engine = new Engine(settings);
  engine.apply(Array.from(resources, ([key, resource]) => ({ key, resource })));
  const table = new RoutingTable();
  table.apply({ upserts: [...engine.plan()], removes: [] });
  return { resources, settings, engine, table };
}

/** What the user of a cluster sees of it, or everything of manifests. */
export function stateFor({ isLive, scope, ...sources }: Workspace): MergedState {
  const { controllerName } = sources.settings;
  return stateInScope({ ...sources, isLive, controllerName }, isLive ? scope : undefined);
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
