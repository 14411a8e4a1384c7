/** Reads the HostnameClaims of a cluster, with the caller's rights. */
import type { ClaimedName, HostnameClaims } from "../../api/hostname-claims.ts";
import { hasStatus } from "../../kubernetes/api-error.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";

export interface FoundClaim {
  /** `namespace/name`. */
  readonly gateway: string;
  /** `*` is that of listeners without a hostname. */
  readonly hostname: string;
  readonly claim: ClaimedName;
}

/** None where the kind is not installed, or the caller may not read it. */
export async function readClaims(
  client: KubernetesClient,
  signal: AbortSignal,
  namespaces: readonly string[] = [],
): Promise<readonly FoundClaim[]> {
  const places = namespaces.length === 0 ? [""] : namespaces.map((each) => `/namespaces/${each}`);
  const lists = await Promise.all(places.map((place) => listClaims(client, place, signal)));
  return lists.flat().flatMap(({ metadata, spec }) =>
    Object.entries(spec?.names ?? {}).map(([hostname, claim]) => ({
      gateway: `${metadata.namespace ?? ""}/${spec.gateway}`,
      hostname,
      claim,
    })),
  );
}

async function listClaims(
  client: KubernetesClient,
  place: string,
  signal: AbortSignal,
): Promise<readonly HostnameClaims[]> {
  try {
    const path = `/apis/mergeway.dev/v1alpha1${place}/hostnameclaims`;
    const { items } = await client.request<{ readonly items?: readonly HostnameClaims[] }>({ path, signal });
    return items ?? [];
  } catch (error) {
    if (hasStatus(error, 404) || hasStatus(error, 403)) return [];
    throw error;
  }
}

/** Who has it, wants it and had it, a line for each. */
export function claimLines({ claim }: FoundClaim): readonly string[] {
  const { holders = [], wanted = [], history = [], namespaces } = claim;
  const given = namespaces.filter((each) => !holders.some(({ owner }) => owner.split("/")[1] === each));
  return [
    ...holders.map(({ owner, since }) => `  has it     ${shown(owner)}, since ${since}`),
    ...(holders.length === 0 ? ["  nobody has it"] : []),
    ...given.map((namespace) => `  may ask    namespace ${namespace}, by a transfer`),
    ...wanted.map(({ owner, since }) => `  wants it   ${shown(owner)}, since ${since}`),
    ...history.map(
      ({ owner, since, until, end }) =>
        `  had it     ${shown(owner)}, from ${since} to ${until}: ${ENDS[end] ?? end}`,
    ),
  ];
}

const ENDS = {
  Released: "it asks for it no more",
  Transferred: "the Gateway's owner gave it to somebody else",
  Lost: "somebody else came first",
} as const;

function shown(owner: string): string {
  const [kind, ...rest] = owner.split("/");
  return `${kind} ${rest.join("/")}`;
}
