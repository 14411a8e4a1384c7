import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { GatewayParametersSpec } from "../../src/api/gateway-parameters.ts";
import { CRD_FILE, parseManifests, readText } from "../../tools/cluster/chart.ts";

interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly "x-kubernetes-validations"?: readonly { readonly message: string }[];
}

/** First cells of all table rows whose first cell is code, with the cells after it. */
function rowsOf(page: string): ReadonlyMap<string, readonly string[]> {
  const rows = page.split("\n").flatMap((line) => {
    const [, name = "", rest = ""] = /^\| `([^`]+)` \| (.*) \|$/.exec(line) ?? [];
    return name === "" ? [] : [[name, rest.split(" | ")] as const];
  });
  expect(new Set(rows.map(([name]) => name)).size, "no row twice").toBe(rows.length);
  return new Map(rows);
}

function section(page: string, title: string): string {
  const [, body = ""] = page.split(`## ${title}\n`);
  return body.split("\n## ")[0] ?? "";
}

describe("docs/reference/helm-values.md", () => {
  const schema = JSON.parse(readText("charts/mergeway/values.schema.json")) as Schema;
  const values: unknown = parse(readText("charts/mergeway/values.yaml"));
  const rows = rowsOf(readText("docs/reference/helm-values.md").split("## Refused combinations")[0] ?? "");
  /** Objects whose content is Kubernetes' own are one value; so is what Helm puts there itself. */
  const leaves = ([name, child]: [string, Schema], path: string): readonly string[] => {
    const at = `${path}${name}`;
    if (at === "crds.global") return [];
    if (child.properties === undefined || at === "resources") return [at];
    return Object.entries(child.properties).flatMap((entry) => leaves(entry, `${at}.`));
  };
  const paths = Object.entries(schema.properties ?? {}).flatMap((entry) => leaves(entry, ""));
  const defaultOf = (path: string): unknown =>
    path
      .split(".")
      .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], values);

  test("describes every value, and no other", () => {
    expect([...rows.keys()].sort()).toEqual([...paths].sort());
  });

  test.each(paths)("%s is shown with its default", (path) => {
    const value = defaultOf(path);
    const shown = rows.get(path)?.[0] ?? "";
    expect(shown === "–" ? undefined : JSON.parse(shown.replaceAll("`", ""))).toEqual(value);
  });

  test("is as strict as the schema, which knows every default and nothing else", () => {
    const loose: string[] = [];
    const visit = (node: Schema, path: string, given: unknown): void => {
      if (node.properties === undefined) return;
      if (node.additionalProperties !== false && path !== "global") loose.push(path);
      expect(Object.keys(node.properties), path).toEqual(expect.arrayContaining(Object.keys(given ?? {})));
      for (const [name, child] of Object.entries(node.properties)) {
        expect(child.description, `${path}.${name}`).toBeTruthy();
        visit(
          child,
          path === "" ? name : `${path}.${name}`,
          (given as Record<string, unknown> | undefined)?.[name],
        );
      }
    };
    visit(schema, "", values);
    expect(loose).toEqual([]);
  });
});

/** Every field, so that the compiler asks for a new one here. */
type Complete<T> = T extends readonly (infer Item)[]
  ? readonly Complete<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]-?: Complete<T[Key]> }
    : T;

