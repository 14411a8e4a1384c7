/** Conditions of routes (per parentRef), policies (per Gateway they reach) and classes. */
import type { GatewayClass } from "../../api/gateway.ts";
import { partsOf } from "../../api/key.ts";
import type { ParentReference } from "../../api/references.ts";
import { GATEWAY_GROUP } from "../../api/resource.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { BackendItem } from "../../plan/backend.ts";
import type { Inputs } from "../foundation/inputs.ts";
import type { EngineSettings } from "../foundation/settings.ts";
import { type Failure, fails, holds, type Verdict } from "../foundation/verdict.ts";
import { isOurs, parametersProblem } from "../listeners/gateways.ts";
import { type BackendPolicies, type EvaluatedPolicy, isOverruled } from "../references/backend-policies.ts";
import { anyCompiled, type CompiledRoute, isWhollyDropped } from "../routes/compiled-routes.ts";
import type { ParentOutcome, RouteAttachment } from "../routes/route-attachment.ts";
import { ROUTE_PROGRAMMED, type RouteRefusal, refusalAt } from "../routes/route-refusals.ts";
import type { ClassVerdict, PolicyVerdict, RouteVerdict } from "./verdicts.ts";

export function deriveRouteVerdicts(
  graph: Graph,
  inputs: Inputs,
  sources: {
    readonly routes: ReadonlyCollection<RouteAttachment>;
    readonly compiled: ReadonlyCollection<CompiledRoute>;
    readonly refusals: Index<RouteRefusal>;
  },
): ReadonlyCollection<RouteVerdict> {
  const { routes, compiled, refusals } = sources;
  return graph.derive<RouteAttachment, RouteVerdict>("route verdicts", routes, (key, attachment, lookup) => {
    const rules = anyCompiled(key, attachment, lookup, compiled);
    const refused = lookup.all(refusals, key);
    return {
      type: "route",
      generation: lookup.get(inputs.routes, key)?.metadata.generation ?? 0,
      parents: attachment.parents.map((parent) => ({
        parentRef: parent.ref,
        conditions: withRefusal(judgeParent(parent, rules), parent, refused),
      })),
    };
  });
}

// Shared: most routes say these two and nothing else.
const ACCEPTED: Verdict = holds("Accepted", "Accepted", "the route is accepted");
const RESOLVED: Verdict = holds("ResolvedRefs", "ResolvedRefs", "all references resolve");
const ALL_WELL: readonly Verdict[] = [ACCEPTED, RESOLVED];

function judgeParent({ refused }: ParentOutcome, compiled: CompiledRoute | undefined): readonly Verdict[] {
  const dropped = compiled?.dropped ?? [];
  const unresolved = compiled?.unresolved[0];
  const resolved = unresolved === undefined ? RESOLVED : fails("ResolvedRefs", unresolved);
  if (refused !== undefined) return [fails("Accepted", refused), resolved];
  const first = dropped[0];
  if (first !== undefined && isWhollyDropped(compiled)) return [fails("Accepted", first.failure), resolved];
  if (first === undefined) return unresolved === undefined ? ALL_WELL : [ACCEPTED, resolved];
  // The API asks for this beginning (RouteConditionPartiallyInvalid).
  const message = `Dropped Rule ${dropped.map(({ rule }) => rule).join(", ")}: ${first.failure.message}`;
  return [ACCEPTED, resolved, holds("PartiallyInvalid", first.failure.reason, message)];
}

/** What the data plane refuses comes last. Most routes have no such condition. */
function withRefusal(
  conditions: readonly Verdict[],
  parent: ParentOutcome,
  refused: readonly RouteRefusal[],
): readonly Verdict[] {
  const refusal = refused.length === 0 ? undefined : refusalAt(parent, refused);
  return refusal === undefined ? conditions : [...conditions, refusal];
}

/** Policy statuses hold at most this many ancestors (PolicyStatus.ancestors). */
const MAX_ANCESTORS = 16;

/** By the key of the Service. */
export function indexBackendsByService(
  graph: Graph,
  backends: ReadonlyCollection<BackendItem>,
): Index<BackendItem> {
  return graph.index("backends by service", backends, (_key, { service }) => [
    { at: `Service/${service.namespace}/${service.name}` },
  ]);
}

export function derivePolicyVerdicts(
  graph: Graph,
  inputs: Inputs,
  policies: BackendPolicies,
  byService: Index<BackendItem>,
): ReadonlyCollection<PolicyVerdict> {
  return graph.derive<EvaluatedPolicy, PolicyVerdict>(
    "policy verdicts",
    policies.evaluated,
    (key, policy, lookup) => {
      const gateways = new Set<string>();
      const refusing = new Set<string>();
      for (const target of policy.targets) {
        const service = target.slice(0, target.lastIndexOf("|"));
        for (const { value } of lookup.get(byService, service) ?? []) {
          gateways.add(value.gateway);
          const isRefused = lookup.get(inputs.reports, value.id)?.state === "rejected";
          if (isRefused && value.tls !== undefined) refusing.add(value.gateway);
        }
      }
      if (gateways.size === 0) return undefined;
      const overruled =
        policy.targets.length > 0 &&
        policy.targets.every((target) => isOverruled(policy, target, lookup, policies));
      const conditions = judgePolicy(policy, overruled);
      return {
        type: "policy",
        generation: lookup.get(inputs.policies, key)?.metadata.generation ?? 0,
        ancestors: [...gateways]
          .sort()
          .slice(0, MAX_ANCESTORS)
          .map((gateway) => ({
            ancestorRef: gatewayRef(gateway),
            conditions: refusing.has(gateway) ? [...conditions, POLICY_REFUSED] : conditions,
          })),
      };
    },
  );
}

const POLICY_REFUSED: Verdict = fails(ROUTE_PROGRAMMED, {
  reason: "Refused",
  message:
    "the data plane refuses the configuration of a backend of the policy: requests for it are answered with 500",
});
const OVERRULED: Failure = { reason: "Conflicted", message: "an older BackendTLSPolicy has the same target" };

function judgePolicy(policy: EvaluatedPolicy, overruled: boolean): readonly Verdict[] {
  const refused = overruled ? OVERRULED : policy.accepted;
  return [
    refused === undefined
      ? holds("Accepted", "Accepted", "the policy is accepted")
      : fails("Accepted", refused),
    policy.resolved === undefined
      ? holds("ResolvedRefs", "ResolvedRefs", "all references resolve")
      : fails("ResolvedRefs", policy.resolved),
  ];
}

function gatewayRef(gateway: string): ParentReference {
  const { namespace, name } = partsOf(`Gateway/${gateway}`);
  return { group: GATEWAY_GROUP, kind: "Gateway", namespace, name };
}

export function deriveClassVerdicts(
  graph: Graph,
  inputs: Inputs,
  settings: EngineSettings,
): ReadonlyCollection<ClassVerdict> {
  return graph.derive<GatewayClass, ClassVerdict>(
    "class verdicts",
    inputs.classes,
    (_key, gatewayClass, lookup) => {
      if (!isOurs(gatewayClass, settings)) return undefined;
      const problem = parametersProblem(gatewayClass.spec.parametersRef, "", lookup, inputs);
      return {
        type: "class",
        generation: gatewayClass.metadata.generation ?? 0,
        conditions: [
          problem === undefined
            ? holds("Accepted", "Accepted", "Gateways of this class are served")
            : fails("Accepted", { reason: "InvalidParameters", message: `spec.parametersRef: ${problem}` }),
        ],
      };
    },
  );
}
