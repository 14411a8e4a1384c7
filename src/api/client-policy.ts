import type { ObjectMeta } from "./metadata.ts";
import type { PolicyStatus, PolicyTarget } from "./policies.ts";

/** How the ports of a Gateway treat their clients (mergeway.dev/v1alpha1). */
export interface ClientPolicy {
  readonly apiVersion: string;
  readonly kind: "ClientPolicy";
  readonly metadata: ObjectMeta;
  readonly spec: {
    /** No field of the API: why a source could not read the settings. */
    readonly unreadable?: string;
    readonly targetRefs: readonly PolicyTarget[];
    readonly defaults?: ClientSettings;
    readonly overrides?: ClientSettings;
  };
  readonly status?: PolicyStatus;
}

export interface ClientCertificates {
  readonly caCertificateRefs: readonly {
    readonly group?: string;
    readonly kind?: string;
    readonly name: string;
  }[];
  readonly mode?: "AllowValidOnly" | "AllowInsecureFallback";
  readonly subjectAltNames?: readonly {
    readonly type: "Hostname" | "URI";
    readonly hostname?: string;
    readonly uri?: string;
  }[];
  readonly forward?: "Names" | "Certificate";
}

export interface ClientSettings {
  readonly tls?: { readonly clientCertificates?: ClientCertificates };
  readonly clientAddress?: {
    readonly proxyProtocol?: "Required" | "Optional";
    readonly forwardedFor?: {
      readonly trustedHops?: number;
      readonly trustedNetworks?: readonly string[];
    };
  };
  readonly headerLimits?: {
    readonly maxSize?: string;
    readonly maxCount?: number;
    readonly timeout?: string;
  };
  readonly connections?: { readonly idleTimeout?: string; readonly maxConcurrentStreams?: number };
}
