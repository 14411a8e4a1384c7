import * as fc from "fast-check";
import { expect, it } from "vitest";
import { Graph } from "../../src/graph/graph.ts";
import { MANY } from "../../src/graph/sorted-entries.ts";

/**
 * Histories that lead beyond the length at which an index stores a key's entries in pieces, and
 * back.
 */
it("an index keeps many entries of one key sorted, whatever comes and goes", () => {
  const entry = fc.record({
    key: fc.nat(3 * MANY),
    sort: fc.nat(5),
    gone: fc.constantFrom(false, false, false, true),
  });
  fc.assert(
    fc.property(fc.array(entry, { minLength: 4 * MANY, maxLength: 5 * MANY, size: "max" }), (changes) => {
      const graph = new Graph();
      const input = graph.input<number>("input");
      const index = graph.index("index", input, (_key, sort) => [{ at: "here", sort: String(sort) }]);
      const expected = new Map<string, number>();
      for (const { key, sort, gone } of changes) {
        input.set(`k${key}`, gone ? undefined : sort);
        if (gone) expected.delete(`k${key}`);
        else expected.set(`k${key}`, sort);
      }
      const places = [...expected].map(([key, sort]) => `${sort} ${key}`).sort();
      expect(places.length).toBeGreaterThan(MANY);
      const entries = [...(index.get("here") ?? [])];
      expect(entries.map(({ key, sort }) => `${sort} ${key}`)).toEqual(places);
      expect(index.get("here")?.length).toBe(places.length);
      expect(index.get("here")?.at(MANY)?.key).toBe(entries[MANY]?.key);
      for (const key of expected.keys()) input.set(key, undefined);
      expect(index.get("here")).toBeUndefined();
    }),
    { numRuns: 20 },
  );
});
