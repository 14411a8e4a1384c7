/** What every configuration stands on: Services, their endpoints, certificates. */

import { authority, issue, type TestCertificate } from "../support/certificates.ts";
import type { Manifest } from "./configurations.ts";
import { backendName, PLATFORM, SERVICE_PORT, TEAMS } from "./names.ts";

export interface Keys {
  readonly authority: TestCertificate;
  /** What a client presents. */
  readonly client: TestCertificate;
  readonly server: TestCertificate;
}

export function makeKeys(): Keys & { readonly secrets: ReadonlyMap<string, TestCertificate> } {
  const ca = authority();
  const both = issue(ca, ["a.test", "*.a.test", "*.sub.a.test", "b.test", "*.test"]);
  const broken: TestCertificate = { cert: both.cert, key: "no key at all" };
  const secrets = new Map([
    ["both", both],
    ["only-a", issue(ca, ["a.test"])],
    ["broken", broken],
  ]);
  return { authority: ca, client: issue(ca, ["client.test"]), server: both, secrets };
}

export function foundation(
  { authority: ca, secrets }: ReturnType<typeof makeKeys>,
  backends: ReadonlyMap<string, number>,
): readonly Manifest[] {
  const manifests: Manifest[] = [
    core("ConfigMap", PLATFORM, "authority", { data: { "ca.crt": ca.cert } }),
    ...[PLATFORM, ...TEAMS].map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })),
  ];
  for (const namespace of [PLATFORM, ...TEAMS]) {
    for (const [name, { cert, key }] of secrets) {
      const data = { "tls.crt": base64(cert), "tls.key": base64(key) };
      manifests.push(core("Secret", namespace, name, { type: "kubernetes.io/tls", data }));
    }
  }
  for (const namespace of TEAMS)
    manifests.push(core("Service", namespace, "none", { spec: { ports: servicePorts() } }));
  for (const [name, port] of backends) {
    const [namespace = "", service = ""] = name.split("/");
    manifests.push(core("Service", namespace, service, { spec: { ports: servicePorts() } }));
    manifests.push(endpoints(backendName(namespace, service), port));
  }
  return manifests;
}

function endpoints(backend: string, port: number): Manifest {
  const [namespace, service] = backend.split("/");
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: service, namespace, labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    ports: [{ name: "", port, protocol: "TCP" }],
    endpoints: [{ addresses: ["127.0.0.1"] }],
  };
}

function core(kind: string, namespace: string, name: string, fields: Manifest): Manifest {
  return { apiVersion: "v1", kind, metadata: { name, namespace }, ...fields };
}

function servicePorts(): readonly Manifest[] {
  return [{ port: SERVICE_PORT, protocol: "TCP" }];
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
