import type { Schema } from "./schema/schema.ts";

/**
 * The two Gateway fields of the provisional GEP-1713 that no released CRD has:
 * `infrastructure.attachTo` and `infrastructure.allowedChildren`, and with the latter the right to
 * have no listeners of one's own. Laid over the released schema, so that without it admission is
 * exactly the API server's.
 */
export function withChildGateways(gateway: Schema): Schema {
  const spec = property(gateway, "spec");
  const listeners = property(spec, "listeners");
  const infrastructure = property(spec, "infrastructure");
  const { minItems: _, ...listenersMayBeEmpty } = listeners;
  return replaceProperty(gateway, "spec", {
    ...spec,
    required: (spec.required ?? []).filter((name) => name !== "listeners"),
    properties: {
      ...spec.properties,
      listeners: listenersMayBeEmpty,
      infrastructure: {
        ...infrastructure,
        properties: {
          ...infrastructure.properties,
          attachTo: attachTo(infrastructure),
          allowedChildren: ALLOWED_CHILDREN,
        },
      },
    },
    "x-kubernetes-validations": [
      ...(spec["x-kubernetes-validations"] ?? []),
      {
        rule: "(has(self.listeners) && size(self.listeners) > 0) || (has(self.infrastructure) && has(self.infrastructure.allowedChildren))",
        message: "listeners must not be empty",
        fieldPath: ".listeners",
        reason: "FieldValueRequired",
      },
    ],
  });
}

/**
 * A LocalObjectReference as parametersRef has it; a namespace is tolerated for parents elsewhere.
 */
function attachTo(infrastructure: Schema): Schema {
  const reference = property(infrastructure, "parametersRef");
  return {
    ...reference,
    properties: {
      ...reference.properties,
      namespace: { type: "string", minLength: 1, maxLength: 63, pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" },
    },
  };
}

const ALLOWED_CHILDREN: Schema = {
  type: "object",
  properties: {
    namespaces: {
      type: "object",
      default: { from: "Same" },
      properties: {
        from: { type: "string", enum: ["All", "Selector", "Same"], default: "Same" },
        selector: {
          type: "object",
          properties: {
            matchLabels: { type: "object", additionalProperties: { type: "string" } },
            matchExpressions: {
              type: "array",
              items: {
                type: "object",
                required: ["key", "operator"],
                properties: {
                  key: { type: "string" },
                  operator: { type: "string" },
                  values: { type: "array", items: { type: "string" } },
                },
              },
            },
          },
        },
      },
    },
  },
};

function property(schema: Schema, name: string): Schema {
  const found = schema.properties?.[name];
  if (found === undefined) throw new Error(`the Gateway schema has no ${name}`);
  return found;
}

function replaceProperty(schema: Schema, name: string, value: Schema): Schema {
  return { ...schema, properties: { ...schema.properties, [name]: value } };
}
