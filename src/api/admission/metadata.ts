import { Buffer } from "node:buffer";
import { compile, isObject } from "./schema/compile.ts";
import { type FieldPath, show } from "./schema/field-error.ts";
import { isDnsLabel, isDnsSubdomain, isLabelValue, isQualifiedName } from "./schema/names.ts";
import type { Pass } from "./schema/pass.ts";
import type { Schema } from "./schema/schema.ts";

const STRING: Schema = { type: "string" };
/** Go reads null in a map of texts as an empty one. */
const STRINGS: Schema = { type: "object", additionalProperties: { ...STRING, default: "" } };
const TIME: Schema = { type: "string", format: "date-time" };
const ANYTHING: Schema = { "x-kubernetes-preserve-unknown-fields": true };

const SCHEMA: Schema = {
  type: "object",
  properties: {
    name: STRING,
    generateName: STRING,
    namespace: STRING,
    labels: STRINGS,
    annotations: STRINGS,
    generation: { type: "integer", format: "int64" },
    uid: STRING,
    resourceVersion: STRING,
    creationTimestamp: TIME,
    deletionTimestamp: TIME,
    deletionGracePeriodSeconds: { type: "integer", format: "int64" },
    finalizers: { type: "array", items: STRING },
    ownerReferences: { type: "array", items: ANYTHING },
    managedFields: { type: "array", items: ANYTHING },
    selfLink: STRING,
  },
};

const shape = compile(SCHEMA);

const MAX_ANNOTATION_BYTES = 256 * 1024;

export interface MetadataRules {
  readonly namespaced: boolean;
  readonly name: "subdomain" | "label";
  /** Given to namespaced objects that name none. */
  readonly namespace: string | undefined;
}

/**
 * Metadata as the API server checks it for every object. Book-keeping that Mergeway never reads is
 * dropped.
 */
export function admitMetadata(
  value: unknown,
  rules: MetadataRules,
  pass: Pass,
): Readonly<Record<string, unknown>> {
  pass.path.push("metadata");
  const before = pass.blocking;
  const admitted = shape(value, pass);
  if (isObject(admitted) && pass.blocking === before) {
    checkName(admitted["name"], rules, pass);
    checkLabels(admitted["labels"], pass, ["labels"]);
    checkAnnotations(admitted["annotations"], pass);
    const result = withNamespace(admitted, rules, pass);
    pass.path.pop();
    return result;
  }
  pass.path.pop();
  return {};
}

function checkName(name: unknown, rules: MetadataRules, pass: Pass): void {
  if (typeof name !== "string" || name === "") {
    pass.block("schema/required", "required field name is missing", "Add a name.", ["name"]);
    return;
  }
  const [right, wanted] =
    rules.name === "label"
      ? [
          isDnsLabel(name),
          "at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit",
        ]
      : [isDnsSubdomain(name), "at most 253 lower-case letters, digits, '-' and '.', such as team-a.web"];
  if (!right) pass.fail("metadata/name", `${show(name)} is no valid name`, `Use ${wanted}.`, ["name"]);
}

function withNamespace(
  { managedFields: _, selfLink: __, namespace, ...rest }: Readonly<Record<string, unknown>>,
  rules: MetadataRules,
  pass: Pass,
): Readonly<Record<string, unknown>> {
  const given = typeof namespace === "string" && namespace !== "" ? namespace : undefined;
  if (!rules.namespaced) {
    if (given !== undefined) {
      pass.warn("metadata/namespace", "objects of this kind have no namespace", "Remove namespace.", [
        "namespace",
      ]);
    }
    return rest;
  }
  const chosen = given ?? rules.namespace;
  if (chosen === undefined) return rest;
  if (!isDnsLabel(chosen)) {
    const remedy = "Use at most 63 lower-case letters, digits and '-'.";
    pass.fail("metadata/namespace", `${show(chosen)} is no valid namespace`, remedy, ["namespace"]);
  }
  return { ...rest, namespace: chosen };
}

const QUALIFIED =
  "Use a name of letters, digits, '-', '_' and '.', with a domain before it if you like: example.com/name.";

/** Labels, or a selector of labels: the same rules. */
export function checkLabels(labels: unknown, pass: Pass, at: FieldPath): void {
  if (!isObject(labels)) return;
  for (const [key, value] of Object.entries(labels)) {
    const below = [...at, key];
    if (!isQualifiedName(key))
      pass.fail("metadata/label-key", `${show(key)} is no valid label`, QUALIFIED, below);
    if (typeof value === "string" && !isLabelValue(value)) {
      const remedy =
        "Use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit.";
      pass.fail("metadata/label-value", `${show(value)} is no valid label value`, remedy, below);
    }
  }
}

function checkAnnotations(annotations: unknown, pass: Pass): void {
  if (!isObject(annotations)) return;
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    // Keys are compared in lower case: annotations are laxer than labels in this one point.
    if (!isQualifiedName(key.toLowerCase())) {
      pass.fail("metadata/annotation-key", `${show(key)} is no valid annotation`, QUALIFIED, [
        "annotations",
        key,
      ]);
    }
    bytes += Buffer.byteLength(key) + (typeof value === "string" ? Buffer.byteLength(value) : 0);
  }
  if (bytes > MAX_ANNOTATION_BYTES) {
    const message = `annotations take ${bytes} bytes, more than ${MAX_ANNOTATION_BYTES}`;
    pass.block("metadata/annotations-size", message, "Move large data into a ConfigMap.", ["annotations"]);
  }
}
