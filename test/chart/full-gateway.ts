import type { Gateway } from "../../src/api/gateway.ts";
import type { DataPlaneContext, InfrastructureRequest } from "../../src/infra/objects/manifest.ts";

const gateway: Gateway = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { name: "shared", namespace: "restricted", uid: "6f6f1f0e-6c0b-4b0f-9d53-3a6d3c1f2a11" },
  spec: {
    gatewayClassName: "mergeway",
    listeners: [{ name: "http", port: 80, protocol: "HTTP" }],
    addresses: [
      { type: "IPAddress", value: "172.30.15.1" },
      { type: "IPAddress", value: "172.30.15.2" },
    ],
    infrastructure: { labels: { team: "platform" }, annotations: { "example.test/note": "all of it" } },
  },
};

/** A Gateway with parameters that make every kind of object there can be. */
export const fullGateway: { readonly request: InfrastructureRequest; readonly context: DataPlaneContext } = {
  request: {
    gateway,
    parameters: {
      resources: { requests: { cpu: "250m", memory: "128Mi" }, limits: { memory: "1Gi" } },
      service: {
        type: "LoadBalancer",
        annotations: { "example.test/lb": "yes" },
        externalTrafficPolicy: "Local",
      },
      autoscaling: { minReplicas: 2, maxReplicas: 5, targetCPUUtilizationPercentage: 70 },
      podDisruptionBudget: { minAvailable: "50%" },
      podTemplate: {
        labels: { tier: "edge" },
        annotations: { "example.test/pod": "yes" },
        tolerations: [{ key: "edge", operator: "Exists", effect: "NoSchedule" }],
        terminationGracePeriodSeconds: 120,
      },
    },
    ports: [
      { transport: "tcp", port: 80 },
      { transport: "tcp", port: 443 },
      { transport: "udp", port: 53 },
    ],
  },
  context: {
    dataPlane: "envoy",
    image: "mergeway:0.1.0",
    envoyImage: "envoy:1",
    cloudflaredImage: "cloudflared:1",
    controller: "mergeway.mergeway-system.svc:18000",
    authority: "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n",
    tokenAudience: "mergeway.dev/controller",
    metrics: false,
    drainToken: (uid) => `drain ${uid}`,
  },
};
