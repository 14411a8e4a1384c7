/**
 * Who may have what at which Gateway: the TenantPolicy that counts at a Gateway is the oldest one
 * that names it. The Gateway's own namespace is the platform's, and is not restricted: whoever
 * writes there can write the policy, too.
 */
import { type Key, keyFor, partsOf } from "../../api/key.ts";
import type { HostnameTransfer, TenantPolicy } from "../../api/tenant-policy.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Entries } from "../../graph/sorted-entries.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { ageRank } from "../foundation/precedence.ts";
import { rightsOf, type TenantRights } from "./tenant-rights.ts";

export interface Tenancy {
  readonly byGateway: Index<TenantPolicy>;
  /** Undefined: nothing restricts the namespace there. */
  readonly rightsAt: (gateway: Key, namespace: string, lookup: Lookup) => EnforcedRights | undefined;
  /** Gateways whose TenantPolicy holds claims. */
  readonly holds: ReadonlyCollection<ClaimHold>;
  /** By {@link placeOfName}; none where the policy only audits. */
  readonly transfers: ReadonlyCollection<HostnameTransfer>;
  /** To whom the Gateway's owner has given the hostname. */
  readonly transferOf: (gateway: Key, hostname: string, lookup: Lookup) => HostnameTransfer["to"] | undefined;
}

/** How claims are held at a Gateway. */
export interface ClaimHold {
  /** False: they are written down, and hold nothing. */
  readonly isEnforced: boolean;
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
  const holds = graph.derive<Entries<{ readonly value: TenantPolicy }>, ClaimHold>(
    "held claims",
    byGateway,
    (_gateway, entries) => {
      const spec = entries.at(0)?.value.spec;
      return spec?.claims === "Hold" ? { isEnforced: spec.enforcement !== "Audit" } : undefined;
    },
  );
  const transfers = graph.expand<Entries<{ readonly value: TenantPolicy }>, HostnameTransfer>(
    "transfers",
    byGateway,
    (gateway, entries) => {
      const spec = entries.at(0)?.value.spec;
      if (spec?.transfers === undefined || spec.enforcement === "Audit") return [];
      return spec.transfers.map((transfer) => [placeOfName(gateway, transfer.hostname), transfer] as const);
    },
  );
  return {
    byGateway,
    holds,
    transfers,
    transferOf: (gateway, hostname, lookup) => lookup.get(transfers, placeOfName(gateway, hostname))?.to,
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

/** A hostname at a Gateway, as a key. */
export function placeOfName(gateway: Key, hostname: string): string {
  return `${gateway}|${hostname}`;
}

export function gatewaysOf({ metadata, spec }: TenantPolicy): readonly Key[] {
  const gateways = spec.targetRefs.map(({ name }) => keyFor("Gateway", metadata.namespace ?? "", name));
  return [...new Set(gateways)];
}
