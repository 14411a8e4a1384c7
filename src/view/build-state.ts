import type { Key } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import type { Engine } from "../engine/engine.ts";
import type { Attachment } from "../engine/listeners/attachment.ts";
import type { OwnerVerdict } from "../engine/verdicts/verdicts.ts";
import { buildListener, type ListenerSources } from "./build-listener.ts";
import { policiesOfOwner, strayPolicies, tenantPoliciesOf } from "./build-policies.ts";
import { indexRoutes, strayRoutes } from "./build-routes.ts";
import { type GatewayView, type MergedState, type ObjectRef, type OwnerView, refOf } from "./merged-state.ts";

export interface StateSources {
  readonly engine: Engine;
  readonly resources: ReadonlyMap<Key, Resource>;
  /** Their statuses are those that a cluster holds: they say what nobody can compute. */
  readonly isLive?: boolean;
}

/** Costs what exists: for people who look, not for every change. */
export function buildState(sources: StateSources): MergedState {
  const { engine, resources } = sources;
  const attachments: Attachment[] = [];
  const foreign: ObjectRef[] = [];
  for (const [key, { kind }] of resources) {
    if (kind !== "Gateway" && kind !== "ListenerSet" && kind !== "XListenerSet") continue;
    const attachment = engine.attachment(key);
    if (attachment === undefined) foreign.push(refOf(key));
    else attachments.push(attachment);
  }
  const ofGateway = Map.groupBy(attachments, ({ owner }) => owner.gateway ?? "");
  const at: ListenerSources = {
    resources,
    merged: new Map(Array.from(engine.listeners(), (listener) => [listener.key, listener])),
    ranks: new Map(attachments.map(({ owner }) => [owner.key, owner.rank])),
    routes: indexRoutes(sources),
  };
  const roots = attachments.filter(({ owner }) => owner.role === "root");
  const gateways = roots.map(({ owner }) =>
    gatewayView(owner.key, ofGateway.get(owner.key) ?? [], sources, at),
  );
  const served = new Set(roots.map(({ owner }) => owner.key));
  const orphans = attachments.filter(({ owner }) => !served.has(owner.gateway ?? ""));
  return {
    gateways: gateways.sort(byName),
    orphans: rankedOwners(orphans, sources, at),
    strayRoutes: strayRoutes(sources).sort(byName),
    strayPolicies: strayPolicies(sources).sort(byName),
    foreign: foreign.sort(byName),
  };
}

function gatewayView(
  key: Key,
  attachments: readonly Attachment[],
  sources: StateSources,
  at: ListenerSources,
): GatewayView {
  const verdict = ownerVerdict(sources.engine, key);
  const resource = sources.resources.get(key);
  return {
    ...refOf(key),
    className: resource?.kind === "Gateway" ? resource.spec.gatewayClassName : "",
    addresses: verdict?.addresses ?? [],
    attachedListenerSets: verdict?.attachedListenerSets ?? 0,
    conditions: verdict?.conditions ?? [],
    owners: rankedOwners(attachments, sources, at),
  };
}

function rankedOwners(
  attachments: readonly Attachment[],
  sources: StateSources,
  at: ListenerSources,
): OwnerView[] {
  const { engine, resources } = sources;
  return attachments
    .toSorted((a, b) => (a.owner.rank < b.owner.rank ? -1 : 1))
    .map(({ owner, gateway }, index): OwnerView => {
      const verdict = ownerVerdict(engine, owner.key);
      const policies = policiesOfOwner(engine, owner.key);
      const createdAt = resources.get(owner.key)?.metadata.creationTimestamp;
      return {
        kind: owner.kind,
        namespace: owner.namespace,
        name: owner.name,
        role: owner.role,
        precedence: index + 1,
        ...(createdAt === undefined ? {} : { createdAt }),
        attached: gateway !== undefined,
        conditions: verdict?.conditions ?? [],
        policies: [
          ...(owner.role === "root" ? tenantPoliciesOf(sources, owner.key) : []),
          ...(policies.get(undefined) ?? []),
        ],
        listeners: (verdict?.listeners ?? []).map((listener, place) =>
          buildListener({ owner, place, verdict: listener, policies: policies.get(listener.name) ?? [] }, at),
        ),
      };
    });
}

function ownerVerdict(engine: Engine, key: Key): OwnerVerdict | undefined {
  const verdict = engine.verdict(key);
  return verdict?.type === "gateway" || verdict?.type === "set" ? verdict : undefined;
}

function byName(a: ObjectRef, b: ObjectRef): number {
  const left = `${a.namespace}/${a.name}/${a.kind}`;
  const right = `${b.namespace}/${b.name}/${b.kind}`;
  return left < right ? -1 : 1;
}
