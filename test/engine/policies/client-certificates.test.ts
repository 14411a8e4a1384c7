/** What becomes of authorities that a ClientPolicy refers to; real certificates, real readers. */
import { expect, test } from "vitest";
import { keyOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { Engine } from "../../../src/engine/engine.ts";
import type { ClientValidation } from "../../../src/plan/client-validation.ts";
import { authority, selfSigned } from "../../dataplanes/support/certificates.ts";
import { TEST_SETTINGS } from "../settings.ts";

const server = selfSigned(["a.example.com"]);
const [one, two] = [authority("one"), authority("two")];
const base64 = (text: string): string => Buffer.from(text).toString("base64");

const WORLD: readonly object[] = [
  {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name: "gw", namespace: "infra" },
    spec: {
      gatewayClassName: "mergeway",
      listeners: [
        {
          name: "web",
          port: 443,
          protocol: "HTTPS",
          hostname: "a.example.com",
          tls: { mode: "Terminate", certificateRefs: [{ group: "", kind: "Secret", name: "shown" }] },
        },
      ],
    },
  },
  {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "shown", namespace: "infra" },
    type: "kubernetes.io/tls",
    data: { "tls.crt": base64(server.cert), "tls.key": base64(server.key) },
  },
];

function configMap(name: string, bundle: string): object {
  const metadata = { name, namespace: "infra" };
  return { apiVersion: "v1", kind: "ConfigMap", metadata, data: { "ca.crt": bundle } };
}

function policy(name: string, certificates: object, sectionName?: string): object {
  return {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "ClientPolicy",
    metadata: { name, namespace: "infra" },
    spec: {
      targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw", sectionName }],
      overrides: { tls: { clientCertificates: certificates } },
    },
  };
}

function engineWith(objects: readonly object[]): Engine {
  const engine = new Engine(TEST_SETTINGS);
  apply(engine, [...WORLD, ...objects]);
  return engine;
}

function apply(engine: Engine, objects: readonly object[]): void {
  engine.apply((objects as readonly Resource[]).map((resource) => ({ key: keyOf(resource), resource })));
}

/** Of the listener, or else of its port. */
function asked(engine: Engine): ClientValidation | undefined {
  const items = [...engine.plan()];
  const own = items.flatMap((item) => (item.type === "listener" ? (item.tls?.clientValidation ?? []) : []));
  return own[0] ?? items.flatMap((item) => (item.type === "port" ? (item.clientValidation ?? []) : []))[0];
}

function resolvedRefs(engine: Engine, name: string): string | undefined {
  const verdict = engine.verdict(`ClientPolicy/infra/${name}`);
  const conditions = verdict?.type === "policy" ? verdict.ancestors.flatMap((each) => each.conditions) : [];
  const found = conditions.find(({ type }) => type === "ResolvedRefs");
  return found && `${found.reason}: ${found.message}`;
}

const refs = { caCertificateRefs: [{ name: "ca" }], mode: "AllowValidOnly" };

test.each([
  ["is not PEM", "hello", /holds no PEM certificate$/],
  ["is a megabyte of nothing", "x".repeat(1_000_000), /holds no PEM certificate$/],
  ["holds 10,000 certificates", one.cert.repeat(10_000), /holds 10000 certificates; at most 512 are read$/],
  ["is larger than listeners carry", one.cert.repeat(200), /at most 65536 are taken$/],
  [
    "holds something that is no certificate",
    "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n",
    /cannot be read$/,
  ],
])("a bundle that %s lets nobody in, and the status says why", (_what, bundle, message) => {
  const engine = engineWith([configMap("ca", bundle), policy("base", refs)]);
  expect(asked(engine)).toEqual({ authorities: [], mode: "AllowValidOnly" });
  expect(resolvedRefs(engine, "base")).toMatch(message);
});

test("a ConfigMap that vanishes closes, and one that comes opens", () => {
  const engine = engineWith([policy("base", refs)]);
  expect(asked(engine)?.authorities).toEqual([]);
  apply(engine, [configMap("ca", one.cert)]);
  expect(asked(engine)?.authorities.join("").trim()).toBe(one.cert.trim());
  engine.apply([{ key: "ConfigMap/infra/ca", resource: undefined }]);
  expect(asked(engine)?.authorities).toEqual([]);
  expect(resolvedRefs(engine, "base")).toBe(
    "InvalidCACertificateRef: clientCertificates: ConfigMap ca does not exist",
  );
});

test("of two demands, the authorities and names that both have are left", () => {
  const both = [configMap("ca", `${one.cert}\n${two.cert}`), configMap("near", two.cert)];
  const names = (...hostnames: string[]): object[] =>
    hostnames.map((hostname) => ({ type: "Hostname", hostname }));
  const engine = engineWith([
    ...both,
    policy("base", { ...refs, subjectAltNames: names("ann.example", "bob.example"), forward: "Names" }),
    policy(
      "own",
      {
        ...refs,
        caCertificateRefs: [{ name: "near" }],
        subjectAltNames: names("Bob.example", "eve.example"),
      },
      "web",
    ),
  ]);
  const { authorities = [], ...rest } = asked(engine) ?? {};
  expect(authorities.join("").trim()).toBe(two.cert.trim());
  expect(rest).toEqual({ mode: "AllowValidOnly", subjectAltNames: ["DNS:bob.example"], forward: "Names" });
});

test("demands without a common authority let nobody in", () => {
  const engine = engineWith([
    configMap("ca", one.cert),
    configMap("near", two.cert),
    policy("base", refs),
    policy("own", { caCertificateRefs: [{ name: "near" }], mode: "AllowInsecureFallback" }, "web"),
  ]);
  expect(asked(engine)).toEqual({ authorities: [], mode: "AllowValidOnly" });
});

test.each([
  ["names that nobody compares", { subjectAltNames: [{ type: "URI", uri: "spiffe://example/a" }] }],
  ["a certificate that nobody verifies", { forward: "Names" }],
])("a fallback with %s is Invalid, and closed", (_what, more) => {
  const fallback = { ...refs, mode: "AllowInsecureFallback", ...more };
  const engine = engineWith([configMap("ca", one.cert), policy("base", fallback)]);
  expect(asked(engine)).toEqual({ authorities: [], mode: "AllowValidOnly" });
  const verdict = engine.verdict("ClientPolicy/infra/base");
  expect(JSON.stringify(verdict)).toContain('"Invalid"');
});
