import type { Resource } from "../resource.ts";
import { withChildGateways } from "./child-gateways.ts";
import { isForeign } from "./foreign-kinds.ts";
import { type Channel, type KnownKind, type KnownVersion, knownKinds } from "./kinds.ts";
import { admitMetadata } from "./metadata.ts";
import { compile, isObject } from "./schema/compile.ts";
import { type FieldError, show } from "./schema/field-error.ts";
import { Pass } from "./schema/pass.ts";
import type { Check } from "./schema/scalars.ts";
import type { Schema } from "./schema/schema.ts";

/**
 * Reads one object as an API server would on create: schema, defaults, unknown fields, list keys,
 * CEL rules, metadata. Every error at once; nothing in the input makes it throw.
 */

export interface AdmissionResult {
  /**
   * Present when there are no errors: defaulted, unknown fields dropped, in the kind's canonical
   * version.
   */
  readonly resource?: Resource;
  /** True for objects of kinds that Mergeway does not read. */
  readonly ignored?: true;
  readonly errors: readonly FieldError[];
  readonly warnings: readonly FieldError[];
}

export interface AdmissionOptions {
  /** Default `error`, as `kubectl apply` does. */
  readonly unknownFields?: "error" | "warn";
  /** Default `experimental`. */
  readonly channel?: Channel;
  /** Accept the Gateway fields of the provisional GEP-1713; default true. */
  readonly provisionalChildGateways?: boolean;
  /** The namespace of namespaced objects that name none; without it they keep none. */
  readonly defaultNamespace?: string;
}

export function admit(object: unknown, options: AdmissionOptions = {}): AdmissionResult {
  const { unknownFields = "error", channel = "experimental", provisionalChildGateways = true } = options;
  const pass = new Pass(unknownFields === "error");
  const registry = registryOf(channel, provisionalChildGateways);
  const identity = readIdentity(object, pass);
  if (identity === undefined) return verdict(pass);
  const entry = registry.entries.get(`${identity.apiVersion} ${identity.kind}`);
  if (entry === undefined) {
    const foreign = isForeign(identity.apiVersion, identity.kind, registry.kinds, pass);
    return foreign ? { ignored: true, errors: [], warnings: [] } : verdict(pass);
  }
  const { kind, version, admitFields, admitStatus } = entry();
  pass.hidesValues = kind.kind === "Secret";
  if (version.deprecated) warnDeprecated(kind, version, pass);
  const metadata = admitMetadata(
    identity.object["metadata"] ?? {},
    { namespaced: kind.namespaced, name: kind.nameRule, namespace: options.defaultNamespace },
    pass,
  );
  const fields = admitFields(identity.object, pass);
  const status = admitStatus?.(identity.object["status"], pass);
  if (pass.blocking > 0 && !isObject(fields)) return verdict(pass);
  const groupVersion = kind.group === "" ? kind.canonical : `${kind.group}/${kind.canonical}`;
  const whole = {
    apiVersion: groupVersion,
    kind: kind.kind,
    metadata,
    ...(fields as object),
    ...(status === undefined ? {} : { status }),
  };
  const finished = kind.finish !== undefined && pass.blocking === 0 ? kind.finish(whole, pass) : whole;
  return verdict(pass, finished);
}

/** The one place where a checked object becomes a typed one. */
function verdict(pass: Pass, object?: Readonly<Record<string, unknown>>): AdmissionResult {
  const { errors, warnings } = pass;
  if (errors.length > 0 || object === undefined) return { errors, warnings };
  return { resource: object as unknown as Resource, errors, warnings };
}

interface Identity {
  readonly object: Readonly<Record<string, unknown>>;
  readonly apiVersion: string;
  readonly kind: string;
}

