import type { LabelSelector, ObjectMeta } from "./metadata.ts";
import type { PolicyStatus, PolicyTarget } from "./policies.ts";

/** Which namespaces may have what at a Gateway (mergeway.dev/v1alpha1); written by its owner. */
export interface TenantPolicy {
  readonly apiVersion: string;
  readonly kind: "TenantPolicy";
  readonly metadata: ObjectMeta;
  readonly spec: {
    /** No field of the API: why a source could not read the settings. */
    readonly unreadable?: string;
    readonly targetRefs: readonly PolicyTarget[];
    readonly enforcement: "Enforce" | "Audit";
    readonly unmatchedNamespaces: "Deny" | "Allow";
    readonly reservedHostnames?: readonly string[];
    /** The first one that selects a namespace decides for it. */
    readonly rules?: readonly TenantRule[];
  };
  readonly status?: PolicyStatus;
}

export interface TenantRule {
  readonly name?: string;
  readonly namespaceSelector: LabelSelector;
  readonly hostnames: { readonly allow: readonly string[]; readonly deny?: readonly string[] };
  readonly ports?: readonly { readonly port: number; readonly endPort?: number }[];
  readonly protocols?: readonly string[];
  readonly quota?: { readonly listeners?: number };
}
