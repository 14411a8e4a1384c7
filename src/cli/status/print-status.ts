import { stringify } from "yaml";
import type { Secret } from "../../api/core.ts";
import { readAuthorities } from "../../certificates/read.ts";
import { DEFAULT_CONTROLLER } from "../../engine/foundation/settings.ts";
import { renderStatus } from "../../status/render.ts";
import type { GatewayView } from "../../view/merged-state.ts";
import type { ExitCode, Host } from "../foundation/command.ts";
import type { Target } from "../workspace/cluster-flags.ts";
import { openWorkspace, printReadErrors, stateFor, type Workspace } from "../workspace/workspace.ts";
import { pendingProgramming } from "./pending-programming.ts";
import { statusTable } from "./status-table.ts";
import { statusTree } from "./status-tree.ts";

export type StatusOutput = "tree" | "wide" | "yaml" | "json";

export interface StatusOptions {
  readonly target: Target;
  readonly output: StatusOutput;
  /** Of a cluster: the statuses computed now, not those that its objects have. */
  readonly computed: boolean;
}

export async function printStatus(
  { target, output, computed }: StatusOptions,
  host: Host,
): Promise<ExitCode> {
  const workspace = await openWorkspace(target, host.signal);
  printReadErrors(workspace, host.err);
  host.out.write(render(output, { ...workspace, isLive: workspace.isLive && !computed }, host));
  const isPartial = workspace.errors.length > 0 || (workspace.isLive && workspace.warnings.length > 0);
  return isPartial ? 1 : 0;
}

function render(output: StatusOutput, workspace: Workspace, host: Host): string {
  switch (output) {
    case "tree":
      return statusTree(stateFor(workspace), host.out, pendingProgramming(workspace));
    case "wide":
      return statusTable(stateFor(workspace), host.out, { noteOf: pendingProgramming(workspace) });
    case "json":
      return `${JSON.stringify(statusList(workspace, host.now()), null, 2)}\n`;
    default:
      return statuses(workspace, host.now())
        .map((resource) => stringify(resource, { aliasDuplicateObjects: false, lineWidth: 0 }))
        .join("---\n");
  }
}

/** No object has room for the use of quotas: it stands beside them, as the tree shows it. */
function statusList(workspace: Workspace, time: Date): unknown {
  const list = { apiVersion: "v1", kind: "List", items: statuses(workspace, time) };
  const hasQuotas = !workspace.engine.quotaUses()[Symbol.iterator]().next().done;
  const quotas = hasQuotas ? stateFor(workspace).gateways.flatMap(quotasOf) : [];
  return quotas.length === 0 ? list : { ...list, quotas };
}

function quotasOf({ namespace, name, owners }: GatewayView): readonly unknown[] {
  const policies = owners.flatMap(({ role, policies: all }) => (role === "root" ? all : []));
  return policies.flatMap(({ quotas = [] }) =>
    quotas.map((quota) => ({ gateway: { namespace, name }, ...quota })),
  );
}

function statuses({ resources, engine, isLive }: Workspace, time: Date): unknown[] {
  const now = `${time.toISOString().slice(0, 19)}Z`;
  return Array.from(resources, ([key, resource]) => {
    if (resource.kind === "Secret") return redacted(resource);
    const verdict = isLive ? undefined : engine.verdict(key);
    if (verdict === undefined) return resource;
    return {
      ...resource,
      status: renderStatus(resource, verdict, { controllerName: DEFAULT_CONTROLLER, now }),
    };
  });
}

/**
 * Only certificates stay. Other data goes, even certificates' fields that contain something else;
 * annotations go too, since `kubectl apply` keeps a copy of the whole object there.
 */
function redacted(secret: Secret): Secret {
  const { annotations: _, ...metadata } = secret.metadata;
  const entries = Object.entries(secret.data ?? {}).map(([name, value]) => [
    name,
    certificatesIn(name, value),
  ]);
  return { ...secret, metadata, data: Object.fromEntries(entries) as Record<string, string> };
}

function certificatesIn(name: string, value: string): string {
  if (name !== "tls.crt" && name !== "ca.crt") return "";
  const reading = readAuthorities(Buffer.from(value, "base64").toString("latin1"));
  return "pem" in reading ? Buffer.from(reading.pem, "latin1").toString("base64") : "";
}
