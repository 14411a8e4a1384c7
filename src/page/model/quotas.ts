/** How much of their quotas namespaces use at a Gateway, those at a limit first. */
import type { OutlineGateway } from "../../view/outline.ts";
import type { Tone } from "./row-text.ts";

export interface QuotaRow {
  readonly namespace: string;
  /** Of the TenantPolicy. */
  readonly rule?: string;
  readonly uses: readonly { readonly text: string; readonly tone: Tone }[];
}

const URGENCY: readonly Tone[] = ["bad", "warn", "quiet"];

/** Of one namespace, where it is given. */
export function quotaRows({ owners }: OutlineGateway, namespace?: string): readonly QuotaRow[] {
  const quotas = owners.flatMap(({ policies }) => policies.flatMap((policy) => policy.quotas ?? []));
  return quotas
    .filter((quota) => namespace === undefined || quota.namespace === namespace)
    .map(({ resources, ...quota }) => ({
      ...quota,
      uses: resources.map(({ resource, used, limit }) => ({
        text: `${resource} ${used} of ${limit}`,
        tone: toneOf(used, limit),
      })),
    }))
    .sort((a, b) => urgencyOf(a) - urgencyOf(b) || (a.namespace < b.namespace ? -1 : 1));
}

/** As `mergeway status` colours it: what is beyond the limit is refused. */
function toneOf(used: number, limit: number): Tone {
  if (used > limit) return "bad";
  return used > 0 && used * 10 >= limit * 9 ? "warn" : "quiet";
}

function urgencyOf({ uses }: QuotaRow): number {
  return Math.min(URGENCY.length, ...uses.map(({ tone }) => URGENCY.indexOf(tone)));
}
