/**
 * What must exist in Kubernetes so that a Gateway is served: a pure function of the Gateway, its parameters and its ports.
 * Pods satisfy the Pod Security Standard "restricted": non-root, read-only root, no capabilities. Listener ports below 1024 are bound directly, by the
 * pod-level sysctl net.ipv4.ip_unprivileged_port_start, which "restricted" allows: so the port in a log is the port in the spec.
 */
import type { Gateway } from "../api/gateway.ts";
import type { GatewayParametersSpec } from "../api/gateway-parameters.ts";
import {
  GATEWAY_NAME_ANNOTATION,
  infrastructureLabels,
  infrastructureName,
  selectorLabels,
} from "./names.ts";

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
  readonly image: string;
  /** `host:port` of the controller's stream. */
  readonly controller: string;
  /** PEM of the authority that signs the controller's certificate. */
  readonly authority: string;
  readonly tokenAudience: string;
}

export interface InfrastructureRequest {
  readonly gateway: Gateway;
  readonly parameters: GatewayParametersSpec;
  readonly ports: readonly ServedPort[];
}

/** Ports of the pod itself, outside of anything that a listener may use by accident: probes and metrics. */
export const ADMIN_PORT = 19901;

const RESTRICTED_CONTAINER = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  readOnlyRootFilesystem: true,
} as const;

export function desiredManifests(
  request: InfrastructureRequest,
  context: DataPlaneContext,
): readonly Manifest[] {
  return [
    serviceAccount(request),
    deployment(request, context),
    ...services(request),
    ...disruptionBudget(request),
    ...autoscaler(request),
  ];
}

function metadata(
  { gateway }: InfrastructureRequest,
  extra: { annotations?: Readonly<Record<string, string>>; suffix?: string } = {},
) {
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

function serviceAccount(request: InfrastructureRequest): Manifest {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: metadata(request),
    automountServiceAccountToken: false,
  };
}

function deployment(request: InfrastructureRequest, context: DataPlaneContext): Manifest {
  const { gateway, parameters } = request;
  const template = parameters.podTemplate ?? {};
  const grace = template.terminationGracePeriodSeconds ?? 60;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metadata(request),
    spec: {
      ...(parameters.autoscaling === undefined ? { replicas: parameters.replicas ?? 1 } : {}),
      selector: { matchLabels: selectorLabels(gateway) },
      // A new pod serves before an old one goes.
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: {
        metadata: {
          labels: { ...template.labels, ...infrastructureLabels(gateway) },
          annotations: { ...gateway.spec.infrastructure?.annotations, ...template.annotations },
        },
        spec: {
          serviceAccountName: infrastructureName(gateway),
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: grace,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 65532,
            runAsGroup: 65532,
            fsGroup: 65532,
            seccompProfile: { type: "RuntimeDefault" },
            sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }],
          },
          ...pick(template, [
            "nodeSelector",
            "tolerations",
            "affinity",
            "priorityClassName",
            "imagePullSecrets",
          ]),
          topologySpreadConstraints: template.topologySpreadConstraints ?? [spread(request)],
          containers: [container(request, context, grace)],
          volumes: [
            { name: "state", emptyDir: { medium: "Memory", sizeLimit: "256Mi" } },
            { name: "token", projected: { sources: [{ serviceAccountToken: tokenSource(context) }] } },
          ],
        },
      },
    },
  };
}

function tokenSource({ tokenAudience }: DataPlaneContext): unknown {
  return { audience: tokenAudience, expirationSeconds: 3600, path: "token" };
}

function spread({ gateway }: InfrastructureRequest): unknown {
  return {
    maxSkew: 1,
    topologyKey: "kubernetes.io/hostname",
    whenUnsatisfiable: "ScheduleAnyway",
    labelSelector: { matchLabels: selectorLabels(gateway) },
  };
}

