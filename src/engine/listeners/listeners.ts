/**
 * One listener on its own: everything that can be said of it without looking at its neighbours. The
 * key of a listener is `owner#section`, so equal names in different owners never meet (GEP-1713,
 * Listener Validation).
 */
import type { Listener, RouteGroupKind } from "../../api/gateway.ts";
import type { Key } from "../../api/key.ts";
import { GATEWAY_GROUP } from "../../api/resource.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import { isPattern } from "../../plan/hostname.ts";
import type { ListenerProtocol, PortProtocol, Transport } from "../../plan/plan.ts";
import { listenerRank, type Rank } from "../foundation/precedence.ts";
import { type EngineSettings, featuresOf, isReserved } from "../foundation/settings.ts";
import type { Failure } from "../foundation/verdict.ts";
import { type Certificates, resolveKeyPair } from "../references/certificates.ts";
import { type FrontendSettings, validationForPort } from "../references/frontend-validation.ts";
import type { Grants } from "../references/grants.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";
import { listenerProblem } from "../tenancy/tenant-rights.ts";
import type { Attachment } from "./attachment.ts";
import { type Owner, referrer } from "./owners.ts";
import type { PortAssignments } from "./ports.ts";
import { readTlsOptions, type TlsOptions } from "./tls-options.ts";

export type ListenerKey = string;

export function listenerKey(owner: Key, section: string): ListenerKey {
  return `${owner}#${section}`;
}

export interface EvaluatedListener {
  readonly key: ListenerKey;
  readonly owner: Pick<Owner, "key" | "kind" | "namespace" | "name" | "role">;
  readonly gateway: Key;
  readonly section: string;
  readonly rank: Rank;
  readonly spec: Listener;
  /** 0 when the range of assignable ports is exhausted. */
  readonly port: number;
  readonly hostname: string;
  readonly protocol: ListenerProtocol | undefined;
  readonly supportedKinds: readonly RouteGroupKind[];
  /** Why the listener cannot be accepted whatever its neighbours are. */
  readonly refused?: Failure;
  /** The first reference that does not resolve. */
  readonly unresolved?: Failure;
  /** Secrets of the certificates that do resolve, in order. */
  readonly certificates: readonly Key[];
  readonly tlsOptions: TlsOptions;
  /** Against the Gateway's TenantPolicy; also where that is not enforced. */
  readonly violation?: Failure;
}

const KINDS_OF_PROTOCOL: Readonly<Record<ListenerProtocol, readonly RouteGroupKind[]>> = {
  HTTP: routeKinds("HTTPRoute", "GRPCRoute"),
  HTTPS: routeKinds("HTTPRoute", "GRPCRoute"),
  TLS: routeKinds("TLSRoute"),
  TCP: routeKinds("TCPRoute"),
  UDP: routeKinds("UDPRoute"),
};

function routeKinds(...kinds: readonly string[]): readonly RouteGroupKind[] {
  return kinds.map((kind) => ({ group: GATEWAY_GROUP, kind }));
}

export function transportOf(protocol: ListenerProtocol): Transport {
  return protocol === "UDP" ? "udp" : "tcp";
}

/** Listeners whose first bytes are read alike can share a port; hostnames tell them apart. */
export function portProtocolOf(protocol: ListenerProtocol): PortProtocol {
  if (protocol === "HTTPS" || protocol === "TLS") return "tls";
  return protocol.toLowerCase() as PortProtocol;
}

/** A listener can hold its port and hostname only when it is itself servable. */
export function isServable(listener: EvaluatedListener): boolean {
  return listener.refused === undefined && listener.protocol !== undefined;
}

export interface ListenerInputs {
  readonly attachments: ReadonlyCollection<Attachment>;
  readonly assignments: ReadonlyCollection<PortAssignments>;
  readonly frontends: ReadonlyCollection<FrontendSettings>;
  readonly certificates: Certificates;
  readonly grants: Grants;
  readonly tenancy: Tenancy;
}

export function deriveListeners(
  graph: Graph,
  sources: ListenerInputs,
  settings: EngineSettings,
): ReadonlyCollection<EvaluatedListener> {
  return graph.expand("listeners", sources.attachments, (_key, { owner, gateway, dataPlane }, lookup) => {
    if (gateway === undefined) return [];
    const features = featuresOf(settings, dataPlane);
    const { key, kind, namespace, name, role } = owner;
    const identity = { key, kind, namespace, name, role };
    return owner.listeners.map((spec, place) => {
      const evaluated = evaluate({ owner, identity, gateway, spec, place }, lookup, sources, {
        features,
        isReserved: (port) => isReserved(settings, port),
      });
      return [evaluated.key, evaluated] as const;
    });
  });
}