function readIdentity(object: unknown, pass: Pass): Identity | undefined {
  if (!isObject(object)) {
    pass.block(
      "schema/type",
      // Not quoted: it may have been meant as the content of a Secret.
      `${typeof object === "object" ? show(object) : `a ${typeof object}`} is no Kubernetes object`,
      "Write an object with apiVersion, kind and metadata.",
    );
    return undefined;
  }
  const { apiVersion, kind } = object;
  requireText("apiVersion", apiVersion, "such as gateway.networking.k8s.io/v1", pass);
  requireText("kind", kind, "such as HTTPRoute", pass);
  if (typeof apiVersion !== "string" || typeof kind !== "string" || pass.errors.length > 0) return undefined;
  return { object, apiVersion, kind };
}

function requireText(name: string, value: unknown, example: string, pass: Pass): void {
  if (value === undefined || value === null || value === "") {
    pass.block("schema/required", `required field ${name} is missing`, `Add ${name}, ${example}.`, [name]);
  } else if (typeof value !== "string") {
    pass.block("schema/type", `${show(value)} is not a string`, `Write ${name}, ${example}.`, [name]);
  }
}

function warnDeprecated(kind: KnownKind, version: KnownVersion, pass: Pass): void {
  const remedy = `Use apiVersion: ${kind.group}/${kind.canonical}.`;
  pass.warn("deprecated-version", `${kind.kind} ${version.name} is deprecated`, remedy, ["apiVersion"]);
}

interface Entry {
  readonly kind: KnownKind;
  readonly version: KnownVersion;
  readonly admitFields: Check;
  readonly admitStatus?: Check;
}

interface Registry {
  readonly kinds: readonly KnownKind[];
  readonly entries: ReadonlyMap<string, () => Entry>;
}

const registries = new Map<string, Registry>();

/** Schemas are compiled when the first object of their version arrives, and kept. */
function registryOf(channel: Channel, childGateways: boolean): Registry {
  const id = `${channel} ${childGateways}`;
  const open = registries.get(id);
  if (open !== undefined) return open;
  const kinds = knownKinds(channel);
  const entries = new Map<string, () => Entry>();
  for (const kind of kinds) {
    for (const version of kind.served) {
      const groupVersion = kind.group === "" ? version.name : `${kind.group}/${version.name}`;
      let entry: Entry | undefined;
      entries.set(`${groupVersion} ${kind.kind}`, () => {
        entry ??= compileEntry(kind, version, childGateways);
        return entry;
      });
    }
  }
  const registry = { kinds, entries };
  registries.set(id, registry);
  return registry;
}

function compileEntry(kind: KnownKind, version: KnownVersion, childGateways: boolean): Entry {
  const whole = kind.kind === "Gateway" && childGateways ? withChildGateways(version.schema) : version.schema;
  const { apiVersion: _, kind: __, metadata: ___, status, ...properties } = whole.properties ?? {};
  const fields = compile({ ...whole, properties });
  return {
    kind,
    version,
    admitFields: (value, pass) => fields(withoutCommonFields(value, status !== undefined), pass),
    ...(status && { admitStatus: compileStatus(status) }),
  };
}

function withoutCommonFields(value: unknown, hasStatus: boolean): unknown {
  const { apiVersion: _, kind: __, metadata: ___, ...fields } = value as Readonly<Record<string, unknown>>;
  if (!hasStatus) return fields;
  const { status: ____, ...rest } = fields;
  return rest;
}

/**
 * The API server drops the status of a new object before it validates. Here a valid one is kept,
 * since in files it may carry what was assigned earlier; an invalid one is dropped with a warning,
 * never a reason to refuse.
 */
function compileStatus(status: Schema): Check {
  const check = compile({ type: "object", properties: { status } });
  return (value, pass) => {
    const trial = new Pass(pass.strict);
    const admitted = check({ status: value }, trial) as Readonly<Record<string, unknown>>;
    if (trial.errors.length === 0) return admitted["status"];
    for (const { path, rule, message } of trial.errors) {
      pass.warn(
        rule,
        `${message}; the status in this file is not used`,
        "Remove status, or correct it.",
        path,
      );
    }
    return (check({}, new Pass(true)) as Readonly<Record<string, unknown>>)["status"];
  };
}
