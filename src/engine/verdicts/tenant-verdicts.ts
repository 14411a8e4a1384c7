/**
 * What a TenantPolicy says of itself, one entry for each Gateway:
 *
 *   Accepted  the Gateway exists, has no older TenantPolicy, and the policy can be read
 *   Enforced  how much is refused by it, or would be if it were enforced
 */
import { type Key, partsOf } from "../../api/key.ts";
import { GATEWAY_GROUP } from "../../api/resource.ts";
import type { TenantPolicy } from "../../api/tenant-policy.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { type Failure, fails, holds, type Verdict } from "../foundation/verdict.ts";
import type { Attachment } from "../listeners/attachment.ts";
import type { MergedListener } from "../listeners/merge.ts";
import type { RouteAttachment } from "../routes/route-attachment.ts";
import { gatewaysOf, type Tenancy } from "../tenancy/tenancy.ts";
import { specProblem } from "../tenancy/tenant-rights.ts";
import type { PolicyVerdict } from "./verdicts.ts";

export interface TenantVerdictSources {
  readonly inputs: Inputs;
  readonly attachments: ReadonlyCollection<Attachment>;
  readonly merged: ReadonlyCollection<MergedListener>;
  readonly routes: ReadonlyCollection<RouteAttachment>;
}

export function deriveTenantVerdicts(
  graph: Graph,
  { byGateway }: Tenancy,
  { inputs, attachments, merged, routes }: TenantVerdictSources,
): ReadonlyCollection<PolicyVerdict> {
  const listeners = graph.index(
    "listeners against the tenant policy",
    merged,
    (_key, { gateway, violation }) => (violation === undefined ? [] : [{ at: gateway }]),
  );
  const refusedRoutes = graph.index("routes against the tenant policy", routes, (_key, { parents }) =>
    [...new Set(parents.flatMap(({ violation }) => violation ?? []))].map((at) => ({ at })),
  );

  function conditionsAt(key: Key, gateway: Key, lookup: Lookup): readonly Verdict[] | undefined {
    const owner = lookup.get(attachments, gateway)?.owner;
    if (owner === undefined) {
      const exists = lookup.get(inputs.gateways, gateway) !== undefined;
      return exists ? undefined : [fails("Accepted", missing(gateway))];
    }
    if (owner.role === "child") return [fails("Accepted", CHILD)];
    if (lookup.first(byGateway, gateway)?.key !== key) return [fails("Accepted", OLDER)];
    const counts = [
      counted(lookup.count(listeners, gateway), "listener"),
      counted(lookup.count(refusedRoutes, gateway), "route"),
    ].join(" and ");
    const spec = lookup.get(inputs.tenantPolicies, key)?.spec;
    const isAudit = spec?.enforcement === "Audit";
    const problem = spec && specProblem(spec);
    return [
      problem === undefined ? ACCEPTED : fails("Accepted", problem),
      isAudit
        ? fails("Enforced", { reason: "Audit", message: `${counts} would be refused` })
        : holds("Enforced", "Enforced", `${counts} refused`),
    ];
  }

  return graph.derive<TenantPolicy, PolicyVerdict>(
    "tenant policy verdicts",
    inputs.tenantPolicies,
    (key, policy, lookup) => {
      const ancestors = gatewaysOf(policy).flatMap((gateway) => {
        const conditions = conditionsAt(key, gateway, lookup);
        return conditions === undefined ? [] : [{ ancestorRef: referenceTo(gateway), conditions }];
      });
      if (ancestors.length === 0) return undefined;
      return { type: "policy", generation: policy.metadata.generation ?? 0, ancestors };
    },
  );
}

const ACCEPTED: Verdict = holds("Accepted", "Accepted", "the policy is accepted");
const CHILD: Failure = {
  reason: "Invalid",
  message: "the target is a child Gateway, which has no tenants: name its parent",
};
const OLDER: Failure = { reason: "Conflicted", message: "an older TenantPolicy has the same target" };

function missing(gateway: Key): Failure {
  const message = `Gateway ${partsOf(gateway).name} does not exist in the policy's namespace`;
  return { reason: "TargetNotFound", message };
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function referenceTo(gateway: Key): PolicyVerdict["ancestors"][number]["ancestorRef"] {
  const { kind, namespace, name } = partsOf(gateway);
  return { group: GATEWAY_GROUP, kind, namespace, name };
}
