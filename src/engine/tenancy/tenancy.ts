/**
 * Who may have what at which Gateway: the TenantPolicy that counts at a Gateway is the oldest one
 * that names it. The Gateway's own namespace is the platform's, and is not restricted: whoever
 * writes there can write the policy, too.
 */
import { type Key, keyFor, partsOf } from "../../api/key.ts";
import type { TenantPolicy } from "../../api/tenant-policy.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { ageRank } from "../foundation/precedence.ts";
import { rightsOf, type TenantRights } from "./tenant-rights.ts";

export interface Tenancy {
  readonly byGateway: Index<TenantPolicy>;
  /** Undefined: nothing restricts the namespace there. */
  readonly rightsAt: (gateway: Key, namespace: string, lookup: Lookup) => EnforcedRights | undefined;
}

export interface EnforcedRights {
  readonly rights: TenantRights;
  /** False: what is against them is counted, and served all the same. */
  readonly isEnforced: boolean;
}

export function deriveTenancy(graph: Graph, inputs: Inputs): Tenancy {
  const byGateway = graph.index("tenant policies by gateway", inputs.tenantPolicies, (_key, policy) =>
    gatewaysOf(policy).map((at) => ({ at, sort: ageRank(policy.metadata) })),
  );
  return {
    byGateway,
    rightsAt(gateway, namespace, lookup) {
      if (partsOf(gateway).namespace === namespace) return undefined;
      const policy = lookup.first(byGateway, gateway)?.value;
      if (policy === undefined) return undefined;
      const labels = lookup.get(inputs.namespaces, keyFor("Namespace", "", namespace))?.metadata.labels;
      const rights = rightsOf(policy.spec, namespace, labels ?? { "kubernetes.io/metadata.name": namespace });
      return { rights, isEnforced: policy.spec.enforcement !== "Audit" };
    },
  };
}

export function gatewaysOf({ metadata, spec }: TenantPolicy): readonly Key[] {
  const gateways = spec.targetRefs.map(({ name }) => keyFor("Gateway", metadata.namespace ?? "", name));
  return [...new Set(gateways)];
}
