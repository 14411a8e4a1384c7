/** One container: our own program serves. */
import { podEnvironment } from "../../agent/environment.ts";
import { PLAN_MOUNTS, type PodForm, planContainer, planVolumes, readinessProbe } from "./pod.ts";

export const embeddedPod: PodForm = {
  services: "addressed",
  parts: (request, context) => ({
    containers: [
      {
        name: "gateway",
        ...planContainer(
          request,
          context,
          podEnvironment({ dataPlane: "embedded", workers: request.parameters.workers ?? 0 }),
        ),
        readinessProbe: readinessProbe("admin"),
        resources: request.parameters.resources ?? { requests: { cpu: "50m", memory: "128Mi" } },
        volumeMounts: PLAN_MOUNTS,
      },
    ],
    volumes: planVolumes(context),
  }),
};
