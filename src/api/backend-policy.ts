import type { ObjectMeta } from "./metadata.ts";
import type { PolicyStatus, PolicyTarget } from "./policies.ts";

/** How the data planes of a Gateway reach their backends (mergeway.dev/v1alpha1). */
export interface BackendPolicy {
  readonly apiVersion: string;
  readonly kind: "BackendPolicy";
  readonly metadata: ObjectMeta;
  readonly spec: {
    /** No field of the API: why a source could not read the settings. */
    readonly unreadable?: string;
    readonly targetRefs: readonly PolicyTarget[];
    readonly defaults?: WrittenBackendSettings;
    readonly overrides?: WrittenBackendSettings;
  };
  readonly status?: PolicyStatus;
}

export interface WrittenBackendSettings {
  readonly loadBalancing?: {
    readonly type: "RoundRobin" | "LeastRequest" | "Random" | "ConsistentHash";
    readonly consistentHash?: {
      readonly key: "Header" | "Cookie" | "ClientAddress";
      readonly header?: string;
      readonly cookie?: string;
    };
  };
  readonly sessionPersistence?: {
    readonly type: "Cookie" | "Header";
    readonly cookie?: { readonly name: string; readonly lifetimeType: "Session" | "Permanent" };
    readonly header?: { readonly name: string };
    readonly absoluteTimeout?: string;
  };
  readonly limits?: {
    readonly connections?: number;
    readonly pendingRequests?: number;
    readonly requests?: number;
  };
}
