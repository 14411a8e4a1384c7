/**
 * What a TenantPolicy says of itself, one entry for each Gateway:
 *
 *   Accepted      the Gateway exists, has no older TenantPolicy, and the policy can be read
 *   Enforced      how much is refused by it, or would be if it were enforced
 *   WithinQuotas  whether namespaces ask for more than they may have; only where there are quotas
 *   ClaimsHeld    whether claims are in the cluster; only where they are to hold
 */
import { type Key, partsOf } from "../../api/key.ts";
import { GATEWAY_GROUP } from "../../api/resource.ts";
import type { TenantPolicy } from "../../api/tenant-policy.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { ClaimFact, Inputs } from "../foundation/inputs.ts";
import { type Failure, fails, holds, type Verdict } from "../foundation/verdict.ts";
import type { Attachment } from "../listeners/attachment.ts";
import type { UsedUp } from "../listeners/listener-quota.ts";
import type { MergedListener } from "../listeners/merge.ts";
import type { RouteAttachment } from "../routes/route-attachment.ts";
import type { QuotaUses } from "../tenancy/quota-use.ts";
import { gatewaysOf, type Tenancy } from "../tenancy/tenancy.ts";
import { specProblem } from "../tenancy/tenant-rights.ts";
import type { PolicyVerdict } from "./verdicts.ts";

export interface TenantVerdictSources {
  readonly inputs: Inputs;
  readonly attachments: ReadonlyCollection<Attachment>;
  readonly merged: ReadonlyCollection<MergedListener>;
  readonly routes: ReadonlyCollection<RouteAttachment>;
  /** What is used up, by `gateway|namespace`. */
  readonly usedUp: readonly ReadonlyCollection<UsedUp>[];
  readonly quotas: QuotaUses;
}

/** What is against the TenantPolicy of a Gateway, enforced or not. */
export interface TenantViolations {
  readonly gateway: Key;
  readonly listeners: number;
  readonly routes: number;
}

export interface TenantVerdicts {
  readonly verdicts: ReadonlyCollection<PolicyVerdict>;
  readonly violations: () => Iterable<TenantViolations>;
}

export function deriveTenantVerdicts(
  graph: Graph,
  { byGateway }: Tenancy,
  { inputs, attachments, merged, routes, usedUp: exceeded, quotas }: TenantVerdictSources,
): TenantVerdicts {
  const listeners = graph.index(
    "listeners against the tenant policy",
    merged,
    (_key, { gateway, violation }) => (violation === undefined ? [] : [{ at: gateway }]),
  );
  const refusedRoutes = graph.index("routes against the tenant policy", routes, (_key, { parents }) =>
    [...new Set(parents.flatMap(({ violation }) => violation ?? []))].map((at) => ({ at })),
  );

  const usedUp = exceeded.map((quota) =>
    graph.index("used up quotas by gateway", quota, (place) => [{ at: place.slice(0, place.indexOf("|")) }]),
  );

  function quotaCondition({ rules = [] }: TenantPolicy["spec"], gateway: Key, lookup: Lookup): Verdict[] {
    if (!rules.some(({ quota }) => quota !== undefined)) return [];
    const found = usedUp.flatMap((index) => lookup.all(index, gateway));
    const full = counted(quotas.count(gateway, "full", lookup), "namespace");
    const near = counted(quotas.count(gateway, "near", lookup), "namespace");
    const uses = `at a limit: ${full}; at nine tenths of one: ${near}`;
    if (found.length > 0) return [fails("WithinQuotas", exceededBy(found, uses))];
    const message = `no namespace asks for more than it may have; ${uses}`;
    return [holds("WithinQuotas", "WithinQuotas", message)];
  }

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
      ...(spec === undefined ? [] : quotaCondition(spec, gateway, lookup)),
      ...(spec?.claims === "Hold" ? claimsCondition(lookup.get(inputs.claims, gateway)) : []),
    ];
  }

  const verdicts = graph.derive<TenantPolicy, PolicyVerdict>(
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
  return {
    verdicts,
    *violations() {
      for (const [gateway] of byGateway.entries()) {
        const [ofListeners, ofRoutes] = [listeners.get(gateway), refusedRoutes.get(gateway)];
        yield { gateway, listeners: ofListeners?.length ?? 0, routes: ofRoutes?.length ?? 0 };
      }
    },
  };
}

/** Nothing outside of a cluster, where no admission reads them. */
function claimsCondition(fact: ClaimFact | undefined): Verdict[] {
  if (fact === undefined) return [];
  if (fact.problem === undefined)
    return [holds("ClaimsHeld", "Written", "HostnameClaims are in the cluster, for the admission policy")];
  return [fails("ClaimsHeld", { reason: "NotWritten", message: fact.problem })];
}

/** So many limits help; more would hide the rest of the message. */
const SHOWN_LIMITS = 20;

/** Names nobody: whoever asks for more has it in its own status. */
function exceededBy(found: readonly UsedUp[], uses: string): Failure {
  const limits = [...new Set(found.flatMap((each) => each.limits))].sort();
  const more = limits.length > SHOWN_LIMITS ? `, and ${limits.length - SHOWN_LIMITS} other limits` : "";
  const namespaces = new Set(found.map(({ namespace }) => namespace)).size;
  const message = `${counted(namespaces, "namespace")} would use more than ${limits.slice(0, SHOWN_LIMITS).join(", ")}${more}; ${uses}`;
  return { reason: "QuotaExceeded", message };
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