interface Place {
  readonly owner: Owner;
  /** One for all listeners of the owner. */
  readonly identity: EvaluatedListener["owner"];
  readonly gateway: Key;
  readonly spec: Listener;
  readonly place: number;
}

/** What the data plane of the listener's Gateway can do. */
interface DataPlaneFacts {
  readonly features: ReadonlySet<string>;
  readonly isReserved: (port: number) => boolean;
}

function evaluate(
  at: Place,
  lookup: Lookup,
  sources: ListenerInputs,
  { features, isReserved }: DataPlaneFacts,
): EvaluatedListener {
  const { owner, gateway, spec, place } = at;
  const key = listenerKey(owner.key, spec.name);
  const protocol = supportedProtocol(spec, features);
  const port = spec.port || (lookup.get(sources.assignments, gateway)?.[key] ?? 0);
  const hostname = hasHostname(protocol) ? (spec.hostname ?? "").toLowerCase() : "";
  const kinds = supportedKinds(spec, protocol, features);
  const tls = evaluateTls(at, protocol, lookup, sources);
  const options = readTlsOptions(spec.tls?.options);
  const clients = protocol === "HTTPS" ? clientValidation(gateway, port, lookup, sources) : {};
  const tenant =
    owner.role === "root" || protocol === undefined
      ? undefined
      : tenantProblem({ hostname, port: port || undefined, protocol }, at, lookup, sources);
  const refused =
    protocolProblem(spec, protocol, features) ??
    // What a tenant may not have is assigned no port either.
    (tenant?.isEnforced === true ? tenant.violation : undefined) ??
    (port === 0 ? NO_PORT_LEFT : undefined) ??
    (hostname === "" || isPattern(hostname) ? undefined : NO_HOSTNAME) ??
    (isReserved(port) ? reservedPort(port) : undefined) ??
    ("problem" in options ? { reason: "UnsupportedValue", message: options.problem } : undefined) ??
    clients.refused ??
    tls.refused;
  const unresolved = clients.unresolved ?? tls.unresolved ?? kinds.unresolved;
  return {
    key,
    owner: at.identity,
    gateway,
    section: spec.name,
    rank: listenerRank(owner.rank, place),
    spec,
    port,
    hostname,
    protocol,
    supportedKinds: kinds.supported,
    ...(refused === undefined ? {} : { refused }),
    ...(unresolved === undefined ? {} : { unresolved }),
    certificates: tls.certificates,
    ...(tenant === undefined ? {} : { violation: tenant.violation }),
    tlsOptions: "problem" in options || spec.tls?.options === undefined ? NO_OPTIONS : options,
  };
}

function tenantProblem(
  asked: Parameters<typeof listenerProblem>[0],
  { owner, gateway }: Place,
  lookup: Lookup,
  { tenancy }: ListenerInputs,
): { readonly violation: Failure; readonly isEnforced: boolean } | undefined {
  const found = tenancy.rightsAt(gateway, owner.namespace, lookup);
  const violation = found && listenerProblem(asked, found.rights);
  return violation && { violation, isEnforced: found.isEnforced };
}

const NO_OPTIONS: TlsOptions = {};

const NO_HOSTNAME: Failure = { reason: "UnsupportedValue", message: "hostname is no hostname" };

const NO_PORT_LEFT: Failure = {
  reason: "PortUnavailable",
  message: "no port is left in the range from which ports are assigned",
};

function reservedPort(port: number): Failure {
  return { reason: "PortUnavailable", message: `port ${port} is one that the data plane keeps for itself` };
}

function hasHostname(protocol: ListenerProtocol | undefined): boolean {
  return protocol === "HTTP" || protocol === "HTTPS" || protocol === "TLS";
}

function supportedProtocol(
  { protocol }: Listener,
  features: ReadonlySet<string>,
): ListenerProtocol | undefined {
  if (!Object.hasOwn(KINDS_OF_PROTOCOL, protocol)) return undefined;
  const needs = { HTTP: "HTTPRoute", HTTPS: "HTTPRoute", TLS: "TLSRoute", TCP: "TCPRoute", UDP: "UDPRoute" }[
    protocol
  ];
  return features.has(needs as string) ? (protocol as ListenerProtocol) : undefined;
}

