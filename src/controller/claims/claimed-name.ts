/**
 * What is written down of one hostname: who may ask for it, who has it and since when, who wants
 * it, and who had it before. All of it is bounded.
 */
import type { ClaimedName, ClaimParty, ClaimPast } from "../../api/hostname-claims.ts";
import { type Key, partsOf } from "../../api/key.ts";
import type { UsedHostname } from "../../engine/listeners/claims.ts";

const MOST_PARTIES = 8;
const MOST_PAST = 8;
/** A name that more namespaces use is held for none of them. */
const MOST_NAMESPACES = 8;

/** Undefined: there is nothing to tell. */
export function nextName(
  known: ClaimedName | undefined,
  claim: UsedHostname | undefined,
  { reference, now }: { readonly reference: string; readonly now: string },
): ClaimedName | undefined {
  const holders = parties(claim?.holders, known?.holders, now);
  const wanted = parties(claim?.wanted, known?.wanted, now);
  const history = [...ended(known?.holders ?? [], claim, now), ...(known?.history ?? [])].slice(0, MOST_PAST);
  const namespaces = namespacesOf(claim);
  if (holders.length + wanted.length + history.length + namespaces.length === 0) return undefined;
  return {
    reference,
    namespaces: namespaces.length > MOST_NAMESPACES ? [] : namespaces,
    ...(holders.length === 0 ? {} : { holders }),
    ...(wanted.length === 0 ? {} : { wanted }),
    ...(history.length === 0 ? {} : { history }),
  };
}

function parties(
  owners: readonly Key[] = [],
  known: readonly ClaimParty[] = [],
  now: string,
): readonly ClaimParty[] {
  return owners
    .slice(0, MOST_PARTIES)
    .map((owner) => known.find((party) => party.owner === owner) ?? { owner, since: now });
}

function namespacesOf(claim: UsedHostname | undefined): readonly string[] {
  const using = (claim?.holders ?? []).map((owner) => partsOf(owner).namespace);
  const given = claim?.transfer === undefined ? [] : [claim.transfer.namespace];
  return [...new Set([...using, ...given])].sort();
}

function ended(
  before: readonly ClaimParty[],
  claim: UsedHostname | undefined,
  now: string,
): readonly ClaimPast[] {
  const { holders = [], wanted = [], transfer } = claim ?? {};
  return before
    .filter(({ owner }) => !holders.includes(owner))
    .map(({ owner, since }) => {
      const isGiven = transfer !== undefined && transfer.namespace !== partsOf(owner).namespace;
      const end = !wanted.includes(owner) ? "Released" : isGiven ? "Transferred" : "Lost";
      return { owner, since, until: now, end };
    });
}
