/**
 * What a GatewayClass says beyond the engine's verdict: the installed version of the Gateway API,
 * and what the data plane can do.
 */
import { fails, holds, type Verdict } from "../../engine/foundation/verdict.ts";

/** What is known of the Gateway API CRDs in the cluster. */
export interface InstalledApi {
  readonly bundleVersions: readonly string[];
  readonly isKnown: boolean;
}

/** The minor version that this program is made for and tested with. */
const SUPPORTED = "v1.7";
/**
 * From here on supportedFeatures is a list of objects; before, it was experimental and of another
 * shape.
 */
const FEATURES_SINCE = { major: 1, minor: 3 };

export function supportedVersion(api: InstalledApi): Verdict {
  const type = "SupportedVersion";
  const found = api.bundleVersions.join(", ");
  if (!api.isKnown) {
    const message = "the installed version of the Gateway API is unknown: its CRDs may not be read";
    return fails(type, { reason: "UnsupportedVersion", message });
  }
  const supported = api.bundleVersions.every((version) => version.startsWith(`${SUPPORTED}.`));
  return supported && api.bundleVersions.length > 0
    ? holds(type, "SupportedVersion", `Gateway API ${found} is supported`)
    : fails(type, {
        reason: "UnsupportedVersion",
        message: `Gateway API ${found || "of an unknown version"} is installed; made for ${SUPPORTED}, everything else is served as well as it can be`,
      });
}

export function featuresStatus(
  features: ReadonlySet<string>,
  api: InstalledApi,
): { readonly supportedFeatures?: readonly { readonly name: string }[] } {
  if (api.bundleVersions.some(isTooOld)) return {};
  return { supportedFeatures: [...features].sort().map((name) => ({ name })) };
}

function isTooOld(version: string): boolean {
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(version) ?? [];
  if (major === undefined) return false;
  const { major: wantedMajor, minor: wantedMinor } = FEATURES_SINCE;
  return Number(major) < wantedMajor || (Number(major) === wantedMajor && Number(minor) < wantedMinor);
}
