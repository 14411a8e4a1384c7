import { asMaps, compileRule, isTransitionRule } from "./cel.ts";
import { remedyFor } from "./remedies.ts";
import type { Check } from "./scalars.ts";
import type { Schema } from "./schema.ts";

/**
 * The CEL rules of one schema node, run on the value after it was defaulted and its children were
 * checked.
 */
export function compileValidations(schema: Schema): Check | undefined {
  const rules = (schema["x-kubernetes-validations"] ?? [])
    .filter((rule) => !isTransitionRule(rule))
    .map((rule) => ({ ...rule, run: compileRule(rule), below: pathBelow(rule.fieldPath) }));
  if (rules.length === 0) return undefined;
  const asksForType = schema["x-kubernetes-int-or-string"] === true;
  return (value, pass) => {
    const plain = asksForType && typeof value === "number" ? BigInt(value) : value;
    const self = pass.awkwardKeys ? asMaps(plain) : plain;
    for (const { run, message, rule, reason, below } of rules) {
      const verdict = run(self);
      if (verdict === "holds") continue;
      const id = reason === "FieldValueRequired" ? "schema/required" : "cel";
      pass.fail(id, message, remedyFor(message, rule), below);
    }
    return value;
  };
}

/** `.listeners` → ["listeners"]; the schemas here use no other form. */
function pathBelow(fieldPath: string | undefined): readonly string[] {
  return fieldPath === undefined ? [] : fieldPath.split(".").slice(1);
}
