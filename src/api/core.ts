import type { ObjectMeta } from "./metadata.ts";

export interface Namespace {
  readonly apiVersion: string;
  readonly kind: "Namespace";
  readonly metadata: ObjectMeta;
}

export interface Service {
  readonly apiVersion: string;
  readonly kind: "Service";
  readonly metadata: ObjectMeta;
  readonly spec?: {
    readonly type?: string;
    readonly clusterIP?: string;
    readonly externalName?: string;
    readonly ports?: readonly ServicePort[];
  };
  readonly status?: {
    readonly loadBalancer?: {
      readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[];
    };
  };
}

export interface ServicePort {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: string;
  readonly targetPort?: number | string;
  readonly appProtocol?: string;
}

export interface EndpointSlice {
  readonly apiVersion: string;
  readonly kind: "EndpointSlice";
  readonly metadata: ObjectMeta;
  readonly addressType: string;
  readonly endpoints?: readonly {
    readonly addresses: readonly string[];
    readonly conditions?: {
      readonly ready?: boolean;
      readonly serving?: boolean;
      readonly terminating?: boolean;
    };
    readonly zone?: string;
    /** What the endpoint is; read of Gateways' own pods. */
    readonly targetRef?: { readonly kind?: string; readonly name?: string };
  }[];
  readonly ports?: readonly { readonly name?: string; readonly port?: number; readonly protocol?: string }[];
}

/** `data` is base64, as Kubernetes stores it; admission has folded `stringData` in. */
export interface Secret {
  readonly apiVersion: string;
  readonly kind: "Secret";
  readonly metadata: ObjectMeta;
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
}

export interface ConfigMap {
  readonly apiVersion: string;
  readonly kind: "ConfigMap";
  readonly metadata: ObjectMeta;
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
}
