import type { DataPlaneName } from "../api/gateway-parameters.ts";
import { embeddedFeatures } from "../dataplanes/embedded/features.ts";
import { envoyFeatures } from "../dataplanes/envoy/features.ts";
import { tunnelFeatures } from "../dataplanes/tunnel/features.ts";

/** What each data plane serves. */
const DATA_PLANES: Readonly<Partial<Record<DataPlaneName, ReadonlySet<string>>>> = {
  embedded: embeddedFeatures,
  envoy: envoyFeatures,
};

/** With tunnels, which need rights of their own. Behind one, the embedded data plane routes. */
const DATA_PLANES_WITH_TUNNEL: typeof DATA_PLANES = {
  ...DATA_PLANES,
  tunnel: tunnelFeatures(embeddedFeatures),
};

/** Those that Gateways of a controller can choose from. */
export function dataPlanesOf({ tunnels }: { readonly tunnels?: unknown }): typeof DATA_PLANES {
  return tunnels === undefined ? DATA_PLANES : DATA_PLANES_WITH_TUNNEL;
}

/** Rules of routes are compiled by these, whatever data plane a Gateway has. */
export function featuresOfPlane(dataPlane: DataPlaneName): ReadonlySet<string> {
  return DATA_PLANES[dataPlane] ?? embeddedFeatures;
}
