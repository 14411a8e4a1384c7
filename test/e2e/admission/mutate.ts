/**
 * Breaks a document, or nearly: one to three changes that know the schema and so land near its
 * limits.
 */
import type { Schema } from "../../../src/api/admission/schema/schema.ts";
import type { Random } from "./random.ts";
import { type Fields, isFields, type Seed } from "./seeds.ts";

/** A value somewhere in a document, with what its schema says. */
interface Place {
  readonly holder: Fields | unknown[];
  readonly key: string | number;
  readonly schema: Schema;
  /** The path without list positions: where values of other documents fit in. */
  readonly kindPath: string;
}

const METADATA: Schema = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 253 },
    labels: { type: "object", additionalProperties: { type: "string", maxLength: 63 } },
    annotations: { type: "object", additionalProperties: { type: "string" } },
  },
};

export class Mutator {
  readonly #random: Random;
  /** Values seen at a place in any document: put elsewhere they break rules between fields. */
  readonly #pool = new Map<string, unknown[]>();

  constructor(random: Random, seeds: readonly Seed[]) {
    this.#random = random;
    for (const { kind, object } of seeds) {
      for (const place of placesOf(object, kind.served[0]?.schema ?? {}, kind.kind)) {
        const known = this.#pool.get(place.kindPath) ?? [];
        known.push(valueAt(place));
        this.#pool.set(place.kindPath, known);
      }
    }
  }

