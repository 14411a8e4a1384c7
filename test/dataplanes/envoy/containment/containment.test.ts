/** The search for refused rules, against an Envoy that is a function. */

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Incident } from "../../../../src/dataplanes/envoy/containment/incident.ts";
import {
  findOffenders,
  type Offender,
  type Suspect,
  TRIES_PER_NAMESPACE,
} from "../../../../src/dataplanes/envoy/containment/offender-search.ts";
import type { Rule } from "../../../../src/plan/rule.ts";
import { forwardTo, rule } from "../../support/plan-builder.ts";

type Fault = "none" | "path" | "retry";

/** A rule that the function below refuses for its path, for its retry, or not at all. */
function suspect(namespace: string, index: number, fault: Fault): Suspect {
  const path = fault === "path" ? `/#${index}` : `/${index}`;
  const retry = { attempts: 1, codes: [], backoffMs: fault === "retry" ? 0 : 10 };
  const made = rule({ path, action: forwardTo("b", { retry }) });
  const origin = { ...made.origin, namespace, rule: index };
  return { host: "host", hostname: "shop.example", rule: { ...made, origin } };
}

function isTaken({ match, action }: Rule): boolean {
  if (match.path?.value.includes("#") === true) return false;
  return action.type !== "forward" || action.retry?.backoffMs !== 0;
}

function search(suspects: readonly Suspect[]): {
  readonly found: readonly Offender[];
  readonly tries: number;
} {
  const steps = findOffenders(suspects);
  let step = steps.next();
  let tries = 0;
  for (; step.done !== true; tries++) step = steps.next(step.value.every((each) => isTaken(each.rule)));
  return { found: step.value, tries };
}

const suspects = fc
  .array(
    fc.record({
      namespace: fc.constantFrom("a", "b", "c", "d", "e", "f"),
      fault: fc.constantFrom<Fault>("none", "none", "none", "none", "path", "retry"),
    }),
    { minLength: 1, maxLength: 60 },
  )
  .map((all) => all.map(({ namespace, fault }, index) => suspect(namespace, index, fault)));

describe("the search for rejected rules", () => {
  test("finds all of them and no other, with the field and a remedy", () => {
    fc.assert(
      fc.property(suspects, (all) => {
        const bad = all.filter((each) => !isTaken(each.rule));
        fc.pre(bad.length > 0 && bad.length <= 8);
        const { found } = search(all);
        expect(new Set(found.map((each) => each.suspect))).toEqual(new Set(bad));
        for (const { suspect: each, treatment, field } of found) {
          const { rule: index } = each.rule.origin;
          const ofMatch = each.rule.match.path?.value.includes("#") === true;
          expect(treatment).toBe(ofMatch ? "omitted" : "500");
          expect(field).toBe(ofMatch ? `rules[${index}].matches[0].path` : `rules[${index}].retry`);
        }
      }),
    );
  });

  test("blames no rule of another namespace, however many bad rules one has, within a limited number of tries", () => {
    const bad = Array.from({ length: 2_000 }, (_, index) => suspect("bad", index, "retry"));
    const good = Array.from({ length: 64 }, (_, index) => suspect(`good-${index}`, index, "none"));
    const { found, tries } = search([...good.slice(0, 20), ...bad, ...good.slice(20)]);
    expect(found.map(({ suspect: each }) => each.rule.origin.namespace)).toEqual(bad.map(() => "bad"));
    expect(found.every(({ treatment }) => treatment === "500")).toBe(true);
    // The halves of the namespaces, the budget, and one try for all that is left.
    expect(tries).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(65)) + TRIES_PER_NAMESPACE + 2);
  });

  test("finds none if only all rules together are rejected", () => {
    const steps = findOffenders(Array.from({ length: 9 }, (_, index) => suspect("a", index, "none")));
    let step = steps.next();
    while (step.done !== true) step = steps.next(true);
    expect(step.value).toEqual([]);
  });
});

