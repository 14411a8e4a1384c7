/** Which of the kinds that Mergeway reads the API server serves, and in which version. */
import { GROUP_OF_KIND, type Kind } from "../../api/resource.ts";
import { hasStatus } from "../../kubernetes/api-error.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";
import { groupVersion } from "../../kubernetes/kinds.ts";

/** The served version (`group/version`) by kind; kinds that are not installed are absent. */
export type Served = ReadonlyMap<Kind, string>;

interface GroupList {
  readonly groups?: readonly {
    readonly name: string;
    readonly versions?: readonly { readonly version: string }[];
  }[];
}

interface ResourceList {
  readonly resources?: readonly { readonly name: string; readonly kind: string }[] | null;
}

export async function discover(
  client: KubernetesClient,
  kinds: readonly Kind[],
  signal: AbortSignal,
): Promise<Served> {
  const { groups = [] } = await client.request<GroupList>({ path: "/apis", signal });
  const served = new Map<Kind, string>();
  for (const group of new Set(kinds.map((kind) => GROUP_OF_KIND[kind]))) {
    const wanted = kinds.filter((kind) => GROUP_OF_KIND[kind] === group);
    const versions = groups.find(({ name }) => name === group)?.versions ?? [];
    for (const { version } of [...versions].sort(newestFirst)) {
      if (wanted.every((kind) => served.has(kind))) break;
      const found = await kindsIn(client, `/apis/${group}/${version}`, signal);
      for (const kind of wanted) {
        if (!served.has(kind) && found.has(kind)) served.set(kind, groupVersion(kind, version));
      }
    }
  }
  return served;
}

async function kindsIn(
  client: KubernetesClient,
  path: string,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  try {
    const { resources } = await client.request<ResourceList>({ path, signal });
    return new Set((resources ?? []).filter(({ name }) => !name.includes("/")).map(({ kind }) => kind));
  } catch (error) {
    // The last CRD of this version has gone since the groups were read.
    if (hasStatus(error, 404)) return new Set();
    throw error;
  }
}

/** Kubernetes' own order of versions: stable before beta before alpha, and higher numbers first. */
export function newestFirst(a: { readonly version: string }, b: { readonly version: string }): number {
  const left = rankOf(a.version);
  const right = rankOf(b.version);
  return right.stage - left.stage || right.major - left.major || right.minor - left.minor;
}

const STAGES: readonly (string | undefined)[] = ["alpha", "beta", undefined];

function rankOf(version: string): { readonly stage: number; readonly major: number; readonly minor: number } {
  const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (match === null) return { stage: -1, major: 0, minor: 0 };
  return { stage: STAGES.indexOf(match[2]), major: Number(match[1]), minor: Number(match[3] ?? 0) };
}
