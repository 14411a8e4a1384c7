import type { DataPlaneName } from "../api/gateway-parameters.ts";
import { embeddedFeatures } from "../dataplanes/embedded/features.ts";
import { envoyFeatures } from "../dataplanes/envoy/features.ts";

/** What Gateways can choose from, and what each one serves. */
export const DATA_PLANES: Readonly<Partial<Record<DataPlaneName, ReadonlySet<string>>>> = {
  embedded: embeddedFeatures,
  envoy: envoyFeatures,
};

/** Rules of routes are compiled by these, whatever data plane a Gateway has. */
export function featuresOfPlane(dataPlane: DataPlaneName): ReadonlySet<string> {
  return DATA_PLANES[dataPlane] ?? embeddedFeatures;
}