describe("the containment of a rejected scope", () => {
  const bad = suspect("bad", 0, "retry");
  const good = suspect("good", 1, "none");
  const contained = (): Incident => {
    const incident = new Incident();
    incident.take([bad, good]);
    incident.learn([bad, good], [{ suspect: bad, treatment: "500" }]);
    return incident;
  };

  test("makes the rejected rule answer 500, and leaves the others as they were", () => {
    const [first, second] = contained().servable("host");
    expect(first).toMatchObject({ match: bad.rule.match, action: { type: "respond", status: 500 } });
    expect(second).toEqual(good.rule);
  });

  test("tries new rules of its namespace first, and those of others not at all", () => {
    const incident = contained();
    const later = suspect("bad", 2, "none");
    const other = suspect("good", 3, "none");
    incident.take([bad, good, later, other]);
    expect(incident.untried).toEqual([later]);
    expect(incident.servable("host")).not.toContain(later.rule);
    expect(incident.servable("host")).toContain(other.rule);
    incident.learn([later], []);
    expect(incident.servable("host")).toContain(later.rule);
  });

  test("ends when the rejected rule is deleted", () => {
    const incident = contained();
    incident.take([good]);
    expect(incident.isOver).toBe(true);
    expect(incident.servable("host")).toEqual([good.rule]);
  });

  test("ends for a corrected rule as soon as it was tried", () => {
    const incident = contained();
    const mended = suspect("bad", 0, "none");
    incident.take([mended, good]);
    expect(incident.isOver).toBe(false);
    incident.learn([mended], []);
    expect(incident.isOver).toBe(true);
  });

  test("a refused guard is found, and its rule answers 500 without it until the guard changes", () => {
    const check = { type: "addresses", allow: ["10.0.0.0/8"] } as const;
    const guarded = (more: Partial<Suspect> = {}): Suspect => {
      const made = rule({ path: "/admin", action: forwardTo("b"), guards: ["g"] });
      return { host: "host", hostname: "shop.example", rule: made, guards: [check], ...more };
    };
    const steps = findOffenders([guarded(), good]);
    let step = steps.next();
    while (step.done !== true) step = steps.next(step.value.every((each) => each.rule.guards === undefined));
    expect(step.value).toMatchObject([{ treatment: "500", field: "a TrafficPolicy of rules[0]" }]);

    const incident = new Incident();
    incident.take([guarded(), good]);
    incident.learn([guarded(), good], step.value);
    const [first] = incident.servable("host");
    expect(first).toMatchObject({ action: { type: "respond", status: 500 } });
    expect(first).not.toHaveProperty("guards");
    const changed = guarded({ guards: [{ ...check, deny: [] }] });
    incident.take([changed, good]);
    expect(incident.untried).toEqual([changed]);
  });

  test("a rule that was taken is not left out when its guard changes", () => {
    const made = rule({ path: "/admin", action: forwardTo("b"), guards: ["g"] });
    const origin = { ...made.origin, namespace: "bad" };
    const guarded = (allow: readonly string[]): Suspect => ({
      host: "host",
      hostname: "shop.example",
      rule: { ...made, origin },
      guards: [{ type: "addresses", allow }],
    });
    const incident = new Incident();
    const before = guarded([]);
    incident.take([bad, before]);
    incident.learn([bad, before], [{ suspect: bad, treatment: "500" }]);
    const after = guarded(["10.0.0.0/8"]);
    incident.take([bad, after]);
    expect(incident.untried).toEqual([]);
    expect(incident.servable("host")).toContain(after.rule);
    expect(incident.suspects).toEqual([after]);
    // Nor when it gains or loses one.
    for (const guards of [["g", "h"], []]) {
      const other: Suspect = { ...after, rule: { ...after.rule, guards } };
      incident.take([bad, other]);
      expect(incident.untried).toEqual([]);
      expect(incident.servable("host")).toContain(other.rule);
    }
  });

  test("no rule behind a guarded one that is left out takes its requests, unless it has the same guards", () => {
    const behind = (namespace: string, path: string, guards?: readonly string[]): Suspect => {
      const made = rule({ path, action: forwardTo("b"), ...(guards === undefined ? {} : { guards }) });
      const origin = { ...made.origin, namespace };
      return { host: "host", hostname: "shop.example", rule: { ...made, origin } };
    };
    const before = behind("bad", "/before/it");
    const omitted = behind("bad", "/#", ["g", "h"]);
    const less = behind("bad", "/less", ["g"]);
    const same = behind("bad", "/same", ["other", "h", "g"]);
    const open = behind("good", "/open");
    const wide: Suspect = { ...behind("good", "/wide"), host: "wide", hostname: "*.example" };
    const all = [before, omitted, less, same, open, wide];
    const served = (incident: Incident): readonly (readonly [string | undefined, string])[] =>
      [...incident.servable("host"), ...incident.servable("wide")].map(
        ({ match, action }) => [match.path?.value, action.type] as const,
      );
    const incident = new Incident();
    incident.take(all);
    incident.learn(all, [{ suspect: omitted, treatment: "omitted" }]);
    expect(served(incident)).toEqual([
      ["/before/it", "forward"],
      ["/less", "respond"],
      ["/same", "forward"],
      ["/open", "respond"],
      ["/wide", "respond"],
    ]);
    // One that is only to be tried closes nothing of other namespaces.
    const later = behind("bad", "/later", ["g"]);
    const rules = [later, bad, before, open];
    const trying = new Incident();
    trying.take([bad, before, open]);
    trying.learn([bad, before, open], [{ suspect: bad, treatment: "omitted" }]);
    trying.take(rules);
    expect(trying.untried).toEqual([later]);
    expect(served(trying)).toEqual([
      ["/before/it", "respond"],
      ["/open", "forward"],
    ]);
    trying.learn([later], []);
    expect(served(trying)).toEqual([
      ["/later", "forward"],
      ["/before/it", "forward"],
      ["/open", "forward"],
    ]);
  });
});