const EVERY_FIELD: Complete<GatewayParametersSpec> = {
  dataPlane: "embedded",
  replicas: 2,
  image: "mergeway:1",
  workers: 2,
  accessLog: {
    stdout: { text: "%status%" },
    otlp: {
      endpoint: "https://collector.observability.svc:4317",
      protocol: "GRPC",
      certificateAuthority: "-----BEGIN CERTIFICATE-----",
    },
  },
  tenantLimits: { connections: 100, requests: 50, backendConnections: 20, bufferedBytes: 1_048_576 },
  tracing: {
    otlp: {
      endpoint: "https://collector.observability.svc:4318",
      protocol: "HTTP",
      certificateAuthority: "-----BEGIN CERTIFICATE-----",
    },
    samplingPercentage: 10,
    clientContext: "Ignore",
    overrides: [{ kind: "HTTPRoute", namespace: "team", name: "shop", samplingPercentage: 50 }],
  },
  envoy: {
    image: "envoy:1",
    agentResources: { requests: { cpu: "1" }, limits: { memory: "1Gi" } },
  },
  tunnel: {
    accountId: "0".repeat(32),
    credentialsSecretRef: { name: "cloudflare", key: "api-token" },
    name: "edge",
    tunnelId: "00000000-0000-0000-0000-000000000000",
    tunnelTokenSecretRef: { name: "tunnel", key: "tunnel-token" },
    deletionPolicy: "Delete",
    protocol: "http2",
    connections: 4,
    image: "cloudflared:1",
    resources: { requests: { cpu: "1" }, limits: { memory: "1Gi" } },
  },
  resources: { requests: { cpu: "1" }, limits: { memory: "1Gi" } },
  service: {
    type: "LoadBalancer",
    annotations: {},
    loadBalancerClass: "example.test/lb",
    externalTrafficPolicy: "Local",
  },
  autoscaling: { minReplicas: 1, maxReplicas: 2, targetCPUUtilizationPercentage: 80 },
  podDisruptionBudget: { minAvailable: 1 },
  podTemplate: {
    labels: {},
    annotations: {},
    nodeSelector: {},
    tolerations: [],
    affinity: {},
    topologySpreadConstraints: [],
    priorityClassName: "high",
    imagePullSecrets: [{ name: "pull" }],
    terminationGracePeriodSeconds: 60,
  },
};

describe("GatewayParameters", () => {
  const [crd] = parseManifests(readFileSync(CRD_FILE, "utf8"));
  const spec = (
    crd as unknown as {
      spec: { versions: [{ schema: { openAPIV3Schema: { properties: { spec: Schema } } } }] };
    }
  ).spec.versions[0].schema.openAPIV3Schema.properties.spec;

  const fields = new Map<string, Schema>();
  const collect = (node: Schema, path: string): void => {
    for (const [name, child] of Object.entries(node.properties ?? {})) {
      fields.set(`${path}${name}`, child);
      collect(child, `${path}${name}.`);
      if (child.items !== undefined) collect(child.items, `${path}${name}[].`);
    }
  };
  collect(spec, "");

  test("the CRD has the fields that the code reads, and no others", () => {
    const named: string[] = [];
    const visit = (value: object, path: string): void => {
      for (const [name, child] of Object.entries(value)) {
        named.push(`${path}${name}`);
        const isMap = typeof fields.get(`${path}${name}`)?.additionalProperties === "object";
        if (typeof child === "object" && child !== null && !Array.isArray(child) && !isMap)
          visit(child as object, `${path}${name}.`);
      }
    };
    visit(EVERY_FIELD, "");
    // Fields of list items are Kubernetes' own.
    expect([...fields.keys()].filter((path) => !path.includes("[]")).sort()).toEqual(named.sort());
  });

  test("every field has a description, here and in docs/reference/gateway-parameters.md", () => {
    const rows = rowsOf(section(readText("docs/reference/gateway-parameters.md"), "Fields of spec"));
    expect([...rows.keys()].sort()).toEqual([...fields.keys()].sort());
    for (const [path, { description }] of fields) {
      expect(description, path).toBeTruthy();
      expect(rows.get(path)?.join(" "), path).toContain(description);
    }
  });

  test("every rule between fields is told as the API server will tell it", () => {
    const page = section(readText("docs/reference/gateway-parameters.md"), "Rules between fields");
    const messages = [spec, ...fields.values()].flatMap((schema) => schema["x-kubernetes-validations"] ?? []);
    expect(messages.length).toBeGreaterThan(3);
    for (const { message } of messages) expect(page).toContain(message);
  });
});
