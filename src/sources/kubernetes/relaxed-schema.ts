/**
 * Objects in a cluster were admitted by the CRDs installed there, which may be older or newer than
 * the schemas we have. What our code relies on is the shape: types, required fields, enumerations
 * and defaults. Limits, patterns and rules are the API server's business; a newer one may have
 * relaxed them, and an object that was stored before they existed is still served.
 */
import { compile } from "../../api/admission/schema/compile.ts";
import type { FieldError } from "../../api/admission/schema/field-error.ts";
import { Pass } from "../../api/admission/schema/pass.ts";
import type { Schema } from "../../api/admission/schema/schema.ts";

export type Shaping = { readonly value: unknown } | { readonly problem: string };

export interface Relaxation {
  /** Of an object that holds secrets. */
  readonly hidesValues?: boolean;
  /** Enumerations are not checked: whoever reads the value knows what to do with a new one. */
  readonly anyValue?: boolean;
}

/**
 * A function that copies what the schema knows of a value, with defaults, or says what does not
 * fit.
 */
export function compileRelaxed(
  schema: Schema,
  { hidesValues = false, anyValue = false }: Relaxation = {},
): (value: unknown) => Shaping {
  const check = compile(relax(schema, anyValue));
  return (value) => {
    const pass = new QuietPass();
    pass.hidesValues = hidesValues;
    const shaped = check(value, pass);
    const first = pass.errors[0];
    return first === undefined ? { value: shaped } : { problem: describe(first) };
  };
}

/** Unknown fields are dropped without a word: they are those of a newer version. */
class QuietPass extends Pass {
  constructor() {
    super(false);
  }

  override unknownField(): void {}
}

function relax(schema: Schema, anyValue: boolean): Schema {
  const { type, properties, additionalProperties, items, required, nullable } = schema;
  const open = schema["x-kubernetes-preserve-unknown-fields"] === true && properties === undefined;
  return {
    ...(type === undefined ? {} : { type }),
    ...(properties === undefined ? {} : { properties: relaxAll(properties, anyValue) }),
    ...(additionalProperties === undefined
      ? {}
      : { additionalProperties: relax(additionalProperties, anyValue) }),
    ...(items === undefined ? {} : { items: relax(items, anyValue) }),
    ...(required === undefined ? {} : { required }),
    ...(schema.enum === undefined || anyValue ? {} : { enum: schema.enum }),
    ...(schema.default === undefined ? {} : { default: schema.default }),
    ...(nullable === undefined ? {} : { nullable }),
    ...(schema["x-kubernetes-int-or-string"] ? { "x-kubernetes-int-or-string": true } : {}),
    ...(open ? { "x-kubernetes-preserve-unknown-fields": true } : {}),
  };
}

function relaxAll(properties: Readonly<Record<string, Schema>>, anyValue: boolean): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, relax(schema, anyValue)]),
  );
}

function describe({ path, message }: FieldError): string {
  return `${path.join(".")}: ${message}`;
}
