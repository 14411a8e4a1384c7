/**
 * Makes src/api/schemas/<channel>/<kind>.json from CustomResourceDefinitions:
 *
 *     node tools/generate-schemas.ts CHANNEL DIRECTORY [KIND...]
 *
 * CHANNEL is `standard` or `experimental` for CRDs of the Gateway API (config/crd/<channel> of its
 * module) and `mergeway` for our own (charts/mergeway/charts/crds/crds). Without KINDs, every kind
 * that Mergeway reads is taken. Descriptions are dropped; a version whose schema equals an earlier
 * version's names that version instead of repeating it.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

const KINDS = [
  "GatewayClass",
  "Gateway",
  "ListenerSet",
  "XListenerSet",
  "HTTPRoute",
  "GRPCRoute",
  "TLSRoute",
  "TCPRoute",
  "UDPRoute",
  "ReferenceGrant",
  "BackendTLSPolicy",
  "GatewayParameters",
  "TrafficPolicy",
  "ClientPolicy",
  "BackendPolicy",
  "TenantPolicy",
];
const CHANNELS: readonly (string | undefined)[] = ["standard", "experimental", "mergeway"];

export interface CustomResourceDefinition {
  readonly kind: string;
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly group: string;
    readonly scope: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly storage: boolean;
      readonly deprecated?: boolean;
      readonly schema: { readonly openAPIV3Schema: unknown };
    }[];
  };
}

/** `description` is a keyword in a schema but may also be the name of a property. */
function withoutDescriptions(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutDescriptions);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([keyword]) => keyword !== "description")
      .map(([keyword, value]) => [keyword, keywordValue(keyword, value)]),
  );
}

function keywordValue(keyword: string, value: unknown): unknown {
  if (keyword === "default" || keyword === "enum" || keyword === "x-kubernetes-validations") return value;
  if (keyword !== "properties") return withoutDescriptions(value);
  return Object.fromEntries(
    Object.entries(value as Record<string, unknown>).map(([name, schema]) => [
      name,
      withoutDescriptions(schema),
    ]),
  );
}

export function definitionOf(crd: CustomResourceDefinition): unknown {
  const seen = new Map<string, string>();
  return {
    group: crd.spec.group,
    kind: crd.spec.names.kind,
    plural: crd.spec.names.plural,
    scope: crd.spec.scope,
    bundle: crd.metadata.annotations?.["gateway.networking.k8s.io/bundle-version"] ?? "unknown",
    versions: crd.spec.versions.map(({ name, served, storage, deprecated, schema }) => {
      const stripped = withoutDescriptions(schema.openAPIV3Schema);
      const text = JSON.stringify(stripped);
      const same = seen.get(text);
      if (same === undefined) seen.set(text, name);
      const head = { name, served, storage, deprecated: deprecated === true };
      return same === undefined ? { ...head, schema: stripped } : { ...head, sameAs: same };
    }),
  };
}

function main([channel, directory, ...only]: readonly string[]): void {
  if (channel === undefined || !CHANNELS.includes(channel) || directory === undefined) {
    throw new Error(`usage: node tools/generate-schemas.ts ${CHANNELS.join("|")} DIRECTORY [KIND...]`);
  }
  const wanted = only.length > 0 ? only : KINDS;
  const target = join(import.meta.dirname, "..", "src", "api", "schemas", channel);
  mkdirSync(target, { recursive: true });
  for (const file of readdirSync(directory).sort()) {
    if (!file.endsWith(".yaml")) continue;
    for (const document of parseAllDocuments(readFileSync(join(directory, file), "utf8"))) {
      const crd = document.toJS() as CustomResourceDefinition;
      if (crd.kind !== "CustomResourceDefinition" || !wanted.includes(crd.spec.names.kind)) continue;
      const path = join(target, `${crd.spec.names.kind.toLowerCase()}.json`);
      writeFileSync(path, `${JSON.stringify(definitionOf(crd))}\n`);
      console.log(path);
    }
  }
}

if (import.meta.main) main(process.argv.slice(2));
