/**
 * Backends: one port of one Service as a Gateway reaches it. An endpoint that comes or goes changes
 * this one item and no route.
 */
import type { EndpointSlice, Service, ServicePort } from "../../api/core.ts";
import { type Key, keyFor } from "../../api/key.ts";
import type { BackendObjectReference } from "../../api/references.ts";
import type { Referrer } from "../../api/rules/reference-grants.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { BackendItem, BackendProtocol, Endpoint } from "../../plan/backend.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { type BackendTarget, gatewayName } from "../foundation/item-ids.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { BackendPolicies } from "./backend-policies.ts";
import { policyFor } from "./backend-policies.ts";
import { type Grants, isPermitted } from "./grants.ts";
import type { ServiceEndpoints } from "./refused-endpoints.ts";

/** Resolves a backendRef, or says why it cannot be (HTTPRoute.spec.rules.backendRefs). */
export function resolveBackend(
  reference: BackendObjectReference,
  from: Referrer,
  lookup: Lookup,
  {
    inputs,
    grants,
    endpoints,
  }: { readonly inputs: Inputs; readonly grants: Grants; readonly endpoints: ServiceEndpoints },
): { readonly target: BackendTarget } | { readonly failure: Failure } {
  const namespace = reference.namespace ?? from.namespace;
  const shown = reference.namespace === undefined ? reference.name : `${namespace}/${reference.name}`;
  if (reference.group !== "" || reference.kind !== "Service") {
    return unresolved(
      "InvalidKind",
      `${reference.group || "core"}/${reference.kind} ${shown} cannot be a backend; only Services can`,
    );
  }
  if (!isPermitted(lookup, grants, from, { ...reference, namespace })) {
    const message = `no ReferenceGrant in namespace ${namespace} lets ${plural(from.kind)} of namespace ${from.namespace} use Service ${reference.name}`;
    return unresolved("RefNotPermitted", message);
  }
  const key = keyFor("Service", namespace, reference.name);
  const service = lookup.get(inputs.services, key);
  if (service === undefined) return unresolved("BackendNotFound", `Service ${shown} does not exist`);
  if (service.spec?.type === "ExternalName") {
    return unresolved(
      "UnsupportedValue",
      `Service ${shown} is of type ExternalName, which could reach anything; it is not supported`,
    );
  }
  const port = reference.port;
  if (port === undefined) return unresolved("BackendNotFound", `a port of Service ${shown} must be given`);
  if (!service.spec?.ports?.some((candidate) => candidate.port === port)) {
    return unresolved("BackendNotFound", `Service ${shown} has no port ${port}`);
  }
  const refused = lookup.get(endpoints.refused, key);
  if (refused !== undefined)
    return unresolved("UnsupportedValue", `Service ${shown} cannot be used: ${refused}`);
  return { target: { namespace, name: reference.name, port } };
}

function plural(kind: string): string {
  return `${kind.replace(/y$/, "ie")}s`;
}

function unresolved(reason: string, message: string): { readonly failure: Failure } {
  return { failure: { reason, message } };
}

/**
 * Uses of backends, keyed by item id: whatever collection says that a Gateway reaches a Service
 * port.
 */
export interface BackendUse {
  readonly gateway: Key;
  readonly target: BackendTarget;
}

export interface BackendSources {
  readonly policies: BackendPolicies;
  readonly endpoints: ServiceEndpoints;
  /** What policies say of a backend. */
  readonly settingsOf: (
    use: BackendUse & { readonly portName: string | undefined },
    lookup: Lookup,
  ) => Pick<BackendItem, "balancing" | "persistence" | "limits">;
}

export function deriveBackends(
  graph: Graph,
  inputs: Inputs,
  uses: Index<BackendUse>,
  { policies, endpoints, settingsOf }: BackendSources,
): ReadonlyCollection<BackendItem> {
  return graph.derive("backend items", uses, (id, entries, lookup): BackendItem | undefined => {
    const use = entries.at(0)?.value;
    if (use === undefined) return undefined;
    const { gateway, target } = use;
    const serviceKey = keyFor("Service", target.namespace, target.name);
    const service = lookup.get(inputs.services, serviceKey);
    const port = service?.spec?.ports?.find((candidate) => candidate.port === target.port);
    if (service === undefined || port === undefined) return undefined;
    const slices = lookup.all(endpoints.slices, serviceKey);
    const policy = policyFor(serviceKey, port.name, lookup, policies);
    return {
      type: "backend",
      id,
      gateway: gatewayName(gateway),
      service: { namespace: target.namespace, name: target.name, port: target.port },
      protocol: protocolOf(port),
      endpoints: endpointsOf(service, port, slices).filter(
        ({ address, port: at }) => !endpoints.isRefused(address, at),
      ),
      ...(policy?.tls === undefined ? {} : { tls: policy.tls }),
      ...settingsOf({ gateway, target, portName: port.name }, lookup),
      ...(policy?.refused === undefined ? {} : { refused: policy.refused }),
    };
  });
}

function protocolOf(port: ServicePort): BackendProtocol {
  if (port.protocol === "UDP") return "udp";
  if (port.appProtocol === "kubernetes.io/h2c") return "h2c";
  if (port.appProtocol === "kubernetes.io/ws" || port.appProtocol === "kubernetes.io/wss") return "websocket";
  return "http";
}

/**
 * Ready endpoints of the port, sorted so that equal sets are equal values. Where none is ready,
 * those that are about to stop but still serve, as Services themselves do: the last pod of a
 * Deployment finishes its work.
 */
function endpointsOf(
  service: Service,
  port: ServicePort,
  slices: readonly EndpointSlice[],
): readonly Endpoint[] {
  const ready = new Map<string, Endpoint>();
  const leaving = new Map<string, Endpoint>();
  for (const slice of slices) {
    if (slice.addressType === "FQDN") continue;
    const slicePort = slice.ports?.find((candidate) => (candidate.name ?? "") === (port.name ?? ""))?.port;
    const target = slicePort ?? (isHeadless(service) ? port.port : undefined);
    if (target === undefined) continue;
    for (const { addresses, conditions } of slice.endpoints ?? []) {
      const isReady = conditions?.ready !== false;
      if (!isReady && !(conditions?.serving && conditions.terminating)) continue;
      const found = isReady ? ready : leaving;
      for (const address of addresses) found.set(`${address}|${target}`, { address, port: target });
    }
  }
  const chosen = ready.size > 0 ? ready : leaving;
  return [...chosen.keys()].sort().map((key) => chosen.get(key) as Endpoint);
}

function isHeadless(service: Service): boolean {
  return service.spec?.clusterIP === "None";
}
