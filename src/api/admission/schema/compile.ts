import { compileAlternatives } from "./alternatives.ts";
import { Pass } from "./pass.ts";
import { compileValidations } from "./rules.ts";
import {
  type Check,
  compileBoolean,
  compileIntOrString,
  compileNumber,
  compileString,
  wrongType,
} from "./scalars.ts";
import type { Schema } from "./schema.ts";

/**
 * Turns a structural schema into one function, once. In a single walk it does what the API server
 * does in several: drops unknown fields, drops nulls of fields that are not nullable, fills in
 * defaults, checks types, values and list keys, and runs the CEL rules of a node when everything
 * below it has the right shape.
 */
export function compile(schema: Schema): Check {
  const unknown = Object.keys(schema).find((keyword) => !KEYWORDS.has(keyword));
  if (unknown !== undefined) throw new Error(`schema keyword ${unknown} is not supported`);
  return withRules(schema, compileShape(schema));
}

const KEYWORDS: ReadonlySet<string> = new Set([
  ...["type", "properties", "additionalProperties", "required", "minProperties", "maxProperties", "items"],
  ...["minItems", "maxItems", "enum", "pattern", "format", "minLength", "maxLength", "minimum", "maximum"],
  ...["default", "nullable", "anyOf", "oneOf", "not", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"],
  ...["x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"],
  "x-kubernetes-validations",
]);

function compileShape(schema: Schema): Check {
  if (schema["x-kubernetes-int-or-string"] === true) return compileIntOrString(schema);
  switch (schema.type) {
    case "object":
      return compileObject(schema);
    case "array":
      return compileArray(schema);
    case "string":
      return compileString(schema);
    case "integer":
    case "number":
      return compileNumber(schema);
    case "boolean":
      return compileBoolean();
    default:
      if (schema["x-kubernetes-preserve-unknown-fields"] === true) return (value) => value;
      throw new Error("a schema without type");
  }
}

function withRules(schema: Schema, shape: Check): Check {
  // The alternatives of such a field are its two types, which its shape knows.
  const alternatives = schema["x-kubernetes-int-or-string"] ? undefined : compileAlternatives(schema);
  const rules = compileValidations(schema);
  const nullable = schema.nullable === true;
  if (alternatives === undefined && rules === undefined && !nullable) return shape;
  return (value, pass) => {
    if (nullable && value === null) return null;
    const blockedBefore = pass.blocking;
    const admitted = shape(value, pass);
    if (pass.blocking > blockedBefore) return admitted;
    alternatives?.(admitted, pass);
    rules?.(admitted, pass);
    return admitted;
  };
}

interface Property {
  readonly check: Check;
  readonly nullable: boolean;
}

function compileObject(schema: Schema): Check {
  const names = Object.keys(schema.properties ?? {});
  const properties = new Map<string, Property>();
  const defaults: (readonly [string, unknown])[] = [];
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const check = compile(property);
    properties.set(name, { check, nullable: property.nullable === true });
    if (property.default !== undefined) defaults.push([name, admitDefault(property.default, check)]);
  }
  const rest = schema.additionalProperties;
  const others = rest === undefined ? undefined : { check: compile(rest), nullable: rest.nullable === true };
  const entryDefault =
    rest?.default === undefined || others === undefined
      ? undefined
      : admitDefault(rest.default, others.check);
  const preserve = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const required = schema.required ?? [];
  const { minProperties = 0, maxProperties = Number.POSITIVE_INFINITY } = schema;

  return (value, pass) => {
    if (!isObject(value)) return wrongType(value, "an object with fields", pass);
    const admitted: Record<string, unknown> = {};
    for (const key of Object.keys(value)) {
      const field = value[key];
      const property = properties.get(key) ?? others;
      if (property !== undefined) {
        if (field === undefined) continue;
        if (field === null && !property.nullable) {
          // Only entries of a map: what named fields default to is filled in below.
          if (property === others && entryDefault !== undefined) setOwn(admitted, key, entryDefault);
          continue;
        }
        if (others !== undefined && key in Object.prototype) pass.awkwardKeys = true;
        pass.path.push(key);
        setOwn(admitted, key, property.check(field, pass));
        pass.path.pop();
      } else if (preserve) setOwn(admitted, key, field);
      else pass.unknownField(key, names);
    }
    for (const [name, fallback] of defaults) if (!Object.hasOwn(admitted, name)) admitted[name] = fallback;
    for (const name of required) {
      if (!Object.hasOwn(admitted, name)) {
        pass.block("schema/required", `required field ${name} is missing`, `Add ${name}.`, [name]);
      }
    }
    if (minProperties > 0 || maxProperties < Number.POSITIVE_INFINITY) {
      const size = Object.keys(admitted).length;
      if (size > maxProperties) {
        pass.block("schema/max-properties", `${size} entries are too many`, `Keep at most ${maxProperties}.`);
      }
      if (size < minProperties) {
        pass.fail("schema/min-properties", `${size} entries are too few`, `Give at least ${minProperties}.`);
      }
    }
    return admitted;
  };
}

