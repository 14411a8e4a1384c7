/**
 * What of the Gateway API is installed: told by the CRDs' own metadata, which also tell when kinds
 * come and go.
 */
import { EXPERIMENTAL_GROUP, GATEWAY_GROUP, MERGEWAY_GROUP } from "../../api/resource.ts";
import { hasStatus } from "../../kubernetes/api-error.ts";
import type { ApiObject } from "../../kubernetes/api-object.ts";
import { Backoff, pause } from "../../kubernetes/backoff.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";
import { type ListWatchTiming, listWatch } from "../../kubernetes/list-watch.ts";
import type { KubernetesObserver } from "../../kubernetes/observer.ts";

export interface Installation {
  /**
   * Versions of the Gateway API (`v1.7.0`) that its CRDs say they are of; empty when none is
   * installed or may be read.
   */
  readonly bundleVersions: readonly string[];
  readonly channels: readonly string[];
  /** Whether CRDs may be read at all. */
  readonly isKnown: boolean;
}

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BUNDLE_VERSION = "gateway.networking.k8s.io/bundle-version";
const CHANNEL = "gateway.networking.k8s.io/channel";

export interface InstallationOptions {
  readonly client: KubernetesClient;
  readonly onChange: (installation: Installation) => void;
  /** A CRD has changed in whatever way: kinds may have come or gone. */
  readonly onNews: () => void;
  readonly observer?: KubernetesObserver;
  readonly timing?: Partial<ListWatchTiming>;
}

interface Crd {
  readonly name: string;
  readonly bundle: string | undefined;
  readonly channel: string | undefined;
}

/**
 * Calls back at least once, and then with every change to the CRDs that Mergeway reads objects of.
 */
export async function watchInstallation(options: InstallationOptions, signal: AbortSignal): Promise<void> {
  const { client, onChange, onNews, observer, timing } = options;
  if (!(await mayRead(client, observer, signal))) {
    observer?.log?.("warn", "CustomResourceDefinitions may not be read: new kinds are found by polling");
    onChange({ bundleVersions: [], channels: [], isKnown: false });
    return;
  }
  const crds = new Map<string, Crd>();
  let told = "";
  const tell = (): void => {
    const installation = describe([...crds.values()]);
    const text = JSON.stringify(installation);
    if (text !== told) onChange(installation);
    told = text;
    onNews();
  };
  await listWatch<Crd>(
    {
      client,
      path: CRDS,
      metadataOnly: true,
      read,
      replace: (all) => {
        crds.clear();
        for (const crd of all.filter(isOfInterest)) crds.set(crd.name, crd);
        tell();
      },
      change: (changes) => {
        const ours = changes.filter(({ value }) => isOfInterest(value));
        for (const { type, value } of ours) {
          if (type === "deleted") crds.delete(value.name);
          else crds.set(value.name, value);
        }
        if (ours.length > 0) tell();
      },
      ...(observer === undefined ? {} : { observer }),
      ...(timing === undefined ? {} : { timing }),
    },
    signal,
  );
}

async function mayRead(
  client: KubernetesClient,
  observer: KubernetesObserver | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const backoff = new Backoff({ firstMs: 250, mostMs: 8_000 });
  const accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  while (!signal.aborted) {
    try {
      await client.request({ path: CRDS, query: { limit: 1 }, accept, signal });
      return true;
    } catch (error) {
      if (hasStatus(error, 403)) return false;
      if (!signal.aborted) observer?.log?.("warn", `cannot read CRDs: ${(error as Error).message}`);
      await pause(backoff.next(), signal);
    }
  }
  return false;
}

function read({ metadata: { name, annotations } }: ApiObject): Crd {
  return { name, bundle: annotations?.[BUNDLE_VERSION], channel: annotations?.[CHANNEL] };
}

const GROUPS: readonly string[] = [GATEWAY_GROUP, EXPERIMENTAL_GROUP, MERGEWAY_GROUP];

function isOfInterest({ name }: Crd): boolean {
  return GROUPS.some((group) => name.endsWith(`.${group}`));
}

/**
 * Experimental kinds have a life of their own: XListenerSet stays at the last version that had it.
 */
function describe(crds: readonly Crd[]): Installation {
  const standard = crds.filter(({ name }) => name.endsWith(`.${GATEWAY_GROUP}`));
  return {
    bundleVersions: distinct(standard.map(({ bundle }) => bundle ?? "unknown")),
    channels: distinct(standard.map(({ channel }) => channel ?? "unknown")),
    isKnown: true,
  };
}

function distinct(values: readonly string[]): readonly string[] {
  return [...new Set(values)].sort();
}
