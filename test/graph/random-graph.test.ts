/**
 * Random graphs of derive, expand, index and union, after every step of a random history, against a
 * recomputation with plain maps.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Input, ReadonlyCollection } from "../../src/graph/collection.ts";
import { Graph } from "../../src/graph/graph.ts";
import type { Index } from "../../src/graph/index-collection.ts";
import type { Lookup } from "../../src/graph/lookup.ts";

const INPUTS = 2;
const KEYS: readonly string[] = ["a", "b", "c", "d"];

/**
 * How one collection of numbers is made of earlier ones; all choices are taken modulo what exists.
 */
interface Spec {
  readonly op: "derive" | "expand" | "split" | "sum";
  readonly source: number;
  readonly other: number;
  readonly look: "get" | "first" | "count" | "all";
}

interface Entry {
  readonly key: string;
  readonly value: number;
}

/** What a computation sees of earlier collections, however they are kept. */
interface View {
  get(collection: number, key: string): number | undefined;
  first(collection: number, at: string): Entry | undefined;
  count(collection: number, at: string): number;
  all(collection: number, at: string): readonly Entry[];
}

function groupOf(value: number): string {
  return `group${value % 3}`;
}

function looked({ other, look }: Spec, value: number, view: View): number {
  const key = KEYS[value % KEYS.length] as string;
  if (look === "get") return view.get(other, key) ?? 1;
  if (look === "first") return view.first(other, groupOf(value))?.value ?? 2;
  if (look === "count") return view.count(other, groupOf(value));
  return view.all(other, groupOf(value)).reduce((sum, entry) => sum * 2 + entry.value, 0);
}

/** Small numbers, so that equal results and early cut-off happen. */
function bound(value: number): number | undefined {
  const result = value % 7;
  return result === 0 ? undefined : result;
}

function outputs(spec: Spec, key: string, value: number, view: View): readonly (readonly [string, number])[] {
  const result = bound(value + looked(spec, value, view));
  if (result === undefined) return [];
  if (spec.op !== "expand") return [[key, result]];
  return Array.from({ length: result % 3 }, (_, i) => [`${key}/${i}`, result + i] as const);
}

function sumOf(entries: readonly Entry[]): number | undefined {
  return bound(entries.reduce((sum, { value }) => sum * 3 + value, 1));
}

interface Built {
  readonly graph: Graph;
  readonly inputs: readonly Input<number>[];
  readonly collections: readonly ReadonlyCollection<number>[];
}

function build(specs: readonly Spec[]): Built {
  const graph = new Graph();
  const inputs = Array.from({ length: INPUTS }, (_, i) => graph.input<number>(`input ${i}`));
  const collections: ReadonlyCollection<number>[] = [...inputs];
  const indexes: Index<number>[] = [];
  const indexLatest = (): void => {
    for (const source of collections.slice(indexes.length)) {
      indexes.push(
        graph.index(`index of ${source.name}`, source, (_key, value) => [
          { at: groupOf(value), sort: String(value) },
        ]),
      );
    }
  };
  const view = (lookup: Lookup): View => ({
    get: (collection, key) => lookup.get(collections[collection] as ReadonlyCollection<number>, key),
    first: (collection, at) => lookup.first(indexes[collection] as Index<number>, at),
    count: (collection, at) => lookup.count(indexes[collection] as Index<number>, at),
    all: (collection, at) => [...(lookup.get(indexes[collection] as Index<number>, at) ?? [])],
  });
  for (const [i, written] of specs.entries()) {
    indexLatest();
    const spec = within(written, collections.length);
    const source = collections[spec.source] as ReadonlyCollection<number>;
    const index = indexes[spec.source] as Index<number>;
    const part = (rest: number): ReadonlyCollection<number> =>
      graph.derive(`half ${rest} of ${i}`, source, (key, value, lookup) => {
        const result = outputs(spec, key, value, view(lookup))[0]?.[1];
        return result !== undefined && result % 2 === rest ? result : undefined;
      });
    if (spec.op === "sum")
      collections.push(graph.derive(`sum ${i}`, index, (_key, entries) => sumOf([...entries])));
    else if (spec.op === "split") collections.push(graph.union(`union ${i}`, [part(0), part(1)]));
    else
      collections.push(
        graph.expand(`${spec.op} ${i}`, source, (key, value, lookup) =>
          outputs(spec, key, value, view(lookup)),
        ),
      );
  }
  return { graph, inputs, collections };
}

