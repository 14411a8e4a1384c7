/**
 * Which policies hold for a rule, compared with a naive computation from the resources alone, on
 * random histories (GEP-713, Effective Policies; GEP-1713, Policy Attachment).
 */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { TrafficPolicy } from "../../../src/api/traffic-policy.ts";
import type { HostItem, ListenerItem } from "../../../src/plan/plan.ts";
import type { Rule } from "../../../src/plan/rule.ts";
import { Player, tell } from "../history.ts";
import { history } from "../random-resources.ts";

const RUNS = Number(process.env["HISTORIES"] ?? 1000);
const FIELDS = ["clientAddresses", "rateLimits"] as const;

interface Target {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly section?: string | undefined;
}

/** From far to near, as a reader of the documentation would list them. */
function levelsOf(listener: ListenerItem, { origin }: Rule): readonly Target[] {
  const [namespace = "", name = ""] = listener.gateway.split("/");
  const gateway = { kind: "Gateway", namespace, name };
  const { owner } = listener;
  const isRoot = owner.kind === "Gateway" && owner.namespace === namespace && owner.name === name;
  const route = { kind: origin.kind, namespace: origin.namespace, name: origin.name };
  return [
    gateway,
    ...(isRoot ? [] : [owner]),
    { ...owner, section: listener.section },
    route,
    ...(origin.ruleName === undefined ? [] : [{ ...route, section: origin.ruleName }]),
  ];
}

/** The older one, then the first by name. */
function policyOf(target: Target, policies: readonly TrafficPolicy[]): TrafficPolicy | undefined {
  const age = ({ metadata }: TrafficPolicy): string => `${metadata.creationTimestamp ?? ""} ${metadata.name}`;
  return policies
    .filter(({ metadata }) => metadata.namespace === target.namespace)
    .filter(({ spec }) =>
      spec.targetRefs.some(
        ({ kind, name, sectionName }) =>
          kind === target.kind && name === target.name && sectionName === target.section,
      ),
    )
    .sort((a, b) => (age(a) < age(b) ? -1 : 1))[0];
}

function naiveGuards(listener: ListenerItem, rule: Rule, policies: readonly TrafficPolicy[]): string[] {
  const levels = levelsOf(listener, rule).flatMap((target) => policyOf(target, policies) ?? []);
  const isStream = !["HTTPRoute", "GRPCRoute"].includes(rule.origin.kind);
  return FIELDS.filter((field) => !isStream || field === "clientAddresses").flatMap((field) => {
    const idsOf = (policy: TrafficPolicy, section: "defaults" | "overrides"): string[] => {
      const written = policy.spec[section]?.[field];
      const count = field === "rateLimits" && Array.isArray(written) ? written.length : 1;
      const { namespace, name } = policy.metadata;
      return Array.from(
        { length: count },
        (_, place) => `guard:${listener.gateway}:${namespace}/${name}:${section}.${field}.${place}`,
      );
    };
    const overrides = levels.filter(({ spec }) => spec.overrides?.[field] !== undefined);
    const setting = levels.filter(
      ({ spec }) => spec.overrides?.[field] !== undefined || spec.defaults?.[field] !== undefined,
    );
    const nearest = setting.at(-1);
    const isDefault = nearest !== undefined && nearest.spec.overrides?.[field] === undefined;
    return [
      ...overrides.flatMap((policy) => idsOf(policy, "overrides")),
      ...(isDefault ? idsOf(nearest, "defaults") : []),
    ];
  });
}

test(
  "a rule has the guards that a naive computation gives it, and escapes no override",
  () => {
    let guarded = 0;
    let overridden = 0;
    fc.assert(
      fc.property(history, (steps) => {
        const player = new Player();
        for (const changes of steps) player.play(changes);
        const policies = [...player.resources.values()].filter((each) => each.kind === "TrafficPolicy");
        const hosts = [...player.plan.values()].filter((item): item is HostItem => item.type === "host");
        for (const host of hosts) {
          const listener = player.plan.get(host.listener) as ListenerItem;
          for (const rule of host.rules) {
            const expected = naiveGuards(listener, rule, policies);
            expect(rule.guards ?? [], tell(steps)).toEqual(expected);
            if (expected.length > 0) guarded++;
            if (expected.some((id) => id.includes(":overrides."))) overridden++;
            for (const id of expected) {
              const item = player.plan.get(id);
              // A guard that cannot be read has no item, so that the rule stays closed.
              if (item === undefined) expect(id).toMatch(/clientAddresses/);
              else expect(item).toMatchObject({ type: "guard", gateway: listener.gateway });
            }
          }
        }
      }),
      { numRuns: RUNS },
    );
    expect(guarded, "rules with guards").toBeGreaterThan(RUNS / 5);
    expect(overridden, "rules with overrides").toBeGreaterThan(RUNS / 10);
  },
  60_000 + RUNS * 100,
);
