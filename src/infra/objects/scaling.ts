/** How many pods there may be, and how many must stay. */
import { type InfrastructureRequest, type Manifest, metadata } from "./manifest.ts";
import { infrastructureName, selectorLabels } from "./names.ts";

export function disruptionBudget(request: InfrastructureRequest): readonly Manifest[] {
  const { parameters, gateway } = request;
  const several = (parameters.autoscaling?.minReplicas ?? parameters.replicas ?? 1) > 1;
  if (!several && parameters.podDisruptionBudget === undefined) return [];
  return [
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: metadata(request),
      spec: {
        minAvailable: parameters.podDisruptionBudget?.minAvailable ?? 1,
        selector: { matchLabels: selectorLabels(gateway) },
      },
    },
  ];
}

export function autoscaler(request: InfrastructureRequest): readonly Manifest[] {
  const { autoscaling } = request.parameters;
  if (autoscaling === undefined) return [];
  return [
    {
      apiVersion: "autoscaling/v2",
      kind: "HorizontalPodAutoscaler",
      metadata: metadata(request),
      spec: {
        scaleTargetRef: {
          apiVersion: "apps/v1",
          kind: "Deployment",
          name: infrastructureName(request.gateway),
        },
        minReplicas: autoscaling.minReplicas ?? 1,
        maxReplicas: autoscaling.maxReplicas,
        metrics: [
          {
            type: "Resource",
            resource: {
              name: "cpu",
              target: {
                type: "Utilization",
                averageUtilization: autoscaling.targetCPUUtilizationPercentage ?? 80,
              },
            },
          },
        ],
      },
    },
  ];
}
