import type { Schema } from "../../src/api/admission/schema/schema.ts";

/** A value that has every field of a schema, so that no CEL rule can miss one. */
export function fullSample(schema: Schema): unknown {
  if (schema.enum !== undefined) return schema.enum[0];
  switch (schema.type) {
    case "object":
      if (schema.properties === undefined)
        return { "example.com/key": fullSample(schema.additionalProperties ?? {}) };
      return Object.fromEntries(
        Object.entries(schema.properties).map(([name, field]) => [name, fullSample(field)]),
      );
    case "array":
      return [fullSample(schema.items ?? {}), fullSample(schema.items ?? {})];
    case "integer":
    case "number":
      return Math.max(schema.minimum ?? 1, 1);
    case "boolean":
      return true;
    default:
      return schema.pattern?.includes("(h|m|s|ms)") ? "10s" : "a.example/x";
  }
}

/** Visits every node of a schema that values are checked against. */
export function walkSchema(schema: Schema, visit: (node: Schema, path: string) => void, path = ""): void {
  visit(schema, path);
  for (const [name, field] of Object.entries(schema.properties ?? {}))
    walkSchema(field, visit, `${path}.${name}`);
  if (schema.items !== undefined) walkSchema(schema.items, visit, `${path}[]`);
  if (schema.additionalProperties !== undefined) walkSchema(schema.additionalProperties, visit, `${path}{}`);
}
