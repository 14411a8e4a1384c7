/**
 * What a Gateway itself refers to: the client certificate that it shows to backends
 * (spec.tls.backend).
 */

import type { Key } from "../../api/key.ts";
import { GATEWAY_GROUP } from "../../api/resource.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { ItemReport } from "../../plan/item-report.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { certificateId } from "../foundation/item-ids.ts";
import type { Failure } from "../foundation/verdict.ts";
import { type Certificates, resolveKeyPair } from "../references/certificates.ts";
import type { Grants } from "../references/grants.ts";
import type { GatewayState } from "./gateways.ts";

export interface GatewayReferences {
  /** Whether the Gateway has its own data plane: it is a root and has no problem. */
  readonly served: boolean;
  readonly clientCertificate?: Key;
  readonly unresolved?: Failure;
}

export function deriveGatewayReferences(
  graph: Graph,
  inputs: Inputs,
  states: ReadonlyCollection<GatewayState>,
  resolvers: { readonly certificates: Certificates; readonly grants: Grants },
): ReadonlyCollection<GatewayReferences> {
  return graph.derive<GatewayState, GatewayReferences>("gateway references", states, (key, state, lookup) => {
    const served = !state.isChild && state.problem === undefined;
    const gateway = lookup.get(inputs.gateways, key);
    const reference = gateway?.spec.tls?.backend?.clientCertificateRef;
    if (gateway === undefined || reference === undefined) return { served };
    const from = { group: GATEWAY_GROUP, kind: "Gateway", namespace: gateway.metadata.namespace ?? "" };
    const result = resolveKeyPair(reference, from, lookup, resolvers);
    if ("value" in result) {
      // A rejected certificate stays in the plan: otherwise no data plane would report when it is
      // accepted.
      const report = lookup.get(inputs.reports, certificateId(key, result.value));
      const unresolved = report?.state === "rejected" ? { unresolved: refusedByDataPlane(report) } : {};
      return { served, clientCertificate: result.value, ...unresolved };
    }
    const { reason, message } = result.failure;
    const own = reason === "RefNotPermitted" ? reason : "InvalidClientCertificateRef";
    return {
      served,
      unresolved: { reason: own, message: `spec.tls.backend.clientCertificateRef: ${message}` },
    };
  });
}

function refusedByDataPlane({ message = "the data plane refuses the certificate" }: ItemReport): Failure {
  return {
    reason: "InvalidClientCertificateRef",
    message: `spec.tls.backend.clientCertificateRef: ${message}`,
  };
}
