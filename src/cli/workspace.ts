/** A folder of YAML, computed once without serving: what the three questions are asked of. */
import type { Key } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import { embeddedFeatures } from "../dataplanes/embedded/features.ts";
import { Engine } from "../engine/engine.ts";
import { RoutingTable } from "../matching/routing-table.ts";
import type { DocumentError } from "../sources/files/document-error.ts";
import { loadPaths } from "../sources/files/load-paths.ts";
import type { LocatedResource } from "../sources/files/read-text.ts";
import { CannotRun } from "./command.ts";
import { standaloneSettings } from "./engine-settings.ts";
import type { Terminal } from "./terminal.ts";

export interface Workspace {
  readonly files: readonly string[];
  readonly located: ReadonlyMap<Key, LocatedResource>;
  readonly resources: ReadonlyMap<Key, Resource>;
  readonly errors: readonly DocumentError[];
  readonly warnings: readonly DocumentError[];
  readonly engine: Engine;
  readonly table: RoutingTable;
}

export async function openWorkspace(paths: readonly string[]): Promise<Workspace> {
  const { files, resources: located, errors, warnings } = await loadPaths(paths);
  const missing = errors.find(({ rule, file }) => rule === "file/unreadable" && paths.includes(file));
  if (missing !== undefined) throw new CannotRun(`${missing.file}: ${missing.message}`, missing.remedy);
  if (files.length === 0) {
    throw new CannotRun(
      `there is no YAML or JSON file in ${paths.join(", ")}`,
      "Name a folder with manifests, the files themselves, or - for standard input.",
    );
  }
  const engine = new Engine(standaloneSettings({ features: embeddedFeatures, assumeProgrammed: true }));
  engine.apply(Array.from(located, ([key, { resource }]) => ({ key, resource })));
  const table = new RoutingTable();
  table.apply({ upserts: [...engine.plan()], removes: [] });
  const resources = new Map(Array.from(located, ([key, { resource }]) => [key, resource]));
  return { files, located, resources, errors, warnings, engine, table };
}

/** For commands whose own output is something else: what could not be read goes to the error stream. */
export function tellErrors({ errors }: Workspace, err: Terminal): void {
  for (const { file, line, column, path, message } of errors) {
    const field = path === undefined ? "" : `${path}: `;
    err.line(`${err.style("red", "error:")} ${file}:${line}:${column}: ${field}${message}`);
  }
}
