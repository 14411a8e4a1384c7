import type { Condition, ObjectMeta } from "./metadata.ts";
import type { LocalObjectReference, ParentReference } from "./references.ts";

export interface ReferenceGrant {
  readonly apiVersion: string;
  readonly kind: "ReferenceGrant";
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly from: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[];
    readonly to: readonly { readonly group: string; readonly kind: string; readonly name?: string }[];
  };
}

export interface BackendTlsPolicy {
  readonly apiVersion: string;
  readonly kind: "BackendTLSPolicy";
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly targetRefs: readonly PolicyTarget[];
    readonly validation: {
      readonly caCertificateRefs?: readonly LocalObjectReference[];
      readonly wellKnownCACertificates?: string;
      readonly hostname: string;
      readonly subjectAltNames?: readonly {
        readonly type: "Hostname" | "URI";
        readonly hostname?: string;
        readonly uri?: string;
      }[];
    };
    readonly options?: Readonly<Record<string, string>>;
  };
  readonly status?: PolicyStatus;
}

/** What a policy is attached to, in its own namespace (GEP-713). */
export type PolicyTarget = LocalObjectReference & { readonly sectionName?: string };

export interface PolicyStatus {
  readonly ancestors?: readonly PolicyAncestorStatus[];
}

export interface PolicyAncestorStatus {
  readonly ancestorRef: ParentReference;
  readonly controllerName: string;
  readonly conditions?: readonly Condition[];
}
