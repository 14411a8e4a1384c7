import { stringify } from "yaml";
import { DEFAULT_CONTROLLER } from "../../engine/settings.ts";
import { renderStatus } from "../../status/render.ts";
import { buildState } from "../../view/build-state.ts";
import type { ExitCode, Host } from "../command.ts";
import { openWorkspace, tellErrors, type Workspace } from "../workspace.ts";
import { statusTable } from "./status-table.ts";
import { statusTree } from "./status-tree.ts";

export type StatusOutput = "tree" | "wide" | "yaml" | "json";

export async function printStatus(
  paths: readonly string[],
  output: StatusOutput,
  host: Host,
): Promise<ExitCode> {
  const workspace = await openWorkspace(paths);
  tellErrors(workspace, host.err);
  host.out.write(render(output, workspace, host));
  return workspace.errors.length > 0 ? 1 : 0;
}

function render(output: StatusOutput, workspace: Workspace, host: Host): string {
  switch (output) {
    case "tree":
      return statusTree(buildState(workspace), host.out);
    case "wide":
      return statusTable(buildState(workspace), host.out);
    case "json":
      return `${JSON.stringify({ apiVersion: "v1", kind: "List", items: statuses(workspace, host.now()) }, null, 2)}\n`;
    default:
      return statuses(workspace, host.now())
        .map((resource) => stringify(resource, { aliasDuplicateObjects: false, lineWidth: 0 }))
        .join("---\n");
  }
}

function statuses({ resources, engine }: Workspace, time: Date): unknown[] {
  const now = `${time.toISOString().slice(0, 19)}Z`;
  return Array.from(resources, ([key, resource]) => {
    if (resource.kind === "Secret") return { ...resource, data: redacted(resource.data) };
    const verdict = engine.verdict(key);
    if (verdict === undefined) return resource;
    return {
      ...resource,
      status: renderStatus(resource, verdict, { controllerName: DEFAULT_CONTROLLER, now }),
    };
  });
}

/** What is public stays: certificates. Everything else of a Secret is nobody's business. */
function redacted(data: Readonly<Record<string, string>> | undefined): Readonly<Record<string, string>> {
  const shown = Object.entries(data ?? {}).map(([name, value]) => [
    name,
    name === "tls.crt" || name === "ca.crt" ? value : "",
  ]);
  return Object.fromEntries(shown) as Record<string, string>;
}