function protocolProblem(
  spec: Listener,
  protocol: ListenerProtocol | undefined,
  features: ReadonlySet<string>,
): Failure | undefined {
  if (protocol === undefined) {
    return { reason: "UnsupportedProtocol", message: `protocol ${spec.protocol} is not supported` };
  }
  if (protocol === "TLS" && spec.tls?.mode !== "Passthrough" && !features.has("TLSRouteModeTerminate")) {
    return { reason: "UnsupportedValue", message: "tls.mode Terminate is not supported for protocol TLS" };
  }
  if (protocol === "HTTPS" && spec.tls?.mode === "Passthrough") {
    return {
      reason: "UnsupportedValue",
      message: "protocol HTTPS needs tls.mode Terminate; use protocol TLS to pass through",
    };
  }
  if ((spec.filters?.requests ?? []).length > 0 && !features.has("GatewayListenerFilters")) {
    return {
      reason: "UnsupportedValue",
      message: "filters of listeners are not supported by the data plane",
    };
  }
  if (protocol === "TLS" && spec.tls === undefined) {
    return { reason: "UnsupportedValue", message: "protocol TLS needs a tls section with a mode" };
  }
  return undefined;
}

/**
 * `kinds` narrows what the protocol allows; a kind that cannot attach here is named in ResolvedRefs
 * (Gateway.spec.listeners.allowedRoutes.kinds).
 */
function supportedKinds(
  { allowedRoutes, protocol: written }: Listener,
  protocol: ListenerProtocol | undefined,
  features: ReadonlySet<string>,
): { readonly supported: readonly RouteGroupKind[]; readonly unresolved?: Failure } {
  const ofProtocol = protocol === undefined ? [] : KINDS_OF_PROTOCOL[protocol];
  const isServed = ({ kind }: RouteGroupKind): boolean => features.has(kind);
  const possible = ofProtocol.every(isServed) ? ofProtocol : ofProtocol.filter(isServed);
  const asked = allowedRoutes?.kinds ?? [];
  if (asked.length === 0) return { supported: possible };
  const fits = ({ group, kind }: RouteGroupKind): boolean =>
    possible.some((other) => other.group === group && other.kind === kind);
  const misfits = asked.filter((kind) => !fits(kind)).map(({ group, kind }) => `${group}/${kind}`);
  const supported = asked.filter(fits);
  if (misfits.length === 0) return { supported };
  const message = `allowedRoutes.kinds: ${misfits.join(", ")} cannot attach to a listener of protocol ${written}`;
  return { supported, unresolved: { reason: "InvalidRouteKinds", message } };
}

interface TlsEvaluation {
  readonly certificates: readonly Key[];
  readonly refused?: Failure;
  readonly unresolved?: Failure;
}

const NO_TLS: TlsEvaluation = { certificates: [] };

/** One certificate that resolves is enough to serve; every one that does not is reported. */
function evaluateTls(
  { owner, spec }: Place,
  protocol: ListenerProtocol | undefined,
  lookup: Lookup,
  sources: ListenerInputs,
): TlsEvaluation {
  const terminates = protocol === "HTTPS" || (protocol === "TLS" && spec.tls?.mode !== "Passthrough");
  if (!terminates) return NO_TLS;
  const references = spec.tls?.certificateRefs ?? [];
  const results = references.map((reference) => resolveKeyPair(reference, referrer(owner), lookup, sources));
  const certificates = results.flatMap((result) => ("value" in result ? [result.value] : []));
  const findings = results.flatMap((result) => ("failure" in result ? [result.failure] : []));
  if (references.length === 0)
    findings.push({ reason: "InvalidCertificateRef", message: "tls.certificateRefs is empty" });
  const unresolved = findings.find(({ reason }) => reason === "RefNotPermitted") ?? findings[0];
  if (unresolved === undefined) return { certificates };
  if (certificates.length > 0) return { certificates, unresolved };
  return { certificates, unresolved, refused: { reason: "Invalid", message: unresolved.message } };
}

/** The Gateway's own references: a tenant learns that they fail, not what they are. */
function clientValidation(
  gateway: Key,
  port: number,
  lookup: Lookup,
  { frontends }: ListenerInputs,
): { readonly refused?: Failure; readonly unresolved?: Failure } {
  const applies = validationForPort(lookup.get(frontends, gateway), port);
  if (applies?.unresolved === undefined) return {};
  const message = "the Gateway's client certificate validation for this port refers to what cannot be used";
  const unresolved = { reason: applies.unresolved.reason, message };
  if (applies.validation.authorities.length > 0) return { unresolved };
  return { unresolved, refused: { reason: "NoValidCACertificate", message } };
}
