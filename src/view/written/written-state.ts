/**
 * The state as the statuses of a cluster tell it, for a person who may not read everything that the
 * merge depends on. Nothing of it is computed: a merge of a part of the facts would call a listener
 * served whose hostname somebody else holds. A status is written for the owner of its object and
 * names nobody else, and what the person may not read is not here at all, so that this is a team's
 * view: only what is theirs.
 */
import type { Gateway, ListenerSet } from "../../api/gateway.ts";
import { type Key, keyFor, kindOf } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { Verdict } from "../../engine/foundation/verdict.ts";
import type { QuotaUse } from "../../engine/tenancy/quota-use.ts";
import type { GatewayView, MergedState, ObjectRef, OwnerView } from "../merged-state.ts";
import { refOf } from "../merged-state.ts";
import { currentVerdicts } from "./current-verdicts.ts";
import { type KnownMerge, NOT_JUDGED, writtenListener } from "./written-listener.ts";
import { PolicyIndex } from "./written-policies.ts";
import { writtenTenantPolicies } from "./written-quotas.ts";
import { placeRoutes, type RoutesByListener, unreadParents } from "./written-routes.ts";

export interface WrittenSources {
  readonly resources: ReadonlyMap<Key, Resource>;
  readonly controllerName: string;
  /** Who holds what, if everything that the merge depends on may be read. */
  readonly merge?: KnownMerge;
  /** Uses of quotas that are known though not everything is. */
  readonly quotas?: readonly QuotaUse[];
}

type OwnerObject = Gateway | ListenerSet;

export function writtenState(sources: WrittenSources): MergedState {
  const owners: OwnerObject[] = [];
  for (const resource of sources.resources.values()) {
    const { kind } = resource;
    if (kind === "Gateway" || kind === "ListenerSet" || kind === "XListenerSet") owners.push(resource);
  }
  const policies = new PolicyIndex(sources.resources);
  const { routes, stray } = placeRoutes(owners, sources, policies);
  const ofGateway = Map.groupBy(owners, gatewayOf);
  const unread = unreadParents(routes, sources.resources);
  const named = new Set<Key>([...ofGateway.keys(), ...unread.filter((key) => kindOf(key) === "Gateway")]);
  const gateways = Array.from(named, (key) =>
    gatewayView(key, ofGateway.get(key) ?? [], { ...sources, policies, routes }),
  );
  return {
    gateways: gateways.sort(byName),
    orphans: unread.flatMap((key) => (kindOf(key) === "Gateway" ? [] : (unreadOwner(key, routes) ?? []))),
    strayRoutes: stray.toSorted(byName),
    strayPolicies: [],
    foreign: [],
  };
}

interface Parts extends WrittenSources {
  readonly policies: PolicyIndex;
  readonly routes: RoutesByListener;
}

/** The Gateway that an object says it belongs to; a Gateway that names none is one itself. */
function gatewayOf(owner: OwnerObject): Key {
  const { namespace = "", name } = owner.metadata;
  const parent = owner.kind === "Gateway" ? owner.spec.infrastructure?.attachTo : owner.spec.parentRef;
  return keyFor("Gateway", parent?.namespace ?? namespace, parent?.name ?? name);
}

function gatewayView(key: Key, owners: readonly OwnerObject[], parts: Parts): GatewayView {
  const gateway = parts.resources.get(key);
  const views = owners.map((owner) => ownerView(owner, key, parts));
  const ranked = views.toSorted((a, b) => a.precedence - b.precedence || byRole(a, b) || byName(a, b));
  if (gateway?.kind !== "Gateway") {
    const root = unreadOwner(key, parts.routes);
    const all = root === undefined ? ranked : [root, ...ranked];
    return { ...refOf(key), isUnread: true, ...NOTHING_KNOWN, owners: all };
  }
  return {
    ...refOf(key),
    className: gateway.spec.gatewayClassName,
    addresses: gateway.status?.addresses ?? [],
    attachedListenerSets: gateway.status?.attachedListenerSets ?? 0,
    conditions: currentVerdicts(gateway.metadata, gateway.status?.conditions),
    owners: ranked,
  };
}

const NOTHING_KNOWN = { className: "", addresses: [], attachedListenerSets: 0, conditions: [] } as const;

function ownerView(owner: OwnerObject, gateway: Key, parts: Parts): OwnerView {
  const { kind, metadata, spec, status } = owner;
  const { namespace = "", name, creationTimestamp } = metadata;
  const key = keyFor(kind, namespace, name);
  const written = currentVerdicts(metadata, status?.conditions);
  const conditions = written.length === 0 ? [NOT_ACCEPTED_YET] : written;
  const accepted = conditions.find(({ type }) => type === "Accepted");
  // Its Gateway has taken it; none of its listeners is fit to be served.
  const isAttached = accepted?.status === "True" || accepted?.reason === "ListenersNotValid";
  return {
    kind,
    namespace,
    name,
    role: key === gateway ? "root" : kind === "Gateway" ? "child" : "set",
    precedence: parts.merge?.precedenceOf(key) ?? 0,
    ...(creationTimestamp === undefined ? {} : { createdAt: creationTimestamp }),
    attached: isAttached,
    conditions,
    policies: [
      ...(key === gateway ? writtenTenantPolicies(gateway, parts) : []),
      ...parts.policies.at(key, undefined),
    ],
    listeners: (spec.listeners ?? []).map((listener) =>
      writtenListener({ owner: key, metadata, listener, statuses: status?.listeners ?? [] }, parts),
    ),
  };
}

const NOT_ACCEPTED_YET: Verdict = {
  type: "Accepted",
  status: "Unknown",
  reason: NOT_JUDGED.reason,
  message: NOT_JUDGED.message,
};

/** Stands for a Gateway or set that may not be read, where routes are attached to it. */
function unreadOwner(owner: Key, routes: RoutesByListener): OwnerView | undefined {
  const listeners = [...routes].filter(([key]) => key.startsWith(`${owner}#`));
  if (listeners.length === 0) return undefined;
  return {
    ...refOf(owner),
    role: kindOf(owner) === "Gateway" ? "root" : "set",
    precedence: 0,
    attached: true,
    conditions: [],
    policies: [],
    listeners: listeners.map(([key, attached]) => ({
      key,
      section: key.slice(key.indexOf("#") + 1),
      isUnread: true,
      port: 0,
      protocol: "",
      hostname: "",
      state: "serving",
      certificates: [],
      policies: [],
      attachedRoutes: attached.length,
      routes: attached,
    })),
  };
}

function byRole(a: OwnerView, b: OwnerView): number {
  return Number(b.role === "root") - Number(a.role === "root");
}

function byName(a: ObjectRef, b: ObjectRef): number {
  const left = `${a.namespace}/${a.name}/${a.kind}`;
  const right = `${b.namespace}/${b.name}/${b.kind}`;
  return left < right ? -1 : left > right ? 1 : 0;
}
