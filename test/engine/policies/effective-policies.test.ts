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
import type { Change } from "../random-resources.ts";
import { policyHistory, world } from "./policy-history.ts";

const RUNS = Number(process.env["HISTORIES"] ?? 500);
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

type Steps = readonly (readonly Change[])[];

/** A failing history is told step by step. */
function holds(check: (steps: Steps) => void): void {
  fc.assert(
    fc.property(policyHistory, (steps) => {
      try {
        check(steps);
      } catch (error) {
        throw new Error(`${error instanceof Error ? error.message : error}\n${tell(steps)}`, {
          cause: error,
        });
      }
    }),
    { numRuns: RUNS },
  );
}

function naiveGuards(listener: ListenerItem, rule: Rule, policies: readonly TrafficPolicy[]): string[] {
  const levels = levelsOf(listener, rule).flatMap((target) => policyOf(target, policies) ?? []);
  const isStream = !["HTTPRoute", "GRPCRoute"].includes(rule.origin.kind);
  const ids = FIELDS.filter((field) => !isStream || field === "clientAddresses").flatMap((field) => {
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
  // One policy may be attached at two levels: its limits still count a request once.
  return [...new Set(ids)];
}

test(
  "a rule has the guards that a naive computation gives it, and escapes no override",
  () => {
    let guarded = 0;
    let overridden = 0;
    holds((steps) => {
      const player = new Player();
      for (const changes of steps) player.play(changes);
      const policies = [...player.resources.values()].filter((each) => each.kind === "TrafficPolicy");
      const hosts = [...player.plan.values()].filter((item): item is HostItem => item.type === "host");
      for (const host of hosts) {
        const listener = player.plan.get(host.listener) as ListenerItem;
        for (const rule of host.rules) {
          const expected = naiveGuards(listener, rule, policies);
          expect(rule.guards ?? []).toEqual(expected);
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
    });
    expect(guarded, "rules with guards").toBeGreaterThan(RUNS);
    expect(overridden, "rules with overrides").toBeGreaterThan(RUNS);
  },
  60_000 + RUNS * 100,
);

test(
  "policies that come one by one give what they give at once, in plan and statuses",
  () => {
    holds((steps) => {
      const player = new Player({ assumeProgrammed: false });
      for (const changes of steps) player.confirm(player.play(changes));
      const atOnce = new Player({ assumeProgrammed: false });
      atOnce.learn(player.reports);
      atOnce.play([...player.resources].map(([key, resource]) => ({ key, resource })));
      expect(atOnce.answer()).toEqual(player.answer());
    });
  },
  60_000 + RUNS * 100,
);

test("a policy of one set changes that set's rules and nobody else's", () => {
  const player = new Player();
  player.play(world);
  const target = { group: "gateway.networking.k8s.io", kind: "ListenerSet", name: "ls-antone" };
  const policy = {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "TrafficPolicy" as const,
    metadata: { name: "pol-one", namespace: "ns-ant" },
    spec: { targetRefs: [target], defaults: { clientAddresses: { allow: ["10.0.0.0/8"] } } },
  };
  const { plan } = player.play([{ key: "TrafficPolicy/ns-ant/pol-one", resource: policy }]);
  const touched = plan.upserts.map(({ id }) => id);
  expect(touched.filter((id) => !id.startsWith("guard:") && !id.includes("ls-antone"))).toEqual([]);
  // One host for each of the two listeners of the set.
  expect(touched.filter((id) => id.startsWith("host:")).length).toBe(2);
  expect(plan.removes).toEqual([]);
});
