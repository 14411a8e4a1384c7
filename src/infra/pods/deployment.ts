/**
 * The Deployment of a Gateway, around what its data plane needs in a pod. Pods satisfy the Pod
 * Security Standard "restricted": non-root, read-only root, no capabilities. Listener ports below
 * 1024 are bound directly, by the pod-level sysctl net.ipv4.ip_unprivileged_port_start, which
 * "restricted" allows: so the port in a log is the port in the spec.
 */
import { type InfrastructureRequest, type Manifest, metadata } from "../objects/manifest.ts";
import { infrastructureLabels, infrastructureName, selectorLabels } from "../objects/names.ts";
import { graceSeconds, type PodParts } from "./pod.ts";

export function deployment(request: InfrastructureRequest, parts: PodParts): Manifest {
  const { gateway, parameters } = request;
  const template = parameters.podTemplate ?? {};
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metadata(request),
    spec: {
      ...(parameters.autoscaling === undefined ? { replicas: parameters.replicas ?? 1 } : {}),
      selector: { matchLabels: selectorLabels(gateway) },
      // A new pod serves before an old one goes.
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: {
        metadata: {
          labels: { ...template.labels, ...infrastructureLabels(gateway) },
          annotations: { ...gateway.spec.infrastructure?.annotations, ...template.annotations },
        },
        spec: {
          serviceAccountName: infrastructureName(gateway),
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: graceSeconds(request),
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 65532,
            runAsGroup: 65532,
            fsGroup: 65532,
            seccompProfile: { type: "RuntimeDefault" },
            sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }],
          },
          ...pick(template, [
            "nodeSelector",
            "tolerations",
            "affinity",
            "priorityClassName",
            "imagePullSecrets",
          ]),
          topologySpreadConstraints: template.topologySpreadConstraints ?? [spread(request)],
          ...(parts.initContainers === undefined ? {} : { initContainers: parts.initContainers }),
          containers: parts.containers,
          volumes: parts.volumes,
        },
      },
    },
  };
}

function spread({ gateway }: InfrastructureRequest): unknown {
  return {
    maxSkew: 1,
    topologyKey: "kubernetes.io/hostname",
    whenUnsatisfiable: "ScheduleAnyway",
    labelSelector: { matchLabels: selectorLabels(gateway) },
  };
}

function pick<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Partial<Pick<T, K>> {
  return Object.fromEntries(
    keys.filter((key) => from[key] !== undefined).map((key) => [key, from[key]]),
  ) as Partial<Pick<T, K>>;
}
