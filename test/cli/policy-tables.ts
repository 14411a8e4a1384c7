/** The tables of docs/reference/policies.md, made from the CRDs, the engine and the data planes. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import {
  POLICY_SUPPORT,
  type PolicyDataPlane,
  type PolicyPart,
} from "../../src/dataplanes/policy-support.ts";
import { BACKEND_FIELDS, type BackendField } from "../../src/engine/policies/backend-fields.ts";
import { portsProblem } from "../../src/engine/policies/client-policies.ts";
import { TRAFFIC_FIELDS } from "../../src/engine/policies/traffic-policies.ts";
import { markdownTable } from "../../src/view/markdown-table.ts";
import { CRD_FOLDER } from "../../tools/cluster/chart.ts";

interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

type PolicyKind = "TrafficPolicy" | "ClientPolicy" | "BackendPolicy";
const PLURALS: Readonly<Record<PolicyKind, string>> = {
  TrafficPolicy: "trafficpolicies",
  ClientPolicy: "clientpolicies",
  BackendPolicy: "backendpolicies",
};

function specOf(kind: PolicyKind): Readonly<Record<string, Schema>> {
  const file = join(CRD_FOLDER, `mergeway.dev_${PLURALS[kind]}.yaml`);
  const crd = parse(readFileSync(file, "utf8")) as {
    spec: { versions: [{ schema: { openAPIV3Schema: { properties: { spec: Schema } } } }] };
  };
  return crd.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties ?? {};
}

/** Both sections have the same fields. */
export function sectionsOf(kind: PolicyKind): { readonly defaults: Schema; readonly overrides: Schema } {
  const { defaults, overrides } = specOf(kind);
  if (defaults === undefined || overrides === undefined) throw new Error(`${kind} has no sections`);
  return { defaults, overrides };
}

export function fieldTable(kind: PolicyKind): readonly string[] {
  const rows: string[][] = [];
  const collect = (schema: Schema, path: string): void => {
    for (const [name, child] of Object.entries(schema.properties ?? {})) {
      rows.push([`\`${path}${name}\``, valuesOf(child), child.description ?? ""]);
      collect(child, `${path}${name}.`);
      if (child.items !== undefined) collect(child.items, `${path}${name}[].`);
    }
  };
  collect(sectionsOf(kind).defaults, "");
  return markdownTable([["field", "values", "meaning"], ...rows]);
}

function valuesOf(schema: Schema): string {
  const values = schema.enum?.map((each) => `\`${each}\``).join(", ");
  const range = schema.minimum === undefined ? undefined : `${schema.minimum} to ${schema.maximum}`;
  const list = schema.maxItems === undefined ? undefined : `at most ${schema.maxItems}`;
  const shown = values ?? range ?? list ?? schema.type ?? "quantity";
  return schema.default === undefined ? shown : `${shown}; default \`${String(schema.default)}\``;
}

export const LEVELS = ["Gateway", "set or child", "listener", "route", "rule"] as const;
export type Level = (typeof LEVELS)[number];

const PART_OF_FIELD = {
  clientAddresses: "addresses",
  rateLimits: "rateLimit",
  apiKeys: "apiKeys",
  basicAuth: "basicAuth",
  jwt: "jwt",
  externalAuth: "externalAuth",
  requestBody: "requestBody",
  timeouts: "timeouts",
  httpsRedirect: "redirect",
  requestHeaders: "requestHeaders",
  responseHeaders: "responseHeaders",
  retries: "retry",
  cors: "cors",
  compression: "compression",
  directResponse: "respond",
} as const;

/** Fields as users write them, and the part of a plan that each becomes. */
export const FIELDS: readonly {
  readonly kind: PolicyKind;
  readonly field: string;
  readonly part: PolicyPart;
}[] = [
  ...TRAFFIC_FIELDS.map((field) => {
    const part = PART_OF_FIELD[field];
    return { kind: "TrafficPolicy" as const, field, part };
  }),
  { kind: "ClientPolicy", field: "clientAddress.proxyProtocol", part: "proxyProtocol" },
  { kind: "ClientPolicy", field: "clientAddress.forwardedFor", part: "forwardedFor" },
  { kind: "ClientPolicy", field: "headerLimits.maxSize", part: "headerBytes" },
  { kind: "ClientPolicy", field: "headerLimits.maxCount", part: "headerCount" },
  { kind: "ClientPolicy", field: "headerLimits.timeout", part: "headerTimeoutMs" },
  { kind: "ClientPolicy", field: "connections.idleTimeout", part: "idleMs" },
  { kind: "ClientPolicy", field: "connections.maxConcurrentStreams", part: "concurrentStreams" },
  { kind: "ClientPolicy", field: "tls.clientCertificates", part: "clientValidation" },
];

export function isServedAt(kind: PolicyKind, level: Level, field: string): boolean {
  if (level === "route" || level === "rule") {
    const kinds = specOf(kind)["targetRefs"]?.items?.properties?.["kind"]?.enum ?? [];
    return kinds.includes("HTTPRoute");
  }
  if (kind === "TrafficPolicy") return true;
  const role = level === "Gateway" ? "root" : "set";
  const [first = "", second = ""] = field.split(".");
  const overrides = { [first === "tls" ? second : first]: {} };
  const section = level === "listener" ? "http" : undefined;
  return portsProblem({ role } as never, section, { overrides } as never) === undefined;
}

const PLANES: readonly PolicyDataPlane[] = ["embedded", "Envoy", "tunnel"];

export function supportTable(): readonly string[] {
  return markdownTable([
    ["kind", "field", ...LEVELS, ...PLANES],
    ...FIELDS.map(({ kind, field, part }) => [
      kind,
      `\`${field}\``,
      ...LEVELS.map((level) => (isServedAt(kind, level, field) ? "yes" : "–")),
      ...PLANES.map((plane) => POLICY_SUPPORT[part][plane]),
    ]),
  ]);
}

export const BACKEND_LEVELS = ["Gateway", "Service", "port", "route", "rule"] as const;
export type BackendLevel = (typeof BACKEND_LEVELS)[number];

const PART_OF_BACKEND_FIELD = {
  loadBalancing: "balancing",
  sessionPersistence: "persistence",
  limits: "limits",
} as const satisfies Record<BackendField, PolicyPart>;

/** Every field of a BackendPolicy holds at every level of it; a test tries each. */
export function backendSupportTable(): readonly string[] {
  return markdownTable([
    ["field", ...BACKEND_LEVELS, ...PLANES],
    ...BACKEND_FIELDS.map((field) => [
      `\`${field}\``,
      ...BACKEND_LEVELS.map(() => "yes"),
      ...PLANES.map((plane) => POLICY_SUPPORT[PART_OF_BACKEND_FIELD[field]][plane]),
    ]),
  ]);
}

/** The page, its parts between `<!-- NAME: … -->` and `<!-- end of NAME -->` made anew. */
export function withTables(page: string, tables: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(tables).reduce((text, [name, lines]) => {
    const place = new RegExp(`(<!-- ${name}: [^>]*-->\n).*?(<!-- end of ${name} -->)`, "s");
    if (!place.test(text)) throw new Error(`the page has no place for ${name}`);
    return text.replace(
      place,
      (_all, begin: string, end: string) => `${begin}\n${lines.join("\n")}\n\n${end}`,
    );
  }, page);
}
