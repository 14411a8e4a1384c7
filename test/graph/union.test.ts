import { describe, expect, it } from "vitest";
import { Graph } from "../../src/graph/graph.ts";

/** Two collections that share one input's keys between them, under one roof. */
function split(): { set(key: string, value: number): void; read(): Record<string, string> } {
  const graph = new Graph();
  const numbers = graph.input<number>("numbers");
  const even = graph.derive("even", numbers, (_key, value) =>
    value % 2 === 0 ? `even ${value}` : undefined,
  );
  const odd = graph.derive("odd", numbers, (_key, value) => (value % 2 === 1 ? `odd ${value}` : undefined));
  const all = graph.union("all", [even, odd]);
  return {
    set: (key, value) => {
      numbers.set(key, value);
      graph.settle();
    },
    read: () => Object.fromEntries(all.entries()),
  };
}

describe("a union", () => {
  it("keeps a key that moves from a later collection to an earlier one", () => {
    const { set, read } = split();
    set("a", 1);
    set("a", 2);
    expect(read()).toEqual({ a: "even 2" });
  });

  it("keeps a key that moves from an earlier collection to a later one", () => {
    const { set, read } = split();
    set("a", 2);
    set("a", 3);
    expect(read()).toEqual({ a: "odd 3" });
  });
});