function container(
  { gateway, parameters }: InfrastructureRequest,
  context: DataPlaneContext,
  grace: number,
): unknown {
  const environment: Readonly<Record<string, string>> = {
    MERGEWAY_CONTROLLER: context.controller,
    MERGEWAY_GATEWAY: `${gateway.metadata.namespace}/${gateway.metadata.name}`,
    MERGEWAY_AUTHORITY: context.authority,
    MERGEWAY_TOKEN_FILE: "/var/run/mergeway/token/token",
    MERGEWAY_STATE_DIR: "/var/run/mergeway/state",
    MERGEWAY_ADMIN_ADDRESS: `0.0.0.0:${ADMIN_PORT}`,
    MERGEWAY_WORKERS: String(parameters.workers ?? 0),
    MERGEWAY_ACCESS_LOG: String(parameters.accessLog ?? false),
    // The process drains within the pod's grace, with room to exit.
    MERGEWAY_DRAIN_SECONDS: String(Math.max(1, grace - 10)),
  };
  return {
    name: "gateway",
    image: parameters.image ?? context.image,
    imagePullPolicy: "IfNotPresent",
    args: ["dataplane"],
    env: [
      ...Object.entries(environment).map(([name, value]) => ({ name, value })),
      { name: "MERGEWAY_POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    ],
    ports: [{ name: "admin", containerPort: ADMIN_PORT, protocol: "TCP" }],
    readinessProbe: { httpGet: { path: "/readyz", port: "admin" }, periodSeconds: 2, failureThreshold: 2 },
    livenessProbe: {
      httpGet: { path: "/healthz", port: "admin" },
      periodSeconds: 10,
      failureThreshold: 3,
      initialDelaySeconds: 5,
    },
    resources: parameters.resources ?? { requests: { cpu: "50m", memory: "96Mi" } },
    securityContext: RESTRICTED_CONTAINER,
    volumeMounts: [
      { name: "state", mountPath: "/var/run/mergeway/state" },
      { name: "token", mountPath: "/var/run/mergeway/token", readOnly: true },
    ],
  };
}

/** One Service for each address that is asked for, one where none is: a Service has one address. */
function services(request: InfrastructureRequest): readonly Manifest[] {
  if (request.ports.length === 0) return [];
  const asked = requestedAddresses(request.gateway);
  const addresses: readonly (string | undefined)[] = asked.length === 0 ? [undefined] : asked;
  return addresses.map((address, index) => service(request, address, index));
}

/** Values of spec.addresses; an entry without a value asks for any address, which a Service has anyway. */
export function requestedAddresses(gateway: Gateway): readonly string[] {
  return (gateway.spec.addresses ?? []).flatMap(({ value }) => (value ? [value] : []));
}

export function serviceName(gateway: Gateway, index: number): string {
  return `${infrastructureName(gateway)}${index === 0 ? "" : `-${index + 1}`}`;
}

function service(request: InfrastructureRequest, address: string | undefined, index: number): Manifest {
  const { gateway, parameters, ports } = request;
  const settings = parameters.service ?? {};
  const type = settings.type ?? "LoadBalancer";
  const isIp = address !== undefined && /^[0-9a-f.:]+$/i.test(address);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadata(request, {
      suffix: index === 0 ? "" : `-${index + 1}`,
      ...(settings.annotations === undefined ? {} : { annotations: settings.annotations }),
    }),
    spec: {
      type,
      selector: selectorLabels(gateway),
      ports: ports.map(({ transport, port }) => ({
        name: `${transport}-${port}`,
        port,
        targetPort: port,
        protocol: transport.toUpperCase(),
      })),
      ...(type === "LoadBalancer" && isIp ? { loadBalancerIP: address } : {}),
      ...(settings.loadBalancerClass === undefined ? {} : { loadBalancerClass: settings.loadBalancerClass }),
      ...(settings.externalTrafficPolicy === undefined || type === "ClusterIP"
        ? {}
        : { externalTrafficPolicy: settings.externalTrafficPolicy }),
    },
  };
}

function disruptionBudget(request: InfrastructureRequest): readonly Manifest[] {
  const { parameters, gateway } = request;
  const several = (parameters.autoscaling?.minReplicas ?? parameters.replicas ?? 1) > 1;
  if (!several && parameters.podDisruptionBudget === undefined) return [];
  return [
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: metadata(request),
      spec: {
        minAvailable: parameters.podDisruptionBudget?.minAvailable ?? 1,
        selector: { matchLabels: selectorLabels(gateway) },
      },
    },
  ];
}

function autoscaler(request: InfrastructureRequest): readonly Manifest[] {
  const { autoscaling } = request.parameters;
  if (autoscaling === undefined) return [];
  return [
    {
      apiVersion: "autoscaling/v2",
      kind: "HorizontalPodAutoscaler",
      metadata: metadata(request),
      spec: {
        scaleTargetRef: {
          apiVersion: "apps/v1",
          kind: "Deployment",
          name: infrastructureName(request.gateway),
        },
        minReplicas: autoscaling.minReplicas ?? 1,
        maxReplicas: autoscaling.maxReplicas,
        metrics: [
          {
            type: "Resource",
            resource: {
              name: "cpu",
              target: {
                type: "Utilization",
                averageUtilization: autoscaling.targetCPUUtilizationPercentage ?? 80,
              },
            },
          },
        ],
      },
    },
  ];
}

function pick<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Partial<Pick<T, K>> {
  return Object.fromEntries(
    keys.filter((key) => from[key] !== undefined).map((key) => [key, from[key]]),
  ) as Partial<Pick<T, K>>;
}
