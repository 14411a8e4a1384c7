import type { Listener } from "../api/gateway.ts";
import { type Key, keyFor } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import { decidingRule, type PrecedenceRule, type Rank } from "../engine/foundation/precedence.ts";
import type { Verdict } from "../engine/foundation/verdict.ts";
import { listenerKey } from "../engine/listeners/listeners.ts";
import type { MergedListener } from "../engine/listeners/merge.ts";
import type { Owner } from "../engine/listeners/owners.ts";
import type { ListenerVerdict } from "../engine/verdicts/verdicts.ts";
import { certificateFacts } from "./certificate-facts.ts";
import {
  type CertificateView,
  type ListenerState,
  type ListenerView,
  listenerRefOf,
  type PolicyView,
  type RouteView,
} from "./merged-state.ts";

export interface ListenerSources {
  readonly resources: ReadonlyMap<Key, Resource>;
  readonly merged: ReadonlyMap<string, MergedListener>;
  /** Ranks of owners. */
  readonly ranks: ReadonlyMap<Key, Rank>;
  /** Routes by the key of the listener that they are attached to. */
  readonly routes: ReadonlyMap<string, readonly RouteView[]>;
}

export function buildListener(
  {
    owner,
    place,
    verdict,
    policies,
  }: {
    readonly owner: Owner;
    readonly place: number;
    readonly verdict: ListenerVerdict;
    readonly policies: readonly PolicyView[];
  },
  { resources, merged, ranks, routes }: ListenerSources,
): ListenerView {
  const key = listenerKey(owner.key, verdict.name);
  const spec = owner.listeners[place];
  const { state, reason, message } = stateOf(verdict.conditions);
  const resolved = verdict.conditions.find(({ type }) => type === "ResolvedRefs");
  const decidedBy = verdict.heldBy === undefined ? undefined : ruleAgainst(owner, verdict.heldBy, ranks);
  const accepted = state !== "refused" && state !== "conflicted";
  return {
    key,
    section: verdict.name,
    port: verdict.port,
    protocol: spec?.protocol ?? "",
    hostname: merged.get(key)?.hostname ?? spec?.hostname ?? "",
    state,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    ...(accepted && resolved?.status === "False"
      ? { unresolved: { reason: resolved.reason, message: resolved.message } }
      : {}),
    ...(verdict.heldBy === undefined ? {} : { heldBy: listenerRefOf(verdict.heldBy) }),
    ...(decidedBy === undefined ? {} : { decidedBy }),
    certificates: certificatesOf(spec, owner.namespace, resources),
    policies,
    attachedRoutes: verdict.attachedRoutes,
    routes: routes.get(key) ?? [],
  };
}

/**
 * The first condition that is not as it should be decides, in the order in which a listener comes
 * into being.
 */
export function stateOf(conditions: readonly Verdict[]): {
  readonly state: ListenerState;
  readonly reason?: string;
  readonly message?: string;
} {
  const of = (type: string): Verdict | undefined => conditions.find((condition) => condition.type === type);
  const conflicted = of("Conflicted");
  if (conflicted?.status === "True") return { state: "conflicted", ...why(conflicted) };
  const accepted = of("Accepted");
  if (accepted !== undefined && accepted.status !== "True") return { state: "refused", ...why(accepted) };
  const programmed = of("Programmed");
  if (programmed === undefined || programmed.status === "True") return { state: "serving" };
  return { state: programmed.reason === "Pending" ? "waiting" : "failed", ...why(programmed) };
}

function ruleAgainst(
  { rank }: Owner,
  holder: string,
  ranks: ReadonlyMap<Key, Rank>,
): PrecedenceRule | undefined {
  const other = ranks.get(holder.slice(0, holder.lastIndexOf("#")));
  // A holder that does not come first was given the hostname by the Gateway's owner.
  return other === undefined || other > rank ? undefined : decidingRule(other, rank);
}

function why({ reason, message }: Verdict): { readonly reason: string; readonly message: string } {
  return { reason, message };
}

function certificatesOf(
  spec: Listener | undefined,
  namespace: string,
  resources: ReadonlyMap<Key, Resource>,
): CertificateView[] {
  return (spec?.tls?.certificateRefs ?? []).map((reference) => {
    const home = reference.namespace ?? namespace;
    const secret = `${home}/${reference.name}`;
    const resource = resources.get(keyFor("Secret", home, reference.name));
    if (resource?.kind !== "Secret") return { secret, names: [], problem: "does not exist" };
    const facts = certificateFacts(resource);
    return "problem" in facts ? { secret, names: [], problem: facts.problem } : { secret, ...facts };
  });
}