function within(spec: Spec, size: number): Spec {
  return { ...spec, source: spec.source % size, other: spec.other % size };
}

type Table = ReadonlyMap<string, number>;

function recompute(specs: readonly Spec[], inputs: readonly Table[]): readonly Table[] {
  const tables: Table[] = [...inputs];
  const grouped = (collection: number, at: string): readonly Entry[] =>
    [...(tables[collection] as Table)]
      .map(([key, value]) => ({ key, value }))
      .filter(({ value }) => groupOf(value) === at)
      .sort((a, b) => (String(a.value) + a.key < String(b.value) + b.key ? -1 : 1));
  const view: View = {
    get: (collection, key) => tables[collection]?.get(key),
    first: (collection, at) => grouped(collection, at)[0],
    count: (collection, at) => grouped(collection, at).length,
    all: grouped,
  };
  for (const written of specs) {
    const spec = within(written, tables.length);
    const source = tables[spec.source] as Table;
    if (spec.op === "sum") {
      const groups = new Set([...source.values()].map(groupOf));
      tables.push(
        new Map(
          [...groups].flatMap((at) => {
            const sum = sumOf(grouped(spec.source, at));
            return sum === undefined ? [] : [[at, sum] as const];
          }),
        ),
      );
    } else tables.push(new Map([...source].flatMap(([key, value]) => outputs(spec, key, value, view))));
  }
  return tables;
}

const spec: fc.Arbitrary<Spec> = fc.record({
  op: fc.constantFrom("derive", "expand", "split", "sum"),
  source: fc.nat(7),
  other: fc.nat(7),
  look: fc.constantFrom("get", "first", "count", "all"),
});

const step = fc.array(
  fc.record({
    input: fc.nat(INPUTS - 1),
    key: fc.constantFrom(...KEYS),
    value: fc.option(fc.nat(6), { nil: undefined }),
  }),
  { minLength: 1, maxLength: 3 },
);

const RUNS = Number(process.env["HISTORIES"] ?? 1000);

describe("a graph", () => {
  it("gives after every step what a recomputation gives", () => {
    fc.assert(
      fc.property(
        fc.array(spec, { minLength: 1, maxLength: 7 }),
        fc.array(step, { minLength: 1, maxLength: 12 }),
        (specs, steps) => {
          const { graph, inputs, collections } = build(specs);
          const tables = inputs.map(() => new Map<string, number>());
          for (const changes of steps) {
            for (const { input, key, value } of changes) {
              inputs[input]?.set(key, value);
              if (value === undefined) tables[input]?.delete(key);
              else tables[input]?.set(key, value);
            }
            graph.settle();
            const expected = recompute(specs, tables);
            for (const [i, collection] of collections.entries()) {
              expect(sorted(collection.entries()), collection.name).toEqual(
                sorted(expected[i]?.entries() ?? []),
              );
            }
          }
        },
      ),
      { numRuns: RUNS },
    );
  }, 600_000);

  it("computes nothing when nothing changes", () => {
    fc.assert(
      fc.property(fc.array(spec, { minLength: 1, maxLength: 7 }), step, (specs, changes) => {
        const { graph, inputs } = build(specs);
        for (const { input, key, value } of changes) inputs[input]?.set(key, value);
        graph.settle();
        const before = graph.recomputed;
        for (const { input, key } of changes) inputs[input]?.set(key, inputs[input]?.get(key));
        graph.settle();
        expect(graph.recomputed).toBe(before);
      }),
    );
  });

  it("refuses a computation that looks ahead", () => {
    const graph = new Graph();
    const input = graph.input<number>("input");
    const later: { source?: ReadonlyCollection<number> } = {};
    graph.derive("early", input, (key, _value, lookup) =>
      lookup.get(later.source as ReadonlyCollection<number>, key),
    );
    later.source = graph.derive("late", input, (_key, value) => value);
    input.set("a", 1);
    expect(() => graph.settle()).toThrow("early looks ahead at late");
  });
});

function sorted(entries: Iterable<readonly [string, number]>): readonly (readonly [string, number])[] {
  return [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
}
