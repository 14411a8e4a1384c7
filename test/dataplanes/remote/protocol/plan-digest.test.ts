/**
 * Two controllers that have seen the same world must say the same of it, or every pod of the one
 * would lag behind the other for ever.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PlanDigest } from "../../../../src/dataplanes/remote/protocol/plan-digest.ts";
import { digestOf, encodeItem } from "../../../../src/dataplanes/remote/protocol/protocol.ts";
import { Player } from "../../../engine/history.ts";
import { history } from "../../../engine/random-resources.ts";

function digest(texts: Iterable<string>): string {
  const whole = new PlanDigest();
  for (const text of texts) whole.toggle(digestOf(text));
  return whole.text;
}

describe("the digest of a plan", () => {
  it("depends on the items alone, not on their order or history", () => {
    const texts = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(texts, fc.string({ minLength: 30, maxLength: 40 }), (held, other) => {
        const whole = new PlanDigest();
        for (const text of [other, ...held].toReversed()) whole.toggle(digestOf(text));
        expect(whole.text).not.toBe(digest(held));
        whole.toggle(digestOf(other));
        expect(whole.text).toBe(digest(held));
        for (const text of held) whole.toggle(digestOf(text));
        expect(whole.text).toBe("");
      }),
    );
  });

  it("is the same for all controllers, whatever changes they have seen", () => {
    let items = 0;
    fc.assert(
      fc.property(history, (steps) => {
        const old = new Player();
        for (const changes of steps) old.play(changes);
        const fresh = new Player();
        const final = Array.from(old.resources, ([key, resource]) => ({ key, resource }));
        for (const change of final.toReversed()) fresh.play([change]);
        const texts = (player: Player): string[] => [...player.plan.values()].map(encodeItem).sort();
        expect(texts(fresh)).toEqual(texts(old));
        items += old.plan.size;
      }),
      { numRuns: 300 },
    );
    expect(items).toBeGreaterThan(300);
  });
});
