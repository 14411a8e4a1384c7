/**
 * BackendTLSPolicy: how a Gateway speaks TLS to a Service. A policy for one port (sectionName)
 * comes before one for the whole Service; of two with the same target the older one counts and the
 * other is Conflicted. A policy that cannot be applied closes the backend rather than leaving it
 * open.
 */
import { type Key, keyFor } from "../../api/key.ts";
import type { BackendTlsPolicy } from "../../api/policies.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { BackendTls } from "../../plan/backend.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { targetKey } from "../foundation/policy-targets.ts";
import { ageRank } from "../foundation/precedence.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { Certificates } from "./certificates.ts";

export interface BackendPolicies {
  readonly evaluated: ReadonlyCollection<EvaluatedPolicy>;
  readonly byTarget: Index<EvaluatedPolicy>;
}

export interface EvaluatedPolicy {
  readonly key: Key;
  readonly rank: string;
  /** `serviceKey|section`, the section empty for the whole Service. */
  readonly targets: readonly string[];
  readonly tls?: BackendTls;
  /** Why connections must not be made. */
  readonly refused?: string;
  readonly accepted?: Failure;
  readonly resolved?: Failure;
}

export function derivePolicies(graph: Graph, inputs: Inputs, certificates: Certificates): BackendPolicies {
  const evaluated = graph.derive<BackendTlsPolicy, EvaluatedPolicy>(
    "backend policies",
    inputs.policies,
    (key, policy, lookup) => {
      const namespace = policy.metadata.namespace ?? "";
      const authorities = resolveAuthorities(policy, lookup, certificates);
      return {
        key,
        rank: ageRank(policy.metadata),
        targets: policy.spec.targetRefs
          .filter(({ group, kind }) => group === "" && kind === "Service")
          .map(({ name, sectionName }) => targetKey(keyFor("Service", namespace, name), sectionName)),
        ...("tls" in authorities ? { tls: authorities.tls } : {}),
        ...("refused" in authorities ? { refused: authorities.refused } : {}),
        ...(authorities.accepted === undefined ? {} : { accepted: authorities.accepted }),
        ...(authorities.resolved === undefined ? {} : { resolved: authorities.resolved }),
      };
    },
  );
  const byTarget = graph.index("policies by target", evaluated, (_key, { targets, rank }) =>
    targets.map((at) => ({ at, sort: rank })),
  );
  return { evaluated, byTarget };
}

export function policyFor(
  service: Key,
  portName: string | undefined,
  lookup: Lookup,
  { byTarget }: BackendPolicies,
): EvaluatedPolicy | undefined {
  const forPort = portName ? lookup.first(byTarget, targetKey(service, portName))?.value : undefined;
  return forPort ?? lookup.first(byTarget, targetKey(service, undefined))?.value;
}

/** Whether an older policy has the same target. */
export function isOverruled(
  policy: EvaluatedPolicy,
  target: string,
  lookup: Lookup,
  { byTarget }: BackendPolicies,
): boolean {
  return lookup.first(byTarget, target)?.key !== policy.key;
}

/** As the API has it (PreciseHostname); whatever the installed version of it lets through. */
const HOSTNAME = /^[-0-9A-Za-z._]{1,253}$/;

interface Authorities {
  readonly tls?: BackendTls;
  readonly refused?: string;
  readonly accepted?: Failure;
  readonly resolved?: Failure;
}

function resolveAuthorities(
  policy: BackendTlsPolicy,
  lookup: Lookup,
  certificates: Certificates,
): Authorities {
  const { validation } = policy.spec;
  if (!HOSTNAME.test(validation.hostname)) {
    const message = "validation.hostname is not a hostname";
    return { refused: message, accepted: { reason: "Invalid", message } };
  }
  const namespace = policy.metadata.namespace ?? "";
  const subjectAltNames = (validation.subjectAltNames ?? []).map(({ type, hostname, uri }) => ({
    type,
    value: (type === "URI" ? uri : hostname) ?? "",
  }));
  const tls = { hostname: validation.hostname, subjectAltNames };
  const references = validation.caCertificateRefs ?? [];
  if (references.length === 0) {
    if (validation.wellKnownCACertificates === "System") return { tls: { ...tls, authorities: "system" } };
    const message = `wellKnownCACertificates ${validation.wellKnownCACertificates ?? ""} is not supported`;
    return { refused: message, accepted: { reason: "Invalid", message } };
  }
  const bundles: string[] = [];
  let resolved: Failure | undefined;
  for (const { group, kind, name } of references) {
    if (group !== "" || kind !== "ConfigMap") {
      resolved ??= {
        reason: "InvalidKind",
        message: `caCertificateRefs: ${kind} ${name} is not a ConfigMap`,
      };
      continue;
    }
    const reading = lookup.get(certificates.authorities, keyFor("ConfigMap", namespace, name));
    if (reading !== undefined && "pem" in reading) bundles.push(reading.pem);
    else {
      const why = reading === undefined ? "does not exist" : `cannot be used: ${reading.problem}`;
      resolved ??= {
        reason: "InvalidCACertificateRef",
        message: `caCertificateRefs: ConfigMap ${name} ${why}`,
      };
    }
  }
  if (bundles.length > 0) {
    return { tls: { ...tls, authorities: bundles }, ...(resolved === undefined ? {} : { resolved }) };
  }
  const message = "no CA certificate of the policy can be used";
  return {
    refused: message,
    accepted: { reason: "NoValidCACertificate", message },
    ...(resolved === undefined ? {} : { resolved }),
  };
}
