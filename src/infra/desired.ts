/** What must exist in Kubernetes so that a Gateway is served: a pure function of the Gateway, its parameters and its ports. */
import type { DataPlaneName } from "../api/gateway-parameters.ts";
import { deployment } from "./deployment.ts";
import { type DataPlaneContext, type InfrastructureRequest, type Manifest, metadata } from "./manifest.ts";
import { embeddedPod } from "./pods/embedded-pod.ts";
import { envoyPod } from "./pods/envoy-pod.ts";
import type { PodForm } from "./pods/pod.ts";
import { autoscaler, disruptionBudget } from "./scaling.ts";
import { services } from "./services.ts";

const FORMS: Readonly<Partial<Record<DataPlaneName, PodForm>>> = { embedded: embeddedPod, envoy: envoyPod };

export function desiredManifests(
  request: InfrastructureRequest,
  context: DataPlaneContext,
): readonly Manifest[] {
  const dataPlane = request.parameters.dataPlane ?? context.dataPlane;
  const form = FORMS[dataPlane];
  // A Gateway that chooses what is not there is not accepted, and never gets here.
  if (form === undefined) throw new Error(`there is no pod form of the data plane ${dataPlane}`);
  return [
    serviceAccount(request),
    deployment(request, form.parts(request, context)),
    ...(form.hasServices ? services(request) : []),
    ...disruptionBudget(request),
    ...autoscaler(request),
  ];
}

function serviceAccount(request: InfrastructureRequest): Manifest {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: metadata(request),
    automountServiceAccountToken: false,
  };
}
