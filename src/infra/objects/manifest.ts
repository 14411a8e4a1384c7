/**
 * What all objects of a Gateway's infrastructure are made from, and what they have in common: name,
 * labels, owner.
 */
import type { Gateway } from "../../api/gateway.ts";
import type { DataPlaneName, GatewayParametersSpec } from "../../api/gateway-parameters.ts";
import { GATEWAY_NAME_ANNOTATION, infrastructureLabels, infrastructureName } from "./names.ts";

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly ownerReferences: readonly unknown[];
  };
  readonly [field: string]: unknown;
}

export interface ServedPort {
  readonly transport: "tcp" | "udp";
  readonly port: number;
}

/** What the controller tells every data plane pod. */
export interface DataPlaneContext {
  /** Of Gateways whose parameters do not choose one. */
  readonly dataPlane: DataPlaneName;
  readonly image: string;
  readonly envoyImage: string;
  readonly cloudflaredImage: string;
  /** `host:port` of the controller's stream. */
  readonly controller: string;
  /** PEM of the authority that signs the controller's certificate. */
  readonly authority: string;
  readonly tokenAudience: string;
  /** Whether pods count traffic and tell it. */
  readonly metrics: boolean;
  /**
   * What the kubelet shows when it asks a pod of this Gateway (by uid) to drain; nobody else may.
   */
  readonly drainToken: (uid: string) => string;
}

export interface InfrastructureRequest {
  readonly gateway: Gateway;
  readonly parameters: GatewayParametersSpec;
  readonly ports: readonly ServedPort[];
  /** Where the token of the Gateway's tunnel is, as soon as it has one. */
  readonly tunnel?: TunnelCredentials;
}

/** A key of a Secret in the Gateway's namespace. */
export interface TunnelCredentials {
  readonly secret: string;
  readonly key: string;
  /** Another one when the token is another. */
  readonly digest: string;
}

export function metadata(
  { gateway }: InfrastructureRequest,
  extra: { annotations?: Readonly<Record<string, string>>; suffix?: string } = {},
): Manifest["metadata"] {
  const annotations = {
    ...gateway.spec.infrastructure?.annotations,
    ...extra.annotations,
    [GATEWAY_NAME_ANNOTATION]: gateway.metadata.name,
  };
  return {
    name: `${infrastructureName(gateway)}${extra.suffix ?? ""}`,
    namespace: gateway.metadata.namespace ?? "",
    labels: infrastructureLabels(gateway),
    annotations,
    ownerReferences: [
      {
        apiVersion: gateway.apiVersion,
        kind: "Gateway",
        name: gateway.metadata.name,
        uid: gateway.metadata.uid ?? "",
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  };
}
