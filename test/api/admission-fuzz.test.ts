import fc from "fast-check";
import { expect, test } from "vitest";
import { admit } from "../../src/api/admission/admit.ts";
import { knownKinds } from "../../src/api/admission/kinds.ts";
import { compile } from "../../src/api/admission/schema/compile.ts";
import { Pass } from "../../src/api/admission/schema/pass.ts";
import type { Schema } from "../../src/api/admission/schema/schema.ts";

const KINDS = knownKinds("experimental").map(({ group, kind, canonical, served }) => ({
  apiVersion: group === "" ? canonical : `${group}/${canonical}`,
  kind,
  schema: served.find(({ name }) => name === canonical)?.schema ?? {},
}));

const NASTY = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    "",
    0,
    -1,
    1.5,
    2 ** 53,
    Number.NaN,
    true,
    [],
    {},
    [null],
    "\u0000",
    "a".repeat(300),
  ),
  fc.constantFrom<unknown>(
    JSON.parse('{"__proto__": {"a": 1}}'),
    { constructor: 1 },
    { toString: null },
    { length: 1 },
  ),
  fc.anything({
    maxDepth: 3,
    withBigInt: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withSparseArray: true,
  }),
);

/** Mostly what the schema asks for, with something else now and then. */
function valueFor(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const right = rightValue(schema, depth);
  return fc.oneof({ weight: 30, arbitrary: right }, { weight: 1, arbitrary: NASTY });
}

function rightValue(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case "object": {
      if (depth === 0) return fc.constant({});
      const required = (schema.required ?? []).filter((name) => schema.properties?.[name] !== undefined);
      const fields: Record<string, fc.Arbitrary<unknown>> = {};
      for (const [name, field] of Object.entries(schema.properties ?? {}))
        fields[name] = valueFor(field, depth - 1);
      if (Object.keys(fields).length > 0) return fc.record(fields, { requiredKeys: required });
      return fc.dictionary(fc.constantFrom("a", "b.c/d", "__proto__", "constructor"), valueFor(STRING, 0), {
        maxKeys: 3,
      });
    }
    case "array":
      return fc.array(valueFor(schema.items ?? {}, depth - 1), {
        minLength: Math.min(schema.minItems ?? 0, 2),
        maxLength: 2,
      });
    case "integer":
    case "number":
      return fc.integer({ min: schema.minimum ?? -2, max: Math.min(schema.maximum ?? 600, 65535) });
    case "boolean":
      return fc.boolean();
    default:
      return fc.constantFrom(
        "a",
        "a.example",
        "*.example.com",
        "/x",
        "10s",
        "example.com/c",
        "",
        "HTTP",
        "UPPER x",
      );
  }
}

const STRING: Schema = { type: "string" };

const OBJECT = fc.constantFrom(...KINDS).chain(({ apiVersion, kind, schema }) => {
  const { metadata: _, apiVersion: __, kind: ___, ...properties } = schema.properties ?? {};
  return valueFor({ ...schema, properties }, 9).map((body) => ({
    apiVersion,
    kind,
    metadata: { name: "fuzz", namespace: "a" },
    ...(typeof body === "object" && body !== null ? body : { spec: body }),
  }));
});

const RUNS = Number(process.env["ADMISSION_FUZZ_RUNS"] ?? 1000);

test("nothing makes admission throw", () => {
  fc.assert(
    fc.property(fc.oneof(NASTY, OBJECT), (value) => {
      const { resource, ignored, errors } = admit(value);
      expect([resource !== undefined, ignored === true, errors.length > 0].filter(Boolean)).toHaveLength(1);
    }),
    { numRuns: RUNS },
  );
});

test("what was admitted is admitted again, unchanged, and the input is left alone", () => {
  let admitted = 0;
  fc.assert(
    fc.property(OBJECT, (value) => {
      const before = JSON.stringify(value, plain);
      const first = admit(value, { unknownFields: "warn" });
      expect(JSON.stringify(value, plain)).toBe(before);
      if (first.resource === undefined) return;
      admitted++;
      const again = admit(first.resource);
      expect(again.errors).toEqual([]);
      expect(again.warnings).toEqual([]);
      expect(again.resource).toEqual(first.resource);
    }),
    { numRuns: RUNS },
  );
  // Else the property above would say nothing.
  expect(admitted).toBeGreaterThan(RUNS / 50);
});

function plain(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

test("an object with a prototype for a key keeps it as a key", () => {
  const data = JSON.parse('{"__proto__": "x", "constructor": "y"}') as unknown;
  const { resource } = admit({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, data });
  const admitted = (resource as unknown as { data: object }).data;
  expect(Object.keys(admitted).sort()).toEqual(["__proto__", "constructor"]);
  expect(Object.getPrototypeOf(admitted)).toBe(Object.prototype);
});

test("values nested a hundred thousand deep", () => {
  let deep: unknown = "x";
  for (let i = 0; i < 100_000; i++) deep = i % 2 === 0 ? [deep] : { a: deep };
  const metadata = { name: "deep" };
  const gateway = { apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway", metadata };
  expect(admit({ ...gateway, spec: deep }).errors.length).toBeGreaterThan(0);
  expect(
    admit({ ...gateway, spec: { gatewayClassName: deep, listeners: deep } }).errors.length,
  ).toBeGreaterThan(0);
  expect(
    admit({ apiVersion: "v1", kind: "Service", metadata, spec: { clusterIP: "None", other: deep } }).errors,
  ).toEqual([]);
});

test("errors without end are cut off with a word about it", () => {
  const spec = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`f${i}`, 1]));
  const { errors } = admit({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name: "x" },
    spec,
  });
  expect(errors).toHaveLength(1001);
  expect(errors.at(-1)?.rule).toBe("too-many-errors");
});

test.each([
  ["a keyword that is not known", { type: "string", "x-new": 1 } as Schema],
  ["no type", {} as Schema],
  [
    "a default that breaks its own schema",
    { type: "object", properties: { a: { type: "string", default: 1 } } } as Schema,
  ],
])("a schema with %s is a bug", (_, schema) => {
  expect(() => compile(schema)).toThrow();
});

test("lengths are counted in code points", () => {
  const check = compile({ type: "string", minLength: 2, maxLength: 3 });
  const errorsOf = (text: string): readonly string[] => {
    const pass = new Pass(true);
    check(text, pass);
    return pass.errors.map(({ rule }) => rule);
  };
  expect(errorsOf("😀😀😀")).toEqual([]);
  expect(errorsOf("😀😀😀😀")).toEqual(["schema/max-length"]);
  expect(errorsOf("😀")).toEqual(["schema/min-length"]);
});
