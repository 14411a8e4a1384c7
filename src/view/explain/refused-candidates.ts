/**
 * Candidates that the routing table never saw: listeners that hold nothing, and routes that no
 * listener took.
 */
import { hostnameOf, normalizeName } from "../../matching/authority.ts";
import type { CandidateListener, Elimination, ExplainedRequest } from "../../matching/explain/explanation.ts";
import { matchesName } from "../../plan/hostname.ts";
import type { RuleOrigin } from "../../plan/rule.ts";
import { describeListener, type ListenerView, type MergedState, type OwnerView } from "../merged-state.ts";

export interface RefusedCandidate {
  readonly listener?: CandidateListener;
  readonly route?: Pick<RuleOrigin, "kind" | "namespace" | "name">;
  readonly rule: "conflict" | "not-accepted" | "not-attached";
  readonly reason: string;
}

export type EliminatedCandidate = Elimination | RefusedCandidate;

export function refusedCandidates(
  state: MergedState,
  request: Omit<ExplainedRequest, "clientCertificate">,
): RefusedCandidate[] {
  const names = [hostnameOf(request.authority), normalizeName(request.sni ?? hostnameOf(request.authority))];
  const lost: RefusedCandidate[] = [];
  for (const { owners, namespace, name } of state.gateways) {
    if (request.gateway !== undefined && request.gateway !== `${namespace}/${name}`) continue;
    for (const owner of owners) {
      for (const listener of owner.listeners) {
        if (listener.state !== "conflicted" && listener.state !== "refused") continue;
        const wanted = names.some((each) => matchesName(listener.hostname, each));
        if (listener.port === request.port && wanted) lost.push(refusedListener(owner, listener));
      }
    }
  }
  for (const { kind, namespace, name, parents, hostnames } of state.strayRoutes) {
    if (hostnames.length > 0 && !hostnames.some((each) => matchesName(each, names[0] ?? ""))) continue;
    for (const { parent, reason, message } of parents) {
      lost.push({
        route: { kind: kind as RuleOrigin["kind"], namespace, name },
        rule: "not-attached",
        reason: `${reason} at ${parent.kind} ${parent.namespace}/${parent.name}: ${message}`,
      });
    }
  }
  return lost;
}

function refusedListener({ kind, namespace, name }: OwnerView, listener: ListenerView): RefusedCandidate {
  const { section, hostname, state, reason, message, heldBy } = listener;
  const holder = heldBy === undefined ? "" : `; held by ${describeListener(heldBy)}`;
  return {
    listener: { kind: kind as CandidateListener["kind"], namespace, name, section, hostname },
    rule: state === "conflicted" ? "conflict" : "not-accepted",
    reason: `${reason}: ${message}${holder}`,
  };
}
