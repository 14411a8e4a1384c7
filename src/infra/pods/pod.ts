/**
 * What pods of every form have: our own program, fed by the controller's stream, with its state on
 * disk and its probes.
 */
import { POD_VARIABLES, type PodSettings, podEnvironment } from "../../agent/environment.ts";
import type { DataPlaneContext, InfrastructureRequest } from "../objects/manifest.ts";

/** What a data plane needs in a pod; the Deployment around it is the same for all. */
export interface PodParts {
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes: readonly Readonly<Record<string, unknown>>[];
}

export type Container = Readonly<Record<string, unknown>> & { readonly name: string };

export interface PodForm {
  /** Undefined while there cannot be a pod. */
  readonly parts: (request: InfrastructureRequest, context: DataPlaneContext) => PodParts | undefined;
  /** Whether clients come in through Services with addresses. */
  readonly services: "addressed" | "headless";
}

/**
 * Ports of the pod itself, outside of anything that a listener may use by accident: probes and
 * draining.
 */
export const ADMIN_PORT = 19901;

/**
 * Readiness decides whether clients are sent to a pod: whoever serves them answers it. Patient,
 * since all pods of a Gateway work on the same change at the same time: a busy pod that leaves its
 * Services sends its clients to others that are as busy, or to nobody.
 */
export function readinessProbe(port: string): Readonly<Record<string, unknown>> {
  return { httpGet: { path: "/readyz", port }, periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 3 };
}

/** Only for what hangs for good: a process that is merely slow would be slower after a restart. */
const LIVENESS = { periodSeconds: 30, timeoutSeconds: 30, failureThreshold: 10 } as const;

export const RESTRICTED_CONTAINER = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  readOnlyRootFilesystem: true,
} as const;

export function graceSeconds({ parameters }: InfrastructureRequest): number {
  return parameters.podTemplate?.terminationGracePeriodSeconds ?? 60;
}

/** Drains within the pod's grace, with room to exit. */
export function drainSeconds(request: InfrastructureRequest): number {
  return Math.max(1, graceSeconds(request) - 10);
}

/** `mergeway dataplane`, without what depends on the form. */
export function planContainer(
  request: InfrastructureRequest,
  context: DataPlaneContext,
  environment: Readonly<Record<string, string>>,
): Readonly<Record<string, unknown>> {
  const { gateway, parameters } = request;
  const all: Readonly<Record<string, string>> = {
    ...podEnvironment({
      controller: context.controller,
      gateway: `${gateway.metadata.namespace}/${gateway.metadata.name}`,
      authority: context.authority,
      tokenFile: "/var/run/mergeway/token/token",
      stateDirectory: "/var/run/mergeway/state",
      adminAddress: `0.0.0.0:${ADMIN_PORT}`,
      ...telemetryOf(parameters),
      drainSeconds: drainSeconds(request),
      metrics: context.metrics,
    }),
    ...environment,
  };
  return {
    image: parameters.image ?? context.image,
    imagePullPolicy: "IfNotPresent",
    args: ["dataplane"],
    env: [
      ...Object.entries(all).map(([name, value]) => ({ name, value })),
      { name: POD_VARIABLES.pod.name, valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    ],
    ports: [{ name: "admin", containerPort: ADMIN_PORT, protocol: "TCP" }],
    livenessProbe: { httpGet: { path: "/healthz", port: "admin" }, ...LIVENESS },
    securityContext: RESTRICTED_CONTAINER,
  };
}

/** A Gateway without any has the environment that it always had. */
export function telemetryOf({
  accessLog,
  tracing,
}: InfrastructureRequest["parameters"]): Partial<PodSettings> {
  if (accessLog === undefined && tracing === undefined) return {};
  const telemetry = {
    ...(accessLog === undefined ? {} : { accessLog }),
    ...(tracing === undefined ? {} : { tracing }),
  };
  return { telemetry };
}

export const PLAN_MOUNTS: readonly Readonly<Record<string, unknown>>[] = [
  { name: "state", mountPath: "/var/run/mergeway/state" },
  { name: "token", mountPath: "/var/run/mergeway/token", readOnly: true },
];

export function planVolumes({
  tokenAudience,
}: DataPlaneContext): readonly Readonly<Record<string, unknown>>[] {
  const serviceAccountToken = { audience: tokenAudience, expirationSeconds: 3600, path: "token" };
  return [
    { name: "state", emptyDir: { medium: "Memory", sizeLimit: "256Mi" } },
    { name: "token", projected: { sources: [{ serviceAccountToken }] } },
  ];
}
