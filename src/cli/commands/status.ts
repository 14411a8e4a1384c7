import { stringify } from "yaml";
import { DEFAULT_CONTROLLER } from "../../engine/settings.ts";
import { renderStatus } from "../../status/render.ts";
import { buildState } from "../../view/build-state.ts";
import { type Command, defineCommand, type Host } from "../command.ts";
import { statusTable } from "../status-table.ts";
import { statusTree } from "../status-tree.ts";
import { openWorkspace, tellErrors, type Workspace } from "../workspace.ts";

export const statusCommand: Command = defineCommand({
  name: "status",
  summary: "compute the state of a folder of manifests, without serving it",
  about: [
    "Reads manifests and shows who owns which port and hostname, and why. `tree` and `wide` are the view of the Gateway's owner and",
    "name both sides of a conflict. `yaml` and `json` print every resource with the status that an API server would hold, with",
    "`Programmed` as if the data plane had accepted everything; private keys are left out.",
  ].join("\n"),
  arguments: [{ name: "PATH", help: "files, folders, or - for standard input", count: "some" }],
  flags: {
    output: {
      type: "choice",
      short: "o",
      values: ["tree", "wide", "yaml", "json"],
      default: "tree",
      help: "how to show it",
    },
  },
  examples: [
    {
      line: "mergeway status examples/two-teams",
      says: "the tree of Gateways, owners, listeners and routes",
    },
    { line: "mergeway status examples/two-teams -o wide", says: "one line per listener" },
    {
      line: "kubectl get gateways,listenersets,httproutes -A -o yaml | mergeway status - -o yaml",
      says: "what Mergeway would say of a cluster",
    },
  ],
  exits: { 0: "computed", 1: "computed, but some documents could not be read", 2: "could not run" },
  run: async ({ args, flags }, host) => {
    const workspace = await openWorkspace(args, host.signal);
    tellErrors(workspace, host.err);
    host.out.write(render(flags.output, workspace, host));
    return workspace.errors.length > 0 ? 1 : 0;
  },
});

function render(output: string, workspace: Workspace, host: Host): string {
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
