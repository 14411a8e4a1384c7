import type { ObjectMeta } from "./metadata.ts";

/**
 * How the data plane of a Gateway is run (mergeway.dev/v1alpha1). A GatewayClass refers to one for
 * its defaults, a Gateway to one that overrides them field by field (GEP-1867).
 */
export interface GatewayParameters {
  readonly apiVersion: string;
  readonly kind: "GatewayParameters";
  readonly metadata: ObjectMeta;
  readonly spec?: GatewayParametersSpec;
}

export type DataPlaneName = "embedded" | "envoy" | "tunnel";

export interface GatewayParametersSpec {
  readonly dataPlane?: DataPlaneName;
  readonly replicas?: number;
  readonly image?: string;
  /** Threads that serve traffic. */
  readonly workers?: number;
  readonly accessLog?: AccessLogParameters;
  readonly tenantLimits?: TenantLimitParameters;
  readonly envoy?: EnvoyParameters;
  readonly tracing?: TracingParameters;
  readonly tunnel?: TunnelParameters;
  readonly resources?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly service?: ServiceParameters;
  readonly autoscaling?: {
    readonly minReplicas?: number;
    readonly maxReplicas: number;
    readonly targetCPUUtilizationPercentage?: number;
  };
  readonly podDisruptionBudget?: { readonly minAvailable?: number | string };
  readonly podTemplate?: PodTemplateParameters;
}

/** Of each tenant at each pod; 0 is no limit. */
export interface TenantLimitParameters {
  readonly connections?: number;
  readonly requests?: number;
  readonly backendConnections?: number;
  readonly bufferedBytes?: number;
}

/** A line, a log record of OpenTelemetry, or both for each request. */
export interface AccessLogParameters {
  readonly stdout?: { readonly text?: string };
  readonly otlp?: CollectorParameters;
}

/** A collector that speaks OTLP. */
export interface CollectorParameters {
  readonly endpoint: string;
  readonly protocol?: "HTTP" | "GRPC";
  /** PEM. */
  readonly certificateAuthority?: string;
}

/** Spans of requests. */
export interface TracingParameters {
  readonly otlp: CollectorParameters;
  readonly samplingPercentage?: number;
  readonly clientContext?: "Ignore" | "Continue";
  readonly overrides?: readonly {
    readonly kind: "Gateway" | "ListenerSet" | "XListenerSet" | "HTTPRoute" | "GRPCRoute";
    readonly namespace: string;
    readonly name: string;
    readonly samplingPercentage: number;
  }[];
}

/** Of the data plane `envoy` alone. */
export interface EnvoyParameters {
  readonly image?: string;
  /** Of the container that gives Envoy its configuration. */
  readonly agentResources?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Of the data plane `tunnel` alone. Secrets are those of the parameters' own namespace. */
export interface TunnelParameters {
  readonly accountId?: string;
  readonly credentialsSecretRef?: SecretKeyReference;
  readonly name?: string;
  readonly tunnelId?: string;
  readonly tunnelTokenSecretRef?: SecretKeyReference;
  readonly deletionPolicy?: "Delete" | "Retain";
  readonly protocol?: "http2" | "quic" | "auto";
  readonly connections?: number;
  readonly image?: string;
  readonly resources?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface SecretKeyReference {
  readonly name: string;
  readonly key?: string;
}

export interface ServiceParameters {
  readonly type?: "LoadBalancer" | "ClusterIP" | "NodePort";
  readonly annotations?: Readonly<Record<string, string>>;
  readonly loadBalancerClass?: string;
  readonly externalTrafficPolicy?: "Cluster" | "Local";
}

export interface PodTemplateParameters {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Readonly<Record<string, unknown>>[];
  readonly affinity?: Readonly<Record<string, unknown>>;
  readonly topologySpreadConstraints?: readonly Readonly<Record<string, unknown>>[];
  readonly priorityClassName?: string;
  readonly imagePullSecrets?: readonly { readonly name: string }[];
  readonly terminationGracePeriodSeconds?: number;
}
