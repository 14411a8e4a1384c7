/**
 * Policies that guard something. One that is left out because it cannot be read leaves open what it
 * guards, so that of these kinds as much is taken as can be:
 *
 * - A value that we do not know is taken as it is. It is one of a newer CRD, and the engine reads
 *   it as the strictest.
 * - Of the targets those count that can be read.
 * - Settings that cannot be read are `unreadable`: nobody knows what they were to say, and the
 *   engine closes what they guard.
 * - Entries of the status that do not fit are left out. What others write there is not ours to
 *   judge.
 */
import { isObject } from "../../api/admission/schema/compile.ts";
import type { Schema } from "../../api/admission/schema/schema.ts";
import type { Kind, Resource } from "../../api/resource.ts";
import type { ApiObject } from "../../kubernetes/api-object.ts";
import { compileRelaxed, type Shaping } from "./relaxed-schema.ts";

const CLOSING: readonly Kind[] = ["TrafficPolicy", "ClientPolicy", "BackendPolicy", "TenantPolicy"];

/** Kinds whose settings the engine can close on. */
export function canClose(kind: Kind): boolean {
  return CLOSING.includes(kind);
}

/** Kinds of which the last version that could be read holds, and any status is taken. */
export function isPolicy(kind: Kind): boolean {
  return canClose(kind) || kind === "BackendTLSPolicy";
}

export type PolicyShaping =
  | { readonly value: object; readonly warning?: string }
  | {
      readonly problem: string;
      /** The fields that close what the policy guards; absent when its targets cannot be read. */
      readonly closed?: object;
    };

/** For the fields of an object beside its metadata and status. */
export function compilePolicy(spec: Schema): (fields: object) => PolicyShaping {
  const { targetRefs, ...settings } = spec.properties ?? {};
  if (targetRefs?.items === undefined) throw new Error("a policy without targetRefs");
  const required = spec.required?.filter((name) => name !== "targetRefs") ?? [];
  const shapeTarget = compileRelaxed(targetRefs.items);
  const shapeSettings = compileRelaxed(
    { type: "object", properties: settings, required },
    { anyValue: true },
  );
  const defaults = settingsIn(shapeSettings({}));
  return (fields) => {
    const written = "spec" in fields ? fields.spec : undefined;
    if (!isObject(written)) return { problem: "required field spec is missing, or is no object" };
    const { targetRefs: refs, ...rest } = written;
    if (!Array.isArray(refs)) return { problem: "spec.targetRefs is no list" };
    const shaped = refs.map(shapeTarget);
    const targets = shaped.flatMap((each) => ("value" in each ? [each.value] : []));
    const wrong = shaped.find((each) => "problem" in each);
    if (wrong !== undefined && targets.length === 0) return { problem: `spec.targetRefs: ${wrong.problem}` };
    const read = shapeSettings(rest);
    if ("problem" in read) {
      const problem = `spec.${read.problem}`;
      // A policy that only audits refuses nothing, whatever else it says.
      const audit = written["enforcement"] === "Audit" ? { enforcement: "Audit" } : {};
      const closed = { ...defaults, ...audit, targetRefs: targets, unreadable: problem };
      return { problem, closed: { spec: closed } };
    }
    const value = { spec: { ...settingsIn(read), targetRefs: targets } };
    if (wrong === undefined) return { value };
    return { value, warning: `a target is left out, spec.targetRefs: ${wrong.problem}` };
  };
}

function settingsIn(shaping: Shaping): object {
  return "value" in shaping && isObject(shaping.value) ? shaping.value : {};
}

/** Undefined when the last version is none that could be read, or is that of another object. */
export function lastReadable(object: ApiObject, last: Resource | undefined): { spec: object } | undefined {
  if (last === undefined || last.metadata.uid !== object.metadata.uid) return undefined;
  if (!("spec" in last) || last.spec === undefined || "unreadable" in last.spec) return undefined;
  return { spec: last.spec };
}

/** For the status of a policy: all of it, or the entries that fit. */
export function compilePolicyStatus(status: Schema): (given: unknown) => object | undefined {
  const entry = status.properties?.["ancestors"]?.items;
  if (entry === undefined) throw new Error("a policy's status without ancestors");
  const shapeStatus = compileRelaxed(status);
  const shapeEntry = compileRelaxed(entry);
  return (given) => {
    if (!isObject(given)) return undefined;
    if ("value" in shapeStatus(given)) return given;
    const entries = given["ancestors"];
    if (!Array.isArray(entries)) return undefined;
    return { ancestors: entries.filter((each) => "value" in shapeEntry(each)) };
  };
}
