/** Rules about TrafficPolicies, ClientPolicies and BackendPolicies. */
import type { FieldPath } from "../../../api/admission/schema/field-error.ts";
import type { Key } from "../../../api/key.ts";
import { targetKey, targetParts } from "../../../engine/foundation/policy-targets.ts";
import type { Verdict } from "../../../engine/foundation/verdict.ts";
import {
  effectiveSettings,
  fieldsOfRules,
  TRAFFIC_FIELDS,
} from "../../../engine/policies/traffic-policies.ts";
import { isSectioned } from "../../../view/build-policies.ts";
import { describe, type PolicyView, refOf } from "../../../view/merged-state.ts";
import { idleBackendPolicies } from "./backend-policy-levels.ts";
import type { CheckInput, CheckRule, Problem } from "./finding.ts";
import { keyOfRef, ownersOf } from "./places.ts";
import { levelledRules } from "./policy-levels.ts";
import { looserSettings } from "./policy-looseness.ts";

export const policyTarget: CheckRule = {
  id: "policy-target",
  severity: "error",
  summary: "A policy names a target, listener, rule or port that does not exist.",
  *find({ state, workspace: { resources } }) {
    for (const policy of state.strayPolicies) {
      if (policy.reason !== "TargetNotFound") continue;
      const { target, message } = policy;
      const at = keyOfRef(policy);
      const section = target.section === "" ? "" : `, ${target.section}`;
      yield {
        at,
        path: targetPath(at, targetKey(keyOfRef(target), target.section || undefined), resources),
        message: `${describe(target)}${section}: ${message}`,
        remedy: "Correct kind, name and sectionName. A target is in the namespace of its policy.",
      };
    }
  },
};

export const policyConflict: CheckRule = {
  id: "policy-conflict",
  severity: "error",
  summary: "An older policy of the same kind has the same target: this one has no effect there.",
  *find({ workspace: { engine, resources } }) {
    for (const [key, policy] of resources) {
      if (!isSectioned(policy)) continue;
      for (const object of objectsOf(key, resources)) {
        const attached = engine.policiesOf(object);
        for (const { target, counts } of attached.filter((each) => each.policy.key === key)) {
          const first = attached.find(
            (each) => each.target === target && each.counts && refOf(each.policy.key).kind === policy.kind,
          );
          if (counts || first === undefined) continue;
          const { section } = targetParts(target);
          yield {
            at: key,
            path: targetPath(key, target, resources),
            message: `${describe(refOf(first.policy.key))} has the same target, ${describe(refOf(object))}${section === undefined ? "" : `, ${section}`}, and comes first`,
            remedy: "Merge the two policies, or give them different targets.",
          };
        }
      }
    }
  },
};

export const policyNotConfinable: CheckRule = {
  id: "policy-not-confinable",
  severity: "error",
  summary: "A ClientPolicy or BackendPolicy is attached to less of a Gateway than it can be confined to.",
  find: (input) =>
    refused(
      input,
      "NotConfinable",
      "Attach the policy to the Gateway, or ask whoever owns the Gateway to do so.",
    ),
};

export const policyInvalid: CheckRule = {
  id: "policy-invalid",
  severity: "error",
  summary: "A setting of a policy cannot be read, such as a network: what it guards stays closed.",
  *find({ workspace: { engine, resources } }) {
    const reported = new Set<Key>();
    for (const [key] of resources) {
      for (const object of objectsOf(key, resources)) {
        for (const { policy } of engine.policiesOf(object)) {
          if (policy.key !== key || policy.invalid === undefined || reported.has(key)) continue;
          reported.add(key);
          const [field = "spec"] = /^[\w.]+/.exec(policy.invalid.message) ?? [];
          yield {
            at: key,
            path: field.split("."),
            message: policy.invalid.message,
            remedy:
              "Write networks as 192.0.2.0/24 or 2001:db8::/32, periods from 1ms to 24h, and sizes as 10Mi. Until then requests that a TrafficPolicy guards are answered with 500.",
          };
        }
      }
    }
  },
};

export const policyReference: CheckRule = {
  id: "policy-reference",
  severity: "error",
  summary:
    "A policy refers to a Secret, ConfigMap or Service that cannot be used: what it guards stays closed.",
  *find({ workspace: { engine, resources } }) {
    for (const [key, { kind }] of resources) {
      const isPolicy = kind === "TrafficPolicy" || kind === "ClientPolicy";
      const verdict = isPolicy ? engine.verdict(key) : undefined;
      if (verdict?.type !== "policy") continue;
      const unresolved = verdict.ancestors
        .flatMap(({ conditions }) => conditions)
        .find(({ type, status }) => type === "ResolvedRefs" && status === "False");
      if (unresolved === undefined) continue;
      yield {
        at: key,
        path: ["spec"],
        message: unresolved.message,
        remedy:
          kind === "ClientPolicy"
            ? "Correct the reference, or the ConfigMap, in the namespace of the policy. Until then its authorities are trusted by nobody."
            : "Correct the reference, or what it refers to. A Secret is in the namespace of its policy. Until then requests are answered with 500.",
      };
    }
  },
};