function compileArray(schema: Schema): Check {
  if (schema.items === undefined) throw new Error("an array schema without items");
  const check = compile(schema.items);
  const itemDefault = schema.items.default;
  const nullable = schema.items.nullable === true;
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema;
  const unique = compileUniqueness(schema);
  return (value, pass) => {
    if (!Array.isArray(value)) return wrongType(value, "a list", pass);
    if (value.length > maxItems) {
      const remedy = maxItems === 1 ? "Keep only one." : `Keep at most ${maxItems}.`;
      pass.block("schema/max-items", `${value.length} entries are too many`, remedy);
    }
    if (value.length < minItems) {
      const remedy = minItems === 1 ? "Add an entry, or leave the field out." : `Give at least ${minItems}.`;
      pass.fail("schema/min-items", `${value.length} entries are too few`, remedy);
    }
    const admitted: unknown[] = new Array(value.length);
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index];
      pass.path.push(index);
      admitted[index] =
        item === null && !nullable && itemDefault !== undefined ? itemDefault : check(item, pass);
      pass.path.pop();
    }
    unique?.(admitted, pass);
    return admitted;
  };
}

/**
 * List maps have one entry per key, sets one per value. The API server reports the second of two.
 */
function compileUniqueness(schema: Schema): ((items: readonly unknown[], pass: Pass) => void) | undefined {
  const type = schema["x-kubernetes-list-type"];
  if (type !== "map" && type !== "set") return undefined;
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const identity = (item: unknown): string =>
    type === "map" && isObject(item)
      ? JSON.stringify(keys.map((key) => scalar(item[key])))
      : JSON.stringify(scalar(item));
  const what = type === "map" ? keys.join(" and ") : "value";
  return (items, pass) => {
    if (items.length < 2) return;
    const first = new Map<string, number>();
    for (const [index, item] of items.entries()) {
      const id = identity(item);
      const earlier = first.get(id);
      if (earlier === undefined) first.set(id, index);
      else {
        pass.fail(
          "schema/duplicate",
          `has the same ${what} as entry ${earlier}`,
          `Give it another ${what}.`,
          [index],
        );
      }
    }
  };
}

/** Keys of list maps are scalars; anything else is already a type error and must not be walked. */
function scalar(value: unknown): unknown {
  return typeof value === "object" && value !== null ? "" : typeof value === "bigint" ? String(value) : value;
}

/** Defaults are shared by all objects that take them, hence frozen. */
function admitDefault(value: unknown, check: Check): unknown {
  const pass = new Pass(true);
  const admitted = check(structuredClone(value), pass);
  if (pass.errors.length > 0)
    throw new Error(`a default breaks its own schema: ${JSON.stringify(pass.errors)}`);
  return deepFreeze(admitted);
}

function deepFreeze(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const field of Object.values(value)) deepFreeze(field);
  return Object.freeze(value);
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Assignment to `__proto__` would set the prototype instead of a field. */
function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== "__proto__") target[key] = value;
  else Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}
