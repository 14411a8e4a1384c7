import { isDeepStrictEqual } from "node:util";
import { stringFormat } from "./formats.ts";
import { matcher } from "./patterns.ts";
import type { Check } from "./scalars.ts";
import type { Schema } from "./schema.ts";

/**
 * `anyOf`, `oneOf` and `not`. In a structural schema these only say yes or no: they neither default
 * nor prune, so they are predicates over a value that the structural part has already put in shape.
 */
export function compileAlternatives(schema: Schema): Check | undefined {
  const { oneOf, anyOf, not } = schema;
  if (oneOf === undefined && anyOf === undefined && not === undefined) return undefined;
  const only: Schema = { ...(oneOf && { oneOf }), ...(anyOf && { anyOf }), ...(not && { not }) };
  const holds = predicate(only);
  const wanted = describe(only);
  return (value, pass) => {
    if (!holds(value))
      pass.fail("schema/alternatives", "fits none of the allowed forms", `Make sure that ${wanted}.`);
    return value;
  };
}

type Predicate = (value: unknown) => boolean;

const KNOWN = new Set(["oneOf", "anyOf", "not", "enum", "format", "pattern", "properties", "required"]);

function predicate(schema: Schema): Predicate {
  const unknown = Object.keys(schema).find((keyword) => !KNOWN.has(keyword));
  if (unknown !== undefined)
    throw new Error(`schema keyword ${unknown} is not supported inside alternatives`);
  const all: Predicate[] = [];
  if (schema.oneOf !== undefined) {
    const branches = schema.oneOf.map(predicate);
    all.push((value) => branches.filter((branch) => branch(value)).length === 1);
  }
  if (schema.anyOf !== undefined) {
    const branches = schema.anyOf.map(predicate);
    all.push((value) => branches.some((branch) => branch(value)));
  }
  if (schema.not !== undefined) {
    const inner = predicate(schema.not);
    all.push((value) => !inner(value));
  }
  if (schema.enum !== undefined) {
    const values = schema.enum;
    all.push((value) => values.some((allowed) => isDeepStrictEqual(allowed, value)));
  }
  if (schema.format !== undefined) {
    const { test } = stringFormat(schema.format);
    all.push((value) => typeof value !== "string" || test(value));
  }
  if (schema.pattern !== undefined) {
    const matches = matcher(schema.pattern);
    all.push((value) => typeof value !== "string" || matches(value));
  }
  for (const name of schema.required ?? [])
    all.push((value) => !isObject(value) || Object.hasOwn(value, name));
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const inner = predicate(property);
    all.push((value) => !isObject(value) || !Object.hasOwn(value, name) || inner(value[name]));
  }
  return (value) => all.every((one) => one(value));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function describe(schema: Schema): string {
  const parts: string[] = [];
  if (schema.oneOf !== undefined) parts.push(schema.oneOf.map(describe).join(", or "));
  if (schema.anyOf !== undefined) parts.push(schema.anyOf.map(describe).join(" or "));
  if (schema.not !== undefined) parts.push(`it is not so that ${describe(schema.not)}`);
  if (schema.enum !== undefined) parts.push(`is ${schema.enum.join(" or ")}`);
  if (schema.format !== undefined) parts.push(`is ${stringFormat(schema.format).meaning}`);
  if (schema.pattern !== undefined) parts.push(`matches ${schema.pattern}`);
  for (const name of schema.required ?? []) parts.push(`${name} is set`);
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const negated = property.not?.enum;
    parts.push(
      negated === undefined ? `${name} ${describe(property)}` : `${name} is not ${negated.join(" or ")}`,
    );
  }
  return parts.join(" and ");
}
