/** What `explain` says of policies, compared with the guards that data planes get. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Key } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { CandidateListener, GuardOutcome } from "../../src/matching/explain/explanation.ts";
import { guardOutcome } from "../../src/matching/explain/guard-outcome.ts";
import { RoutingTable } from "../../src/matching/routing-table.ts";
import type { Rule } from "../../src/plan/rule.ts";
import { buildState } from "../../src/view/build-state.ts";
import { effectivePolicy } from "../../src/view/explain/effective-policy.ts";
import { policyHistory, world } from "../engine/policies/policy-history.ts";
import { TEST_SETTINGS } from "../engine/settings.ts";

interface Served {
  readonly listener: CandidateListener;
  readonly rule: Rule;
}

function served(table: RoutingTable): readonly Served[] {
  return [...table.ports()].flatMap(({ id }) =>
    [...table.listenersOf(id)].flatMap((item) => {
      const listener = { ...item.owner, section: item.section, hostname: item.hostname };
      return [...table.hostsOf(item.id)].flatMap(({ rules }) => rules.map((rule) => ({ listener, rule })));
    }),
  );
}

/** `policy section.field`, as it stands in the id of a guard without its place. */
function sourceOf({ id }: GuardOutcome): string {
  const [, , policy, setting = ""] = id.split(":");
  return `${policy} ${setting.replace(/\.\d+$/, "")}`;
}

test("each guard of a rule is explained by its policy, section and field, and nothing else is", () => {
  let guards = 0;
  fc.assert(
    fc.property(policyHistory, (history) => {
      const engine = new Engine(TEST_SETTINGS);
      const resources = new Map<Key, Resource>();
      for (const step of [world, ...history]) {
        engine.apply(step);
        for (const { key, resource } of step) {
          if (resource === undefined) resources.delete(key);
          else resources.set(key, resource);
        }
      }
      const table = new RoutingTable();
      table.apply({ upserts: [...engine.plan()], removes: [] });
      const state = buildState({ engine, resources });
      for (const { listener, rule } of served(table)) {
        const outcomes = (rule.guards ?? []).map((id) => guardOutcome(id, table.get("guard", id), undefined));
        const { settings: found } = effectivePolicy(
          state,
          { listener, route: rule.origin, guards: outcomes },
          undefined,
        );
        const explained = found
          .filter(({ value }) => value === undefined)
          .map(({ policy, section, field }) => `${policy.namespace}/${policy.name} ${section}.${field}`);
        expect(explained).toEqual([...new Set(outcomes.map(sourceOf))]);
        expect(found.flatMap(({ checks = [] }) => checks)).toHaveLength(
          outcomes.filter(({ result }) => result !== "absent").length,
        );
        guards += outcomes.length;
      }
    }),
    { numRuns: 150 },
  );
  expect(guards).toBeGreaterThan(200);
});
