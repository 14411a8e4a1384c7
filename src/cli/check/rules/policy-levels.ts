/** The TrafficPolicies that a rule of a route meets, level by level. */
import type { Key } from "../../../api/key.ts";
import type { Engine } from "../../../engine/engine.ts";
import { targetKey } from "../../../engine/foundation/policy-targets.ts";
import type { AttachedTrafficPolicy } from "../../../engine/policies/traffic-policies.ts";
import type { RuleOrigin } from "../../../plan/rule.ts";
import { isRoute } from "../../../view/is-route.ts";
import type { ObjectRef, OwnerView } from "../../../view/merged-state.ts";
import type { CheckInput } from "./finding.ts";
import { keyOfRef } from "./places.ts";

export interface LevelledRule {
  /** Absent: the listener has no route. */
  readonly kind?: RuleOrigin["kind"];
  readonly levels: readonly PolicyLevel[];
}

/** The policy that counts at one level. */
export interface PolicyLevel {
  readonly object: ObjectRef;
  readonly policy: AttachedTrafficPolicy;
}

/** Of every listener that holds its place; of a listener without routes one without a kind. */
export function* levelledRules({ state, workspace }: CheckInput): Generator<LevelledRule> {
  for (const { owners } of state.gateways) {
    const root = owners.find(({ role }) => role === "root");
    for (const owner of owners) if (root !== undefined) yield* rulesOf(root, owner, workspace);
  }
}

function* rulesOf(
  root: OwnerView,
  owner: OwnerView,
  { engine, resources }: CheckInput["workspace"],
): Generator<LevelledRule> {
  for (const { state, section, routes } of owner.listeners) {
    if (!owner.attached || state === "conflicted" || state === "refused") continue;
    const levels = [
      ...levelAt(engine, root),
      ...(owner === root ? [] : levelAt(engine, owner)),
      ...levelAt(engine, owner, section),
    ];
    if (routes.length === 0) yield { levels };
    for (const route of routes) {
      const kind = route.kind as RuleOrigin["kind"];
      const ofRoute = levelAt(engine, route);
      for (const name of ruleNames(keyOfRef(route), resources)) {
        const ofRule = name === undefined ? [] : levelAt(engine, route, name);
        yield { kind, levels: [...levels, ...ofRoute, ...ofRule] };
      }
    }
  }
}

export function ruleNames(
  route: Key,
  resources: CheckInput["workspace"]["resources"],
): ReadonlySet<string | undefined> {
  const resource = resources.get(route);
  if (resource === undefined || !isRoute(resource)) return new Set([undefined]);
  const rules = (resource.spec.rules ?? []) as readonly { readonly name?: string }[];
  return new Set(rules.map(({ name }) => name));
}

function levelAt(engine: Engine, object: ObjectRef, section?: string): readonly PolicyLevel[] {
  const key = keyOfRef(object);
  const target = targetKey(key, section);
  const found = engine
    .policiesOf(key)
    .find((each) => each.counts && each.target === target && each.policy.key.startsWith("TrafficPolicy/"));
  return found === undefined ? [] : [{ object, policy: found.policy as AttachedTrafficPolicy }];
}
