/**
 * Objects as an API server hands them out → the shapes of src/api, with nothing in memory that
 * Mergeway does not read.
 */
import { withChildGateways } from "../../api/admission/child-gateways.ts";
import { CONFIG_MAP, ENDPOINT_SLICE, SECRET, SERVICE } from "../../api/admission/core-schemas.ts";
import { knownKinds } from "../../api/admission/kinds.ts";
import { isObject } from "../../api/admission/schema/compile.ts";
import type { Schema } from "../../api/admission/schema/schema.ts";
import type { ObjectMeta } from "../../api/metadata.ts";
import { GROUP_OF_KIND, type Kind, type Resource } from "../../api/resource.ts";
import type { ApiObject } from "../../kubernetes/api-object.ts";
import {
  canClose,
  compilePolicy,
  compilePolicyStatus,
  isPolicy,
  lastReadable,
  type PolicyShaping,
} from "./policy-shape.ts";
import { compileRelaxed } from "./relaxed-schema.ts";

export type Shaped =
  | {
      readonly resource: Resource;
      /** What is wrong with the object, and what is made of it. */
      readonly warning?: string;
    }
  | { readonly problem: string };

/** `last`: what was made of the object before, if anything. */
type Shaper = (object: ApiObject, last?: Resource) => Shaped;

/** The shaper of a kind; lists and watches leave `apiVersion` and `kind` to the reader. */
export function shaperOf(kind: Kind, apiVersion: string): Shaper {
  const version = apiVersion.slice(apiVersion.indexOf("/") + 1);
  const { status, ...properties } = propertiesOf(schemaOf(kind, version));
  const shapeFields = fieldShaper(kind, properties);
  const shapeStatus = statusShaper(kind, status);
  return (object, last) => {
    const { apiVersion: _, kind: __, metadata, status: given, ...rest } = object;
    const checked = shapeStatus(given);
    if ("problem" in checked) return checked;
    const shaped = (fields: object, more: Partial<ObjectMeta> = {}): Resource =>
      ({
        apiVersion,
        kind,
        metadata: { ...shapeMetadata(kind, metadata), ...more },
        ...fields,
        ...checked,
      }) as unknown as Resource;
    const fields = shapeFields(rest);
    if ("value" in fields) {
      const { value, warning } = fields;
      return { resource: shaped(value), ...(warning === undefined ? {} : { warning }) };
    }
    const { problem, closed } = fields;
    const before = isPolicy(kind) ? lastReadable(object, last) : undefined;
    if (before !== undefined) {
      const warning = `the last version that could be read holds, ${problem}`;
      // The status must not say of a newer version what is true of the last one.
      const { generation } = last?.metadata ?? {};
      return { resource: shaped(before, generation === undefined ? {} : { generation }), warning };
    }
    if (closed === undefined) return { problem };
    return { resource: shaped(closed), warning: `what it guards is closed, ${problem}` };
  };
}

function fieldShaper(
  kind: Kind,
  properties: Readonly<Record<string, Schema>>,
): (fields: object) => PolicyShaping {
  if (canClose(kind)) return compilePolicy(properties["spec"] ?? {});
  const schema: Schema = { type: "object", properties, ...REQUIRED[kind] };
  const shape = compileRelaxed(schema, { hidesValues: kind === "Secret" });
  return (fields) => {
    const shaped = shape(fields);
    return "problem" in shaped ? shaped : { value: shaped.value as object };
  };
}

type StatusShaping = { readonly status?: unknown } | { readonly problem: string };

/**
 * Checked, but kept as it is: entries of other controllers are written back exactly as they were.
 */
function statusShaper(kind: Kind, schema: Schema | undefined): (given: unknown) => StatusShaping {
  if (schema === undefined) return () => ({});
  if (isPolicy(kind)) {
    const shapePolicyStatus = compilePolicyStatus(schema);
    return (given) => {
      const status = shapePolicyStatus(given);
      return status === undefined ? {} : { status };
    };
  }
  const shape = compileRelaxed(schema);
  return (given) => {
    if (given === undefined) return {};
    const checked = shape(given);
    return "problem" in checked ? { problem: `status.${checked.problem}` } : { status: given };
  };
}

