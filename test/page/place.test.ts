import fc from "fast-check";
import { expect, test } from "vitest";
import { fragmentOf, readPlace, VIEWS } from "../../src/page/model/place.ts";

test("a place reads back from its fragment", () => {
  const value = fc.string({ minLength: 1, unit: "binary" });
  const parameters = fc.dictionary(
    fc.stringMatching(/^[a-z]+$/),
    fc.oneof(value, fc.array(value, { minLength: 2, maxLength: 3 })),
  );
  fc.assert(
    fc.property(fc.constantFrom(...VIEWS), parameters, (view, given) => {
      const place = { view, parameters: { ...given } };
      expect(readPlace(fragmentOf(place))).toEqual(place);
    }),
  );
});

test("an unknown view is the tree", () => {
  expect(readPlace("").view).toBe("tree");
  expect(readPlace("#/nothing?q=a")).toEqual({ view: "tree", parameters: { q: "a" } });
});

test("names of objects stay readable in a fragment", () => {
  const at = "owner:ListenerSet/team-a/web";
  expect(fragmentOf({ view: "tree", parameters: { at, q: "" } })).toBe(`#/tree?at=${at}`);
});
