/** BackendPolicies of which nothing holds at any backend that is reached. */
import type { Key } from "../../../api/key.ts";
import type { RuleOrigin } from "../../../plan/rule.ts";
import { backendSettings } from "../../../view/explain/effective-backend.ts";
import type { ExplainedPlace } from "../../../view/explain/effective-policy.ts";
import type { ListenerView, RouteView } from "../../../view/merged-state.ts";
import type { CheckInput, Problem } from "./finding.ts";
import { keyOfRef } from "./places.ts";
import { ruleNames } from "./policy-levels.ts";

export function* idleBackendPolicies(input: CheckInput): Generator<Problem> {
  const { engine, resources } = input.workspace;
  const policies = [...resources].filter(([, { kind }]) => kind === "BackendPolicy");
  if (policies.length === 0) return;
  const reaching = new Set<Key>();
  const effective = new Set<Key>();
  for (const { settings, overridden } of effectiveBackends(input)) {
    for (const { policy } of settings) effective.add(keyOfRef(policy));
    for (const { policy } of [...settings, ...overridden]) reaching.add(keyOfRef(policy));
  }
  for (const [key] of policies) {
    const verdict = engine.verdict(key);
    const conditions = verdict?.type === "policy" ? verdict.ancestors.flatMap((each) => each.conditions) : [];
    const isRefused =
      conditions.length > 0 &&
      !conditions.some(({ type, status }) => type === "Accepted" && status === "True");
    if (effective.has(key) || isRefused) continue;
    yield reaching.has(key)
      ? {
          at: key,
          path: ["spec"],
          message: "nothing of it holds anywhere: other levels set the same fields",
          remedy: "Remove the policy, or write under overrides what must hold in any case.",
        }
      : {
          at: key,
          path: ["spec"],
          message: "it reaches no backend that is served",
          remedy: "Attach it to a Gateway, Service or route that is in use.",
        };
  }
}

function* effectiveBackends({ state, workspace }: CheckInput): Generator<ReturnType<typeof backendSettings>> {
  for (const { owners } of state.gateways) {
    const root = owners.find(({ role }) => role === "root");
    if (root === undefined) continue;
    for (const owner of owners)
      for (const listener of owner.listeners)
        for (const route of listener.routes)
          for (const ruleName of ruleNames(keyOfRef(route), workspace.resources))
            yield settingsOf({ root, owner }, listener, route, ruleName);
  }
}

function settingsOf(
  place: ExplainedPlace,
  { section, hostname }: ListenerView,
  route: RouteView,
  ruleName: string | undefined,
): ReturnType<typeof backendSettings> {
  const { kind, namespace, name } = place.owner;
  const origin = {
    kind: route.kind as RuleOrigin["kind"],
    namespace: route.namespace,
    name: route.name,
    rule: 0,
    match: 0,
    ...(ruleName === undefined ? {} : { ruleName }),
  };
  const backends = route.backends.map((each) => ({ ...each, share: 1, endpoints: [] }));
  const listener = { kind: kind as "Gateway", namespace, name, section, hostname };
  return backendSettings(place, { listener, route: origin, guards: [], backends });
}