function propertiesOf(schema: Schema): Readonly<Record<string, Schema>> {
  const { apiVersion: _, kind: __, metadata: ___, ...properties } = schema.properties ?? {};
  return properties;
}

const ANY_OBJECT: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

/** Nothing of a Namespace is read but its metadata. */
const OWN_SCHEMAS: Readonly<Partial<Record<Kind, Schema>>> = {
  Namespace: { type: "object", properties: {} },
  Service: withField(SERVICE, "status", ANY_OBJECT),
  EndpointSlice: ENDPOINT_SLICE,
  Secret: withoutField(SECRET, "stringData"),
  ConfigMap: CONFIG_MAP,
};

/** Without what the policies of mergeway.dev require: see `policy-shape.ts`. */
const REQUIRED: Readonly<Partial<Record<Kind, Pick<Schema, "required">>>> = {
  EndpointSlice: { required: ["addressType"] },
  ...Object.fromEntries(
    Object.entries(GROUP_OF_KIND)
      .filter(([, group]) => group.startsWith("gateway.networking."))
      .map(([kind]) => [kind, { required: ["spec"] }]),
  ),
};

/**
 * A version that we have no schema of gets that of the newest: what fits is used, what does not is
 * left out.
 */
function schemaOf(kind: Kind, version: string): Schema {
  const own = OWN_SCHEMAS[kind];
  if (own !== undefined) return own;
  const known = knownKinds("experimental").find((each) => each.kind === kind);
  const found = known?.served.find(({ name }) => name === version) ?? known?.served[0];
  if (found === undefined) throw new Error(`no schema of ${kind}`);
  return kind === "Gateway" ? withChildGateways(found.schema) : found.schema;
}

/** The addresses of a Gateway are read off the status of its Services. */
function withField(schema: Schema, name: string, field: Schema): Schema {
  return { ...schema, properties: { ...schema.properties, [name]: field } };
}

function withoutField(schema: Schema, name: string): Schema {
  const { [name]: _, ...properties } = schema.properties ?? {};
  return { ...schema, properties };
}

/** Annotations that somebody here reads. All others, however large, stay with the API server. */
const ANNOTATION_PREFIXES: readonly string[] = ["mergeway.dev/", "gateway.networking."];

function shapeMetadata(kind: Kind, metadata: ApiObject["metadata"]): ObjectMeta {
  const raw: Readonly<Record<string, unknown>> = { ...metadata };
  const annotations = isObject(raw["annotations"]) ? ownAnnotations(raw["annotations"]) : {};
  const labels = isObject(raw["labels"]) ? keptLabels(kind, raw["labels"] as Record<string, string>) : {};
  const text = (name: string): Record<string, string> => {
    const value = raw[name];
    return typeof value === "string" && value !== "" ? { [name]: value } : {};
  };
  return {
    name: metadata.name,
    ...text("namespace"),
    ...text("uid"),
    ...text("resourceVersion"),
    ...(typeof raw["generation"] === "number" ? { generation: raw["generation"] } : {}),
    ...text("creationTimestamp"),
    ...text("deletionTimestamp"),
    ...ownFinalizers(raw["finalizers"]),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
  };
}

/** Kinds whose labels nobody selects by; one tells whether we have made the object. */
const UNLABELLED: ReadonlySet<Kind> = new Set<Kind>(["Secret", "ConfigMap", "Service"]);
const MANAGED_BY = "app.kubernetes.io/managed-by";

function keptLabels(kind: Kind, labels: Readonly<Record<string, string>>): Record<string, string> {
  if (!UNLABELLED.has(kind)) return labels;
  return labels[MANAGED_BY] === "mergeway" ? { [MANAGED_BY]: "mergeway" } : {};
}

function ownFinalizers(finalizers: unknown): { readonly finalizers?: readonly string[] } {
  const own = (Array.isArray(finalizers) ? finalizers : []).filter((each) =>
    String(each).startsWith("mergeway.dev/"),
  );
  return own.length === 0 ? {} : { finalizers: own };
}

function ownAnnotations(annotations: Readonly<Record<string, unknown>>): Record<string, string> {
  const own = Object.entries(annotations).filter(
    ([name, value]) =>
      typeof value === "string" && ANNOTATION_PREFIXES.some((prefix) => name.startsWith(prefix)),
  );
  return Object.fromEntries(own) as Record<string, string>;
}
