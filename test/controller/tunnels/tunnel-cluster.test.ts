import { describe, expect, it } from "vitest";
import type { Gateway } from "../../../src/api/gateway.ts";
import { ClusterInfrastructure } from "../../../src/controller/cluster-infrastructure.ts";
import { KubernetesTunnels } from "../../../src/controller/tunnels/tunnel-cluster.ts";
import { Credential } from "../../../src/dataplanes/tunnel/cloudflare/credential.ts";
import { ApiError } from "../../../src/kubernetes/api-error.ts";
import type { ApiRequest, KubernetesClient } from "../../../src/kubernetes/client.ts";

const GATEWAY: Gateway = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { name: "edge", namespace: "infra", uid: "1" },
  spec: { gatewayClassName: "mergeway", listeners: [] },
};
const MARKS = {
  labels: { "app.kubernetes.io/managed-by": "mergeway" },
  annotations: { "mergeway.dev/gateway-name": "edge" },
};

/** A cluster in which everything that is asked for has this metadata, or is not there. */
function cluster(metadata: object | undefined): { tunnels: KubernetesTunnels; written: ApiRequest[] } {
  const written: ApiRequest[] = [];
  const client = {
    request: async (request: ApiRequest): Promise<unknown> => {
      if (request.method !== undefined) written.push(request);
      else if (request.query?.["fieldSelector"] !== undefined)
        return { items: metadata ? [{ metadata }] : [] };
      else if (metadata === undefined)
        throw new ApiError({ status: 404, code: "NotFound", message: "not found" });
      return { metadata };
    },
  } as unknown as KubernetesClient;
  return { tunnels: new KubernetesTunnels(client, new ClusterInfrastructure(client, [])), written };
}

describe("the Secret with a tunnel's token", () => {
  const token = new Credential("the token");

  it.each([
    ["is made where there is none", undefined, { force: false }, {}],
    ["is written again where it is ours", { ...MARKS, uid: "7" }, { force: true }, { uid: "7" }],
  ])("%s", async (_title, metadata, query, more) => {
    const { tunnels, written } = cluster(metadata);
    await tunnels.writeToken(GATEWAY, token);
    expect(written).toMatchObject([
      {
        method: "PATCH",
        path: "/api/v1/namespaces/infra/secrets/edge-mergeway-tunnel",
        query,
        body: { metadata: { name: "edge-mergeway-tunnel", ...more } },
      },
    ]);
  });

  it("is not written over somebody's own Secret", async () => {
    const { tunnels, written } = cluster({ labels: { app: "mine" }, uid: "7" });
    await expect(tunnels.writeToken(GATEWAY, token)).rejects.toMatchObject({
      problem: {
        reason: "NameTaken",
        message: expect.stringContaining("left alone: Secret edge-mergeway-tunnel"),
      },
    });
    expect(written).toEqual([]);
  });
});

describe("the pods of a tunnel that is to go", () => {
  it.each([
    ["go", { ...MARKS, uid: "7" }, 1],
    ["stay where they are somebody's own", { uid: "7" }, 0],
    ["may be gone", undefined, 0],
  ])("%s", async (_title, metadata, deletions) => {
    const { tunnels, written } = cluster(metadata);
    await tunnels.removePods(GATEWAY);
    expect(written).toHaveLength(deletions);
  });
});
