import { describe, expect, test } from "vitest";
import { folder, mergeway } from "../mergeway.ts";

const MANIFESTS = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra}
spec:
  gatewayClassName: mergeway
  listeners: [{name: web, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: app, namespace: infra}
spec:
  parentRefs: [{name: gw}]
  rules:
  - matches: [{path: {value: /asked}}]
    filters:
    - type: ExternalAuth
      externalAuth: {protocol: GRPC, backendRef: {name: opa, port: 9191}, grpc: {}}
    backendRefs: [{name: app, port: 80}]
  - matches: [{path: {value: /closed}}]
    filters:
    - type: ExternalAuth
      externalAuth: {protocol: HTTP, backendRef: {name: missing, port: 80}, http: {}}
    backendRefs: [{name: app, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: opa, namespace: infra}
spec: {ports: [{port: 9191}]}
---
apiVersion: v1
kind: Service
metadata: {name: app, namespace: infra}
spec: {ports: [{port: 80}]}
`;

describe("mergeway explain, where a route has the filter ExternalAuth", () => {
  const explained = async (path: string): Promise<string> => {
    const { stdout } = await mergeway([
      ...["explain", `http://a.example${path}`, "-f", folder({ "all.yaml": MANIFESTS })],
    ]);
    return stdout;
  };

  test("the service that the route asks is named", async () => {
    expect(await explained("/asked")).toContain("HTTPRoute infra/app: asks Service infra/opa:9191 over gRPC");
  });

  test("a rule whose service does not exist answers 500", async () => {
    expect(await explained("/closed")).toContain(
      "500: a policy or filter of the rule cannot be applied: nothing passes",
    );
  });
});
