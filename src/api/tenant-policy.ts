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
    /** A hostname in use is not given to another namespace by admission. */
    readonly claims?: "Hold";
    readonly transfers?: readonly HostnameTransfer[];
  };
  readonly status?: PolicyStatus;
}

/** The Gateway's owner gives a hostname to a namespace, or to one of its sets or children. */
export interface HostnameTransfer {
  readonly hostname: string;
  readonly to: { readonly namespace: string; readonly name?: string };
}

export interface TenantRule {
  readonly name?: string;
  readonly namespaceSelector: LabelSelector;
  readonly hostnames: { readonly allow: readonly string[]; readonly deny?: readonly string[] };
  readonly ports?: readonly { readonly port: number; readonly endPort?: number }[];
  readonly protocols?: readonly string[];
  /** Kinds of routes; absent means any. */
  readonly routeKinds?: readonly string[];
  readonly quota?: TenantQuota;
}

/** What one namespace may have at a Gateway. */
export interface TenantQuota {
  readonly listeners?: number;
  readonly hostnames?: number;
  readonly wildcards?: number;
  readonly ports?: number;
  readonly certificates?: number;
  readonly routes?: number;
  readonly rules?: number;
}
