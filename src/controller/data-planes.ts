import type { DataPlaneName } from "../api/gateway-parameters.ts";
import { embeddedFeatures } from "../dataplanes/embedded/features.ts";
import { envoyFeatures } from "../dataplanes/envoy/features.ts";
import { tunnelFeatures } from "../dataplanes/tunnel/features.ts";

/** What Gateways can choose from, and what each one serves. */
export const DATA_PLANES: Readonly<Partial<Record<DataPlaneName, ReadonlySet<string>>>> = {
  embedded: embeddedFeatures,
  envoy: envoyFeatures,
};

/** With tunnels, which need rights of their own. Behind one, the embedded data plane routes. */
export const DATA_PLANES_WITH_TUNNEL: typeof DATA_PLANES = {
  ...DATA_PLANES,
  tunnel: tunnelFeatures(embeddedFeatures),
};

/** Rules of routes are compiled by these, whatever data plane a Gateway has. */
export function featuresOfPlane(dataPlane: DataPlaneName): ReadonlySet<string> {
  return DATA_PLANES[dataPlane] ?? embeddedFeatures;
}
