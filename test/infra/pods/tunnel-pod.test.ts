import { beforeEach, describe, expect, it } from "vitest";
import type { EndpointSlice } from "../../../src/api/core.ts";
import type { Gateway } from "../../../src/api/gateway.ts";
import type { GatewayParametersSpec } from "../../../src/api/gateway-parameters.ts";
import { type Key, keyOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import type { AddressFact } from "../../../src/infra/addresses.ts";
import { desiredManifests } from "../../../src/infra/desired.ts";
import type { DataPlaneContext, Manifest, TunnelCredentials } from "../../../src/infra/objects/manifest.ts";
import { InfrastructureReconciler } from "../../../src/infra/reconciler.ts";

const GATEWAY: Gateway = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { name: "shared", namespace: "infra", uid: "1" },
  spec: { gatewayClassName: "mergeway", listeners: [] },
};
const KEY: Key = keyOf(GATEWAY);
const TOKEN: TunnelCredentials = { secret: "shared-mergeway-tunnel", key: "token", digest: "d1" };
const CONTEXT: DataPlaneContext = {
  dataPlane: "tunnel",
  image: "mergeway:1",
  envoyImage: "envoy:1",
  cloudflaredImage: "cloudflared:1",
  controller: "mergeway.system.svc:18000",
  authority: "PEM",
  tokenAudience: "a",
  metrics: false,
  drainToken: (uid) => `drain ${uid}`,
};

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: unknown }[];
  readonly resources: unknown;
  readonly securityContext: unknown;
}

function manifests(parameters: GatewayParametersSpec, tunnel?: TunnelCredentials): readonly Manifest[] {
  const ports = [{ transport: "tcp", port: 80 } as const];
  return desiredManifests(
    { gateway: GATEWAY, parameters, ports, ...(tunnel === undefined ? {} : { tunnel }) },
    CONTEXT,
  );
}

function containersOf(all: readonly Manifest[]): readonly Container[] {
  const found = all.find(({ kind }) => kind === "Deployment") as unknown as {
    readonly spec: { readonly template: { readonly spec: { readonly containers: readonly Container[] } } };
  };
  return found.spec.template.spec.containers;
}

function kinds(all: readonly Manifest[]): readonly string[] {
  return all.map(({ kind, metadata }) => `${kind}/${metadata.name}`).sort();
}

describe("the pods of a tunnel", () => {
  it("have our program and stock cloudflared, and no address", () => {
    const all = manifests({ tunnel: { connections: 2, protocol: "auto" } }, TOKEN);
    expect(kinds(all)).toEqual([
      "Deployment/shared-mergeway",
      "Service/shared-mergeway-pods",
      "ServiceAccount/shared-mergeway",
    ]);
    expect(all.find(({ kind }) => kind === "Service")?.["spec"]).toMatchObject({ clusterIP: "None" });
    const [proxy, connector] = containersOf(all);
    expect(proxy?.env).toContainEqual({ name: "MERGEWAY_DATA_PLANE", value: "tunnel" });
    expect(connector).toMatchObject({ name: "cloudflared", image: "cloudflared:1" });
    expect(connector?.args.join(" ")).toBe(
      "tunnel --no-autoupdate --protocol auto --metrics 127.0.0.1:19902 --ha-connections 2 run",
    );
  });

  it("have the token by reference, never by value", () => {
    const [, connector] = containersOf(manifests({}, TOKEN));
    expect(connector?.env).toContainEqual({
      name: "TUNNEL_TOKEN",
      valueFrom: { secretKeyRef: { name: "shared-mergeway-tunnel", key: "token" } },
    });
  });

  it("are rolled by another token", () => {
    const before = JSON.stringify(manifests({}, TOKEN));
    expect(JSON.stringify(manifests({}, { ...TOKEN, digest: "d2" }))).not.toBe(before);
  });

  it("keep to the Pod Security Standard restricted, cloudflared as well", () => {
    for (const { securityContext } of containersOf(manifests({}, TOKEN))) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
        readOnlyRootFilesystem: true,
      });
    }
  });

  it("are not made before there is a token", () => {
    expect(kinds(manifests({ replicas: 3 }))).toEqual([
      "Service/shared-mergeway-pods",
      "ServiceAccount/shared-mergeway",
    ]);
  });
});

describe("a Gateway that is served through a tunnel", () => {
  const applied = new Map<string, Manifest>();
  let facts: (AddressFact | undefined)[];
  let token: TunnelCredentials | undefined;
  let ending: boolean;
  let reconciler: InfrastructureReconciler;

  beforeEach(async () => {
    applied.clear();
    facts = [];
    token = undefined;
    ending = false;
    reconciler = new InfrastructureReconciler({
      cluster: {
        look: async ({ kind, name }) => {
          const found = applied.get(`${kind}/${name}`);
          return found === undefined ? undefined : { ...(found.metadata as object), uid: name };
        },
        apply: async (manifest) => void applied.set(`${manifest.kind}/${manifest.metadata.name}`, manifest),
        remove: async ({ kind, name }) => void applied.delete(`${kind}/${name}`),
        listOwned: async () => [],
      },
      context: () => CONTEXT,
      find: (key) => (key === KEY ? (GATEWAY as Resource) : undefined),
      tunnels: {
        fact: (_gateway, isConnected) => ({ addresses: [{ type: "Hostname", value: String(isConnected) }] }),
        credentials: () => token,
        isEnding: () => ending,
      },
      onFact: (_gateway, fact) => facts.push(fact),
      onProblem: () => {},
    });
    reconciler.serve(KEY, [{ transport: "tcp", port: 80 }]);
    await reconciler.lead(true);
  });

  it("gets its pods as soon as there is a token, and loses them when the tunnel is to go", async () => {
    await expect.poll(() => applied.size).toBe(2);
    token = TOKEN;
    reconciler.noticeTunnel(KEY);
    await expect.poll(() => applied.has("Deployment/shared-mergeway")).toBe(true);
    ending = true;
    reconciler.noticeTunnel(KEY);
    await expect.poll(() => applied.size).toBe(0);
  });

  it("is connected while one of its pods is ready", () => {
    const slice = (ready: boolean): EndpointSlice => ({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: "x",
        namespace: "infra",
        labels: {
          "kubernetes.io/service-name": "shared-mergeway-pods",
          "app.kubernetes.io/managed-by": "mergeway",
        },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready } }],
    });
    reconciler.notice(keyOf(slice(true)), slice(true));
    reconciler.notice(keyOf(slice(false)), slice(false));
    expect(facts.map((fact) => fact?.addresses[0]?.value)).toEqual(["false", "true", "false"]);
  });
});
