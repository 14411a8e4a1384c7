/**
 * Gives a hostname to a namespace: an entry of `spec.transfers` in the TenantPolicy of the Gateway.
 * Shows first who would hold the name, by the same engine that decides.
 */
import { stringify } from "yaml";
import { type Key, keyOf, partsOf } from "../../api/key.ts";
import type { HostnameTransfer, TenantPolicy } from "../../api/tenant-policy.ts";
import { gatewaysOf } from "../../engine/tenancy/tenancy.ts";
import { ApiError } from "../../kubernetes/api-error.ts";
import { collectionPath } from "../../kubernetes/api-object.ts";
import { MERGE_PATCH } from "../../kubernetes/client.ts";
import { isPattern } from "../../plan/hostname.ts";
import { compareHostnames, type HostnameChange } from "../check/against.ts";
import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import { linesOf } from "../foundation/terminal.ts";
import type { ClusterFlags, Target } from "../workspace/cluster-flags.ts";
import { openWorkspace, printReadErrors, type Workspace, withObjects } from "../workspace/workspace.ts";

export interface TransferOptions {
  readonly hostname: string;
  /** `namespace` or `namespace/name`. */
  readonly to: string;
  /** `namespace/name`, where several Gateways have TenantPolicies. */
  readonly gateway: string | undefined;
  readonly target: Target;
  /** Print and write nothing; always so for manifests. */
  readonly dryRun: boolean;
}

export async function transferHostname(options: TransferOptions, host: Host): Promise<ExitCode> {
  const transfer = readTransfer(options);
  const workspace = await openWorkspace(options.target, host.signal);
  printReadErrors(workspace, host.err);
  const policy = policyFor(workspace, options.gateway);
  const transfers = [
    ...(policy.spec.transfers ?? []).filter(({ hostname }) => hostname !== transfer.hostname),
    transfer,
  ];
  const after = withPolicy(workspace, { ...policy, spec: { ...policy.spec, transfers } });
  const { changes } = compareHostnames(workspace, after);
  const isServed = isHeldBy(after, policy, transfer);
  host.out.write(linesOf(lines(transfer, changes, isServed)));
  const { cluster } = options.target as { readonly cluster?: ClusterFlags };
  const { namespace = "", name } = policy.metadata;
  if (options.dryRun || cluster === undefined) {
    const { apiVersion, kind } = policy;
    const shown = { apiVersion, kind, metadata: { name, namespace }, spec: { transfers } };
    host.out.write(`---\n# Nothing was written. To be added to the TenantPolicy:\n${stringify(shown)}`);
  } else {
    await write(cluster, policy, transfers, host.signal);
    host.out.write(linesOf([`TenantPolicy ${namespace}/${name} has the transfer.`]));
  }
  return isServed ? 0 : 1;
}

function readTransfer({ hostname, to }: TransferOptions): HostnameTransfer {
  const asked = hostname.toLowerCase().replace(/\.$/, "");
  if (!isPattern(asked))
    throw new CannotRun(
      `transfer: ${JSON.stringify(hostname)} is no hostname`,
      "Name one such as shop.example.com.",
    );
  const [namespace = "", name, ...rest] = to.split("/");
  if (!/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace) || name === "" || rest.length > 0)
    throw new CannotRun("transfer: --to names nobody", "Write --to NAMESPACE or --to NAMESPACE/NAME.");
  return { hostname: asked, to: { namespace, ...(name === undefined ? {} : { name }) } };
}

/** The one that counts at the Gateway. */
function policyFor({ resources, engine }: Workspace, gateway: string | undefined): TenantPolicy {
  const policies = [...resources.values()].filter((each) => each.kind === "TenantPolicy");
  const counting = policies.filter((policy) => {
    const verdict = engine.verdict(keyOf(policy));
    const ancestors = verdict?.type === "policy" ? verdict.ancestors : [];
    const isMeant = gatewaysOf(policy).some((key) => gateway === undefined || key === `Gateway/${gateway}`);
    const isOlder = ancestors.some(({ conditions }) =>
      conditions.some(({ type, reason }) => type === "Accepted" && reason === "Conflicted"),
    );
    return isMeant && !isOlder;
  });
  const [policy, another] = counting;
  if (policy === undefined)
    throw new CannotRun(
      `transfer: ${gateway === undefined ? "no Gateway" : `Gateway ${gateway}`} has a TenantPolicy`,
      "A transfer is a part of the TenantPolicy: write one first.",
    );
  if (another !== undefined)
    throw new CannotRun(
      "transfer: several TenantPolicies could be meant",
      "Name the Gateway with --gateway.",
    );
  return policy;
}

function withPolicy(workspace: Workspace, policy: TenantPolicy): Workspace {
  const key = keyOf(policy);
  const located = workspace.located.get(key);
  return located === undefined
    ? workspace
    : withObjects(workspace, new Map([[key, { ...located, resource: policy }]]));
}

function isHeldBy({ engine }: Workspace, policy: TenantPolicy, { hostname, to }: HostnameTransfer): boolean {
  const gateways: readonly Key[] = gatewaysOf(policy);
  return [...engine.listeners()].some(
    (each) =>
      gateways.includes(each.gateway) &&
      each.hostname === hostname &&
      each.owner.namespace === to.namespace &&
      (to.name === undefined || each.owner.name === to.name) &&
      each.conflict === undefined &&
      each.refused === undefined &&
      each.excess === undefined,
  );
}

function lines(
  { hostname, to }: HostnameTransfer,
  changes: readonly HostnameChange[],
  isServed: boolean,
): readonly string[] {
  const receiver = to.name === undefined ? `namespace ${to.namespace}` : `${to.namespace}/${to.name}`;
  return [
    ...changes.map(
      ({ hostname: changed, port, before, after }) =>
        `${changed} on port ${port}: ${before ?? "nobody"} gives it up to ${after ?? "nobody"}`,
    ),
    ...(isServed
      ? [`${receiver} serves ${hostname}.`]
      : [
          `Nothing changes hands yet: ${receiver} has no listener that can serve ${hostname}. It does as soon as it has one.`,
        ]),
  ];
}

async function write(
  flags: ClusterFlags,
  policy: TenantPolicy,
  transfers: readonly HostnameTransfer[],
  signal: AbortSignal,
): Promise<void> {
  const { connect } = await import("../workspace/read-cluster.ts");
  const client = await connect(flags);
  const { namespace, name } = partsOf(keyOf(policy));
  const { resourceVersion } = policy.metadata;
  const path = `${collectionPath({ apiVersion: policy.apiVersion, plural: "tenantpolicies", namespace })}/${name}`;
  try {
    await client.request({
      method: "PATCH",
      path,
      contentType: MERGE_PATCH,
      query: { fieldManager: "mergeway-transfer" },
      // Somebody else's change in the meantime is not undone.
      body: { metadata: { resourceVersion }, spec: { transfers } },
      signal,
    });
  } catch (error) {
    const { message } = ApiError.fromFailure(path, error);
    throw new CannotRun(
      `transfer: the TenantPolicy could not be written: ${message}`,
      "Run it again.",
      error,
    );
  }
}
