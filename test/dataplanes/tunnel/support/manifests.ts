/** Manifests of a shared Gateway and its tenants, as short as tests want them. */
import { stringify } from "yaml";

export interface Entry {
  readonly name: string;
  readonly hostname?: string;
  readonly port?: number;
  readonly protocol?: string;
  readonly tls?: unknown;
  readonly allowedRoutes?: unknown;
}

export function gateway(
  listeners: readonly Entry[] = [],
  more: Readonly<Record<string, unknown>> = {},
): string {
  const own = listeners.length === 0 ? [{ name: "platform", hostname: "platform.example.com" }] : listeners;
  return stringify({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { namespace: "infra", name: "edge", generation: 1 },
    spec: {
      gatewayClassName: "mergeway",
      allowedListeners: { namespaces: { from: "All" } },
      listeners: own.map(entry),
      ...more,
    },
  });
}

/** In the team's namespace, under the team's name. */
export function listenerSet(team: string, listeners: readonly Entry[], created?: string): string {
  return stringify({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "ListenerSet",
    metadata: {
      namespace: team,
      name: team,
      generation: 1,
      ...(created === undefined ? {} : { creationTimestamp: created }),
    },
    spec: { parentRef: { name: "edge", namespace: "infra" }, listeners: listeners.map(entry) },
  });
}

function entry({ port = 80, protocol = "HTTP", ...rest }: Entry): unknown {
  return { port, protocol, ...rest };
}

export interface RouteShape {
  readonly name?: string;
  readonly hostnames?: readonly string[];
  /** Of the team's own ListenerSet; all entries without it. */
  readonly section?: string;
  readonly rules: readonly {
    readonly path?: string;
    readonly backend?: string;
    readonly filters?: unknown;
    readonly matches?: unknown;
  }[];
}

export function httpRoute(team: string, { name = "web", hostnames, section, rules }: RouteShape): string {
  return stringify({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { namespace: team, name, generation: 1 },
    spec: {
      parentRefs: [
        {
          group: "gateway.networking.k8s.io",
          kind: "ListenerSet",
          name: team,
          ...(section === undefined ? {} : { sectionName: section }),
        },
      ],
      ...(hostnames === undefined ? {} : { hostnames }),
      rules: rules.map(({ path = "/", backend, filters, matches }) => ({
        matches: matches ?? [{ path: { type: "PathPrefix", value: path } }],
        ...(filters === undefined ? {} : { filters }),
        ...(backend === undefined ? {} : { backendRefs: [{ name: backend, port: 80 }] }),
      })),
    },
  });
}

export function tlsSecret(
  namespace: string,
  name: string,
  { cert, key }: { readonly cert: string; readonly key: string },
): string {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  return stringify({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace, name },
    type: "kubernetes.io/tls",
    data: { "tls.crt": base64(cert), "tls.key": base64(key) },
  });
}

export function grpcRoute(team: string, backend: string): string {
  return stringify({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "GRPCRoute",
    metadata: { namespace: team, name: "grpc", generation: 1 },
    spec: {
      parentRefs: [{ group: "gateway.networking.k8s.io", kind: "ListenerSet", name: team }],
      rules: [{ backendRefs: [{ name: backend, port: 80 }] }],
    },
  });
}
