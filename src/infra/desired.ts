/**
 * What must exist in Kubernetes so that a Gateway is served: a pure function of the Gateway, its
 * parameters and its ports.
 */
import type { DataPlaneName } from "../api/gateway-parameters.ts";
import {
  type DataPlaneContext,
  type InfrastructureRequest,
  type Manifest,
  metadata,
} from "./objects/manifest.ts";
import { autoscaler, disruptionBudget } from "./objects/scaling.ts";
import { headlessService, services } from "./objects/services.ts";
import { deployment } from "./pods/deployment.ts";
import { embeddedPod } from "./pods/embedded-pod.ts";
import { envoyPod } from "./pods/envoy-pod.ts";
import type { PodForm } from "./pods/pod.ts";
import { tunnelPod } from "./pods/tunnel-pod.ts";

const FORMS: Readonly<Partial<Record<DataPlaneName, PodForm>>> = {
  embedded: embeddedPod,
  envoy: envoyPod,
  tunnel: tunnelPod,
};

export function desiredManifests(
  request: InfrastructureRequest,
  context: DataPlaneContext,
): readonly Manifest[] {
  const dataPlane = request.parameters.dataPlane ?? context.dataPlane;
  const form = FORMS[dataPlane];
  // A Gateway that chooses what is not there is not accepted, and never gets here.
  if (form === undefined) throw new Error(`there is no pod form of the data plane ${dataPlane}`);
  const parts = form.parts(request, context);
  const pods =
    parts === undefined
      ? []
      : [deployment(request, parts), ...disruptionBudget(request), ...autoscaler(request)];
  const front = form.services === "addressed" ? services(request) : [headlessService(request)];
  return [serviceAccount(request), ...pods, ...front];
}

function serviceAccount(request: InfrastructureRequest): Manifest {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: metadata(request),
    automountServiceAccountToken: false,
  };
}