export const policyWithoutEffect: CheckRule = {
  id: "policy-without-effect",
  severity: "warning",
  summary:
    "A TrafficPolicy or BackendPolicy reaches nothing that is served, or all of its settings give way to others.",
  *find(input) {
    const reaching = new Set<Key>();
    const effective = new Set<Key>();
    for (const { kind, levels } of levelledRules(input)) {
      for (const { policy } of levels) reaching.add(policy.key);
      const fields = kind === undefined ? TRAFFIC_FIELDS : fieldsOfRules(kind);
      for (const { policy, field } of effectiveSettings(levels.map(({ policy }) => policy)))
        if (fields.includes(field)) effective.add(policy.key);
    }
    const { resources } = input.workspace;
    for (const [key, { kind }] of resources) {
      if (kind !== "TrafficPolicy" || effective.has(key) || !isAccepted(key, input)) continue;
      const message = reaching.has(key)
        ? "nothing of it holds anywhere: nearer levels set the same fields, or they do not apply to the routes there"
        : "it reaches no listener that is served";
      const remedy = reaching.has(key)
        ? "Remove the policy, or write under overrides what must hold in any case."
        : "Attach it to a Gateway, set or route that is served.";
      yield { at: key, path: ["spec"], message, remedy };
    }
    yield* idleBackendPolicies(input);
  },
};

export const policyLooser: CheckRule = {
  id: "policy-looser",
  severity: "warning",
  summary: "A setting is looser than an override of a farther level, or lets nobody pass together with it.",
  *find(input) {
    for (const { levels } of levelledRules(input)) {
      for (const { policy, path, message } of looserSettings(levels)) {
        const remedy = "Be stricter than the override, or leave the setting out: the override holds anyway.";
        yield { at: policy, path, message, remedy };
      }
    }
  },
};

/** Accepted at one of its targets. */
function isAccepted(key: Key, { workspace: { engine, resources }, state }: CheckInput): boolean {
  const verdict = engine.verdict(key);
  const conditions = verdict?.type === "policy" ? verdict.ancestors.flatMap((each) => each.conditions) : [];
  if (conditions.some(({ type, status }) => type === "Accepted" && status === "True")) return true;
  // A route that no listener has taken has no entry in the status.
  return (
    resources.has(key) &&
    conditions.length === 0 &&
    state.strayPolicies.some((stray) => keyOfRef(stray) === key && stray.reason === "NotAttached")
  );
}

function* refused(
  { state, workspace: { resources } }: CheckInput,
  reason: string,
  remedy: string,
): Generator<Problem> {
  for (const owner of ownersOf(state)) {
    const listeners = owner.listeners.flatMap(({ policies }) => policies);
    for (const policy of [...owner.policies, ...listeners]) {
      const wrong = refusal(policy, reason);
      if (wrong === undefined) continue;
      const at = keyOfRef(policy);
      const target = targetKey(keyOfRef(owner), policy.section);
      yield { at, path: targetPath(at, target, resources), message: wrong.message, remedy };
    }
  }
}

function refusal({ conditions }: PolicyView, reason: string): Verdict | undefined {
  return conditions.find((each) => each.type === "Accepted" && each.reason === reason);
}

function targetPath(policy: Key, target: string, resources: CheckInput["workspace"]["resources"]): FieldPath {
  const place = targetsOf(policy, resources).indexOf(target);
  return place < 0 ? ["spec", "targetRefs"] : ["spec", "targetRefs", place];
}

/** The targets of a policy of ours, in their order. */
function targetsOf(policy: Key, resources: CheckInput["workspace"]["resources"]): readonly string[] {
  const resource = resources.get(policy);
  if (resource === undefined || !isSectioned(resource)) return [];
  const { namespace } = refOf(policy);
  return resource.spec.targetRefs.map(({ kind, name, sectionName }) =>
    targetKey(keyOfRef({ kind, namespace, name }), sectionName),
  );
}

function objectsOf(policy: Key, resources: CheckInput["workspace"]["resources"]): ReadonlySet<Key> {
  return new Set(targetsOf(policy, resources).map((target) => targetParts(target).object));
}
