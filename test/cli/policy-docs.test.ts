/** docs/reference/policies.md says what the engine does. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openManifests } from "../../src/cli/workspace/workspace.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { USUAL_TYPES } from "../../src/engine/policies/settings/compression.ts";
import { selfSigned } from "../dataplanes/support/certificates.ts";
import { folder, ROOT } from "./mergeway.ts";
import { FIELDS, isServedAt, LEVELS, type Level, sectionsOf } from "./policy-tables.ts";

const shown = selfSigned(["a.example.com"]);

const WORLD = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: one}
spec:
  gatewayClassName: mergeway
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: own, port: 80, protocol: HTTP, hostname: own.example.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: set, namespace: one}
spec:
  parentRef: {name: gw}
  listeners:
  - {name: http, port: 80, protocol: HTTP, hostname: a.example.com}
  - {name: https, port: 443, protocol: HTTPS, hostname: a.example.com, tls: {certificateRefs: [{name: shown}]}}
---
apiVersion: v1
kind: Secret
metadata: {name: shown, namespace: one}
type: kubernetes.io/tls
data: {tls.crt: ${base64(shown.cert)}, tls.key: ${base64(shown.key)}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: one}
spec:
  parentRefs: [{kind: ListenerSet, name: set}]
  rules: [{name: rule, retry: {attempts: 3}, backendRefs: [{name: web, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: one}
spec: {ports: [{port: 80}]}
`;

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** What is about TLS shows at a listener that ends it. */
function target(level: Level, field: string): string {
  return field.startsWith("tls.") ? TARGETS[level].replace("http}", "https}") : TARGETS[level];
}

const TARGETS: Readonly<Record<Level, string>> = {
  Gateway: "{kind: Gateway, name: gw}",
  "set or child": "{kind: ListenerSet, name: set}",
  listener: "{kind: ListenerSet, name: set, sectionName: http}",
  route: "{kind: HTTPRoute, name: web}",
  rule: "{kind: HTTPRoute, name: web, sectionName: rule}",
};

const SETTINGS: Readonly<Record<string, string>> = {
  clientAddresses: "{clientAddresses: {deny: [192.0.2.1]}}",
  rateLimits: "{rateLimits: [{requests: 1}]}",
  requestBody: "{requestBody: {maxSize: 10Mi}}",
  timeouts: "{timeouts: {request: 5s}}",
  requestHeaders: "{requestHeaders: {remove: [x-debug]}}",
  responseHeaders: "{responseHeaders: {set: [{name: x-frame-options, value: DENY}]}}",
  retries: "{retries: {attempts: 1}}",
  directResponse: "{directResponse: {body: {inline: later}}}",
  compression: "{compression: {minBytes: 100}}",
  cors: "{cors: {allowOrigins: ['*']}}",
  httpsRedirect: "{httpsRedirect: {statusCode: 308}}",
  apiKeys: "{apiKeys: {secretRef: {name: clients}, headers: [X-Api-Key]}}",
  basicAuth: "{basicAuth: {secretRef: {name: users}}}",
  jwt: "{jwt: {issuers: [{issuer: 'https://i.example', jwks: {url: 'https://i.example/keys'}}]}}",
  externalAuth: "{externalAuth: {backendRef: {name: login, port: 80}}}",
  "clientAddress.proxyProtocol": "{clientAddress: {proxyProtocol: Required}}",
  "clientAddress.forwardedFor": "{clientAddress: {forwardedFor: {trustedHops: 1}}}",
  "headerLimits.maxSize": "{headerLimits: {maxSize: 8Ki}}",
  "headerLimits.maxCount": "{headerLimits: {maxCount: 20}}",
  "headerLimits.timeout": "{headerLimits: {timeout: 5s}}",
  "connections.idleTimeout": "{connections: {idleTimeout: 5s}}",
  "connections.maxConcurrentStreams": "{connections: {maxConcurrentStreams: 10}}",
  "tls.clientCertificates": "{tls: {clientCertificates: {caCertificateRefs: [{name: clients}]}}}",
};

/** Where policies show: how ports and listeners treat clients, and rules requests. */
function portsAndHosts(engine: Engine): string {
  return JSON.stringify([...engine.plan()].filter(({ type }) => ["port", "listener", "host"].includes(type)));
}

describe("where each field holds", () => {
  const cases = FIELDS.flatMap(({ kind, field }) => LEVELS.map((level) => ({ kind, field, level })));

  test.each(cases)("$field of a $kind at the level of a $level", async ({ kind, field, level }) => {
    const policy = `
apiVersion: mergeway.dev/v1alpha1
kind: ${kind}
metadata: {name: own, namespace: one}
spec: {targetRefs: [${target(level, field)}], overrides: ${SETTINGS[field]}}
`;
    const { engine } = await openManifests([folder({ "all.yaml": `${WORLD}---${policy}` })]);
    const without = await openManifests([folder({ "all.yaml": WORLD })]);
    const served = portsAndHosts(engine) !== portsAndHosts(without.engine);
    expect(served).toBe(isServedAt(kind, level, field));
    const verdict = engine.verdict(`${kind}/one/own`);
    const conditions = verdict?.type === "policy" ? verdict.ancestors.flatMap((each) => each.conditions) : [];
    expect(conditions.some(({ type, status }) => type === "Accepted" && status === "True")).toBe(served);
  });

  test("the table has every field of both sections", () => {
    for (const kind of ["TrafficPolicy", "ClientPolicy"] as const) {
      const { defaults, overrides } = sectionsOf(kind);
      expect(overrides.properties).toEqual(defaults.properties);
      const named = FIELDS.filter((each) => each.kind === kind).map(({ field }) => field.split(".")[0]);
      expect([...new Set(named)].sort()).toEqual(Object.keys(defaults.properties ?? {}).sort());
    }
  });
});

test("the CRD names the usual types of compression, all of them and no other", () => {
  const { defaults, overrides } = sectionsOf("TrafficPolicy");
  for (const { properties } of [defaults, overrides]) {
    const text = properties?.["compression"]?.properties?.["contentTypes"]?.description ?? "";
    const [, listed = ""] = text.split("Absent: ");
    expect(listed.trim().replace(/\.$/, "").split(", ")).toEqual(USUAL_TYPES);
  }
});

test("every reason of a policy's status is documented", () => {
  const page = readFileSync(join(ROOT, "docs/reference/policies.md"), "utf8");
  const files = [
    "policy-verdicts.ts",
    "client-policies.ts",
    "client-certificates.ts",
    "backend-settings.ts",
    "attached-policies.ts",
    "authentication.ts",
    "settings/direct-response.ts",
    "jwt.ts",
  ];
  const reasons = files.flatMap((file) =>
    Array.from(
      readFileSync(join(ROOT, "src/engine/policies", file), "utf8").matchAll(
        /(?:reason: |holds\("\w+", )"(\w+)"/g,
      ),
      ([, reason]) => reason as string,
    ),
  );
  expect(new Set(reasons).size).toBeGreaterThan(6);
  expect([...new Set(reasons)].filter((reason) => !page.includes(`| \`${reason}\` |`))).toEqual([]);
});