  /** The text of a changed copy: JSON, which may hold a field twice. */
  mutate({ kind, object }: Seed): string {
    const copy = structuredClone(object);
    const schema = kind.served[0]?.schema ?? {};
    const isCore = kind.finish !== undefined;
    const times = this.#random.of([1, 1, 1, 2, 3]);
    for (let time = 0; time < times; time++) {
      const places = placesOf(copy, schema, kind.kind);
      if (places.length === 0 || this.#random.below(60) === 0)
        copy["apiVersion"] = this.#otherVersion(String(copy["apiVersion"]));
      else this.#change(this.#random.of(places), isCore);
    }
    const text = JSON.stringify(copy);
    return this.#random.below(40) === 0 ? twice(text, this.#random) : text;
  }

  #otherVersion(apiVersion: string): string {
    const [group = "", version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
    const others = ["v1", "v1beta1", "v1alpha2", "v1alpha3", "v2"].filter((each) => each !== version);
    return group === "" ? this.#random.of(others) : `${group}/${this.#random.of(others)}`;
  }

  #change(place: Place, isCore: boolean): void {
    const { holder, key, schema } = place;
    const value = valueAt(place);
    const set = (next: unknown): void => put(holder, key, next);
    const ways: (() => void)[] = [
      () => remove(holder, key),
      () => set(null),
      () =>
        set(
          this.#random.of<unknown>(["", "text", 0, -1, 7, 1.5, true, [], {}, [null], [{}], ["a"], { a: 1 }]),
        ),
      () => this.#transplant(place),
      () => this.#transplant(place),
    ];
    if (schema.enum !== undefined)
      ways.push(...twoTimes(() => set(this.#random.of([...(schema.enum ?? []), "Nope", ""]))));
    if (typeof value === "string") ways.push(...twoTimes(() => set(this.#otherText(value, schema))));
    if (typeof value === "number") ways.push(...twoTimes(() => set(this.#otherNumber(value, schema))));
    if (Array.isArray(value)) ways.push(...twoTimes(() => set(this.#otherList(value, schema))));
    if (isFields(value)) ways.push(...twoTimes(() => this.#otherFields(value, place, isCore)));
    this.#random.of(ways)();
  }

  /**
   * A value from the same place of another document, in full or as a field that is not there yet.
   */
  #transplant({ holder, key, kindPath }: Place): void {
    const candidates = this.#pool.get(kindPath) ?? [];
    if (candidates.length > 0) put(holder, key, structuredClone(this.#random.of(candidates)));
  }

  #otherText(text: string, { maxLength }: Schema): string {
    const long = maxLength ?? 64;
    return this.#random.of([
      "",
      `${text} `,
      `${text}\n`,
      `${text}_`,
      `-${text}`,
      `${text}.`,
      `*.${text}`,
      text.toUpperCase(),
      text.slice(0, 1),
      `${text}/x`,
      `/${text}`,
      `é${text}`,
      `${text}\u{1f600}`,
      "a".repeat(long),
      "a".repeat(long + 1),
      `${"a".repeat(63)}.${"b".repeat(63)}.c`,
      "\u{1f600}".repeat(Math.min(long, 300)),
      "192.0.2.1",
      "1.2.3.256",
      "2001:db8::1",
      "10s",
      "0s",
      "1h1m1s1ms",
      "9999999h",
      "1.5h",
      "a.example/b",
      "%2e%2e/..//a",
      "1",
      "true",
      "System",
    ]);
  }

  #otherNumber(number: number, { minimum, maximum }: Schema): number {
    const [least, most] = [minimum ?? 0, maximum ?? 1_000_000];
    return this.#random.of([
      least - 1,
      least,
      most,
      most + 1,
      -number,
      number + 1,
      2 ** 31,
      2 ** 40,
      number + 0.5,
    ]);
  }

  #otherList(list: readonly unknown[], { items, maxItems, minItems }: Schema): unknown[] {
    const first = structuredClone(list[0] ?? (items?.type === "object" ? {} : "a"));
    const many = (count: number): unknown[] =>
      Array.from({ length: count }, (_, index) => list[index] ?? distinct(first, index));
    const ways: (() => unknown[])[] = [
      () => [],
      () => [...list, structuredClone(list.at(-1) ?? first)],
      () => [...list, null],
      () => [...list, {}],
      () => [...list].reverse(),
      () => list.slice(0, Math.max((minItems ?? 1) - 1, 0)),
    ];
    // Lists that may be endless are left alone: a request has a size.
    if ((maxItems ?? 1000) <= 64)
      ways.push(
        () => many(maxItems ?? 0),
        () => many((maxItems ?? 0) + 1),
      );
    return this.#random.of(ways)();
  }

  #otherFields(fields: Fields, { schema, kindPath }: Place, isCore: boolean): void {
    const absent = Object.keys(schema.properties ?? {}).filter((name) => !Object.hasOwn(fields, name));
    const ways: (() => void)[] = [];
    for (const name of absent) {
      const candidates = this.#pool.get(`${kindPath}.${name}`) ?? [];
      if (candidates.length > 0)
        ways.push(() => put(fields, name, structuredClone(this.#random.of(candidates))));
    }
    // Of Kubernetes' own kinds only some fields are known; the others are none of our business.
    if (!isCore) {
      ways.push(
        () => put(fields, "unknownField", 1),
        () => put(fields, "constructor", "x"),
        () => put(fields, `${Object.keys(fields)[0] ?? "a"}s`, null),
      );
    }
    const { additionalProperties, maxProperties = 16 } = schema;
    if (additionalProperties !== undefined) {
      const many = (count: number) => (): void => {
        for (let index = Object.keys(fields).length; index < count; index++)
          fields[`example.com/k${index}`] = "v";
      };
      ways.push(many(maxProperties), many(maxProperties + 1));
      for (const name of [
        "",
        "a b",
        "a/b/c",
        "A",
        "-a",
        "é",
        "example.com/",
        "a".repeat(64),
        `${"a.".repeat(130)}b/c`,
      ]) {
        ways.push(() => put(fields, name, "v"));
      }
      ways.push(
        () => put(fields, "a", null),
        () => put(fields, "a", 1),
        () => put(fields, "a", "é"),
      );
    }
    if (ways.length > 0) this.#random.of(ways)();
  }
}

/** Everything but identity and namespace, which decide where a document is sent. */
function placesOf(object: Fields, schema: Schema, kind: string): readonly Place[] {
  const places: Place[] = [];
  for (const key of Object.keys(object)) {
    if (key === "apiVersion" || key === "kind") continue;
    const field = key === "metadata" ? METADATA : schema.properties?.[key];
    if (field !== undefined)
      visit({ holder: object, key, schema: field, kindPath: `${kind}.${key}` }, places);
  }
  return places;
}

function visit(place: Place, places: Place[]): void {
  const { schema, kindPath } = place;
  places.push(place);
  const value = valueAt(place);
  if (Array.isArray(value)) {
    for (const index of value.keys()) {
      visit(
        { holder: value as unknown[], key: index, schema: schema.items ?? {}, kindPath: `${kindPath}[]` },
        places,
      );
    }
  } else if (isFields(value)) {
    for (const name of Object.keys(value)) {
      const field = schema.properties?.[name] ?? schema.additionalProperties;
      if (field !== undefined)
        visit({ holder: value, key: name, schema: field, kindPath: `${kindPath}.${name}` }, places);
    }
  }
}

function valueAt({ holder, key }: Place): unknown {
  return (holder as Fields)[key];
}

function put(holder: Fields | unknown[], key: string | number, value: unknown): void {
  (holder as Fields)[key] = value;
}

function remove(holder: Fields | unknown[], key: string | number): void {
  if (Array.isArray(holder)) holder.splice(Number(key), 1);
  else delete holder[key];
}

function twoTimes(way: () => void): readonly (() => void)[] {
  return [way, way];
}

/** Another entry of a list that wants its entries apart. */
function distinct(item: unknown, index: number): unknown {
  if (typeof item === "string") return `${item.slice(0, 50)}${index}`;
  if (!isFields(item)) return structuredClone(item);
  const copy = structuredClone(item);
  if (typeof copy["name"] === "string") copy["name"] = `${copy["name"].slice(0, 50)}${index}`;
  if (typeof copy["port"] === "number") copy["port"] += index;
  return copy;
}

/** One field of the text a second time. */
function twice(text: string, random: Random): string {
  const fields = [...text.matchAll(/[{,]("(?:\w+)":(?:"[^"\\]*"|\d+|true|false))(?=[,}])/g)];
  if (fields.length === 0) return text;
  const { index, 1: field = "", 0: whole } = random.of(fields);
  const end = index + whole.length;
  return `${text.slice(0, end)},${field}${text.slice(end)}`;
}
