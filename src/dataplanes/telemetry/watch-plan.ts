import type { PlanDelta } from "../../plan/plan.ts";
import type { DataPlane } from "../dataplane.ts";

/** The same data plane; what it is given is looked at on the way. */
export function watchPlan(plane: DataPlane, look: (delta: PlanDelta) => void): DataPlane {
  return {
    features: plane.features,
    apply: (delta) => {
      look(delta);
      plane.apply(delta);
    },
    onReport: (handler) => plane.onReport(handler),
    ...(plane.served === undefined
      ? {}
      : { served: (gateway?: string) => plane.served?.(gateway) ?? Promise.resolve(true) }),
    close: (options) => plane.close(options),
  };
}
