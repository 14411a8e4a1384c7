import { hostnameOf } from "../../matching/authority.ts";
import { explainRequest } from "../../matching/explain/explain.ts";
import type { RoutingTable } from "../../matching/routing-table.ts";
import { validationAt } from "../../plan/client-validation.ts";
import type { PortItem } from "../../plan/plan.ts";
import type { MergedState } from "../merged-state.ts";
import type { AskedRequest } from "./asked-request.ts";
import { effectivePolicy } from "./effective-policy.ts";
import type { FullExplanation } from "./full-explanation.ts";
import { refusedCandidates } from "./refused-candidates.ts";

/** What the routing table says, and the candidates that are not in the table. */
export function explain(table: RoutingTable, state: MergedState, asked: AskedRequest): FullExplanation {
  const { request } = asked;
  const port = [...table.ports()].find(
    (candidate) =>
      candidate.port === request.port &&
      (request.gateway === undefined || candidate.gateway === request.gateway),
  );
  const clientCertificate = isAccepted(asked, port, table);
  const explanation = explainRequest(table, { ...request, clientCertificate });
  const { outcome, eliminated, guards: _, ...rest } = explanation;
  return {
    outcome,
    ...rest,
    policy: effectivePolicy(state, explanation, port),
    eliminated: [...eliminated, ...refusedCandidates(state, request)],
  };
}

function isAccepted(
  { certificate, request }: AskedRequest,
  port: PortItem | undefined,
  table: RoutingTable,
): boolean {
  if (certificate === undefined || certificate === "valid") return certificate === "valid";
  const listener = port && table.listenerFor(port.id, request.sni ?? hostnameOf(request.authority));
  const asked = listener && validationAt(listener, port);
  if (asked === undefined || !certificate.carriesOne(asked.subjectAltNames)) return false;
  return asked.authorities.some((bundle) => certificate.isSignedBy(bundle));
}
