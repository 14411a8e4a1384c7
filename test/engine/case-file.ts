/**
 * A golden case is one YAML file: a header, the resources, and after the line `--- # expected` what
 * the engine makes of them. The header says where the case comes from (`clause`), what it shows
 * (`why`), and whatever is not a resource: settings of the engine, facts, and objects that are
 * deleted in a second step.
 */

import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { admit } from "../../src/api/admission/admit.ts";
import type { Key } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import type { InfrastructureFact, ReplicaFact } from "../../src/engine/foundation/inputs.ts";
import type { ItemReport } from "../../src/plan/item-report.ts";

export interface CaseHeader {
  readonly case: string;
  readonly clause: string;
  readonly why: string;
  /** The documents leave this open: docs/reference/decided-corners.md names the case. */
  readonly corner?: true;
  readonly settings?: {
    readonly maxListenersPerGateway?: number;
    readonly features?: readonly string[];
    readonly dataPlanes?: Readonly<Record<string, readonly string[]>>;
    readonly portRange?: { readonly from: number; readonly to: number };
    readonly adoptUnknownClasses?: boolean;
    readonly assumeProgrammed?: boolean;
  };
  readonly facts?: {
    readonly infrastructure?: Readonly<Record<Key, InfrastructureFact>>;
    readonly reports?: readonly ItemReport[];
    readonly replicas?: Readonly<Record<Key, ReplicaFact>>;
  };
  /** Deleted in a step of its own after everything else has been applied. */
  readonly thenDelete?: readonly Key[];
}

export interface Case {
  readonly header: CaseHeader;
  readonly resources: readonly Resource[];
  readonly input: string;
  readonly expected: string | undefined;
}

const MARKER = "--- # expected\n";
const HEADER_FIELDS: readonly string[] = [
  "case",
  "clause",
  "why",
  "corner",
  "settings",
  "facts",
  "thenDelete",
];

export function readCase(path: string): Case {
  const text = readFileSync(path, "utf8");
  const [input = "", expected] = text.split(MARKER);
  const [header, ...objects] = parseAllDocuments(input).map((document) => {
    const error = document.errors[0];
    if (error !== undefined) throw error;
    return fillIn(document.toJS()) as Record<string, unknown>;
  });
  const unknown = Object.keys(header ?? {}).filter((field) => !HEADER_FIELDS.includes(field));
  if (header === undefined || unknown.length > 0)
    throw new Error(`${path}: header has ${unknown.join(", ")}`);
  return {
    header: deepFreeze(header) as unknown as CaseHeader,
    resources: objects.map((object) => admitted(object, path)),
    input,
    expected,
  };
}

export function caseText({ input }: Case, expected: string): string {
  return `${input}${MARKER}${expected}`;
}

function admitted(object: unknown, path: string): Resource {
  const { resource, errors } = admit(deepFreeze(object), { defaultNamespace: "default" });
  if (resource === undefined) throw new Error(`${path}: ${JSON.stringify(errors)}`);
  return deepFreeze(resource);
}

const PLACEHOLDER = /^\$\{(cert|key|ca):([a-z0-9.-]+)\}$/;

/** Certificates stand in the cases by name. */
function fillIn(value: unknown): unknown {
  if (typeof value === "string") {
    const [, what, name] = PLACEHOLDER.exec(value) ?? [];
    if (what === undefined || name === undefined) return value;
    const pem = certificateFile(`${name}.${what === "key" ? "key" : "crt"}`);
    return what === "ca" ? pem : Buffer.from(pem).toString("base64");
  }
  if (Array.isArray(value)) return value.map(fillIn);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, fillIn(field)]));
}

export function certificateFile(name: string): string {
  return readFileSync(new URL(`certificates/${name}`, import.meta.url), "utf8");
}

/** The engine must never edit what it is given. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const field of Object.values(value)) deepFreeze(field);
  }
  return value;
}
