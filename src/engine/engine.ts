/**
 * The engine: resources and facts in, verdicts and plan out. Pure and synchronous; the graph holds
 * the only state.
 *
 *   classes, gateways ─→ states ─┐
 *   gateways, sets ─→ owners ─→ attachments ─→ ports ─→ listeners ─→ merge ─┬─→ plan
 *   routes ───────────────────────────┴─→ route attachments ─→ compiled ────┴─→ verdicts
 */

import type { Key } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import type { ReadonlyCollection } from "../graph/collection.ts";
import { Graph } from "../graph/graph.ts";
import type { Lookup } from "../graph/lookup.ts";
import type { ItemReport } from "../plan/item-report.ts";
import type { PlanDelta, PlanItem } from "../plan/plan.ts";
import {
  type ClaimFact,
  enter,
  type InfrastructureFact,
  type Inputs,
  makeInputs,
  type ReplicaFact,
} from "./foundation/inputs.ts";
import type { EngineSettings } from "./foundation/settings.ts";
import { type Attachment, deriveAttachments } from "./listeners/attachment.ts";
import { deriveClaims, type UsedHostname } from "./listeners/claims.ts";
import { deriveGatewayReferences } from "./listeners/gateway-references.ts";
import { deriveGatewayStates } from "./listeners/gateways.ts";
import { deriveListenerQuota } from "./listeners/listener-quota.ts";
import { deriveListeners } from "./listeners/listeners.ts";
import { deriveMerge, type MergedListener } from "./listeners/merge.ts";
import { type Owner, ownerOfGateway, ownerOfSet } from "./listeners/owners.ts";
import { derivePortAssignments } from "./listeners/ports.ts";
import { derivePlan } from "./plan-items.ts";
import { deriveBackendPolicies, ownUse } from "./policies/backend-settings.ts";
import {
  deriveOwnPolicies,
  deriveOwnPolicyVerdicts,
  type OwnPolicies,
  type PolicyAtTarget,
  policiesOf,
} from "./policies/own-policies.ts";
import { derivePolicies } from "./references/backend-policies.ts";
import { deriveCertificates } from "./references/certificates.ts";
import { deriveFrontendSettings } from "./references/frontend-validation.ts";
import { indexGrants } from "./references/grants.ts";
import { deriveServiceEndpoints } from "./references/refused-endpoints.ts";
import { deriveCompiledRoutes } from "./routes/compiled-routes.ts";
import { deriveRouteAttachments, type RouteAttachment } from "./routes/route-attachment.ts";
import { deriveRouteRefusals } from "./routes/route-refusals.ts";
import { deriveQuotaUses, type QuotaUse } from "./tenancy/quota-use.ts";
import { type ClaimHold, deriveTenancy } from "./tenancy/tenancy.ts";
import { deriveListenerVerdicts } from "./verdicts/listener-verdicts.ts";
import { deriveOwnerVerdicts } from "./verdicts/owner-verdicts.ts";
import {
  deriveClassVerdicts,
  derivePolicyVerdicts,
  deriveRouteVerdicts,
  indexBackendsByService,
} from "./verdicts/route-verdicts.ts";
import { deriveTenantVerdicts, type TenantViolations } from "./verdicts/tenant-verdicts.ts";
import type { ObjectVerdict } from "./verdicts/verdicts.ts";

/** What one step changed. */
export interface EngineDelta {
  readonly plan: PlanDelta;
  /** New verdicts by object; `undefined` where the engine has nothing to say any more. */
  readonly verdicts: ReadonlyMap<Key, ObjectVerdict | undefined>;
}

/** What data planes and the infrastructure report back. */
export interface Facts {
  readonly reports?: readonly ItemReport[];
  /** Items that no data plane serves any more: their reports are forgotten. */
  readonly forgotten?: readonly string[];
  readonly infrastructure?: ReadonlyMap<Key, InfrastructureFact | undefined>;
  readonly replicas?: ReadonlyMap<Key, ReplicaFact | undefined>;
  readonly claims?: ReadonlyMap<Key, ClaimFact>;
}

export class Engine {
  readonly #graph: Graph = new Graph();
  readonly #inputs: Inputs;
  readonly #plan: ReadonlyCollection<PlanItem>;
  readonly #verdicts: ReadonlyCollection<ObjectVerdict>;
  readonly #merged: ReadonlyCollection<MergedListener>;
  readonly #attachments: ReadonlyCollection<Attachment>;
  readonly #routes: ReadonlyCollection<RouteAttachment>;
  readonly #policies: OwnPolicies;
  readonly #violations: () => Iterable<TenantViolations>;
  readonly #quotaUses: ReadonlyCollection<QuotaUse>;
  readonly #holds: ReadonlyCollection<ClaimHold>;
  readonly #claims: ReadonlyCollection<UsedHostname>;
  readonly #claimChanges: Set<string> = new Set();
  #planChanges: Map<string, PlanItem | undefined> = new Map();
  #verdictChanges: Map<Key, ObjectVerdict | undefined> = new Map();

  constructor(settings: EngineSettings) {
    const graph = this.#graph;
    const inputs = makeInputs(graph);
    const grants = indexGrants(graph, inputs.grants);
    const certificates = deriveCertificates(graph, inputs, settings);
    const states = deriveGatewayStates(graph, inputs, settings);
    const owners = graph.union<Owner>("owners", [
      graph.derive("owners of gateways", inputs.gateways, (_key, gateway) => ownerOfGateway(gateway)),
      graph.derive("owners of sets", inputs.sets, (_key, set) => ownerOfSet(set)),
    ]);
    const attachments = deriveAttachments(graph, inputs, owners, states);
    const tenancy = deriveTenancy(graph, inputs);
    const assignments = derivePortAssignments(graph, attachments, tenancy, settings);
    const frontends = deriveFrontendSettings(graph, inputs, certificates, grants);
    const references = deriveGatewayReferences(graph, inputs, states, { certificates, grants });
    const listeners = deriveListeners(
      graph,
      { attachments, assignments, frontends, certificates, grants, tenancy },
      settings,
    );
    const listenersOfOwner = graph.index("listeners of owner", listeners, (_key, { owner, rank }) => [
      { at: owner.key, sort: rank },
    ]);
    const listenerQuota = deriveListenerQuota(graph, listeners, tenancy);
    const merged = deriveMerge(graph, listeners, { quota: listenerQuota, tenancy }, settings);
    const { routes, routeQuota } = deriveRouteAttachments(graph, inputs, {
      attachments,
      listenersOfOwner,
      tenancy,
    });
    const endpoints = deriveServiceEndpoints(graph, inputs, settings);
    const backendPolicies = deriveBackendPolicies(graph, inputs.backendPolicies);
    const useOf = (route: Key, ruleName: string | undefined, lookup: Lookup): string | undefined =>
      ownUse(route, ruleName, lookup, backendPolicies);
    const compiled = deriveCompiledRoutes(
      graph,
      { inputs, grants, endpoints, attachments: routes, useOf },
      settings,
    );
    const policies = derivePolicies(graph, inputs, certificates);
    const own = deriveOwnPolicies(graph, {
      inputs,
      merged,
      attachments,
      routes,
      grants,
      endpoints,
      backendPolicies,
    });
    const plan = derivePlan(graph, {
      inputs,
      states,
      merged,
      routes,
      compiled,
      certificates,
      frontends,
      references,
      policies,
      endpoints,
      ...own,
    });
    const backendsOfServices = indexBackendsByService(graph, plan.backends);
    const refusals = deriveRouteRefusals(graph, inputs, plan.backendUses);
    const judged = deriveListenerVerdicts(graph, inputs, { merged, compiled }, settings);
    const usedUp = [listenerQuota.usedUp, routeQuota.usedUp];
    const quotas = deriveQuotaUses(graph, { ofListeners: listenerQuota.uses, ofRoutes: routeQuota.uses });
    const tenants = deriveTenantVerdicts(graph, tenancy, {
      ...{ inputs, attachments, merged, routes, usedUp, quotas },
    });
    const verdicts = graph.union<ObjectVerdict>("verdicts", [
      deriveClassVerdicts(graph, inputs, settings),
      deriveOwnerVerdicts(graph, { inputs, attachments, merged, judged, states, references }),
      deriveRouteVerdicts(graph, inputs, { routes, compiled, refusals }),
      derivePolicyVerdicts(graph, inputs, policies, backendsOfServices),
      tenants.verdicts,
      deriveOwnPolicyVerdicts(graph, own, {
        ...{ inputs, attachments, routes, judged, grants, endpoints, certificates, backendsOfServices },
      }),
    ]);
    this.#claims = deriveClaims(graph, merged, tenancy);
    this.#claims.onChange(({ key }) => this.#claimChanges.add(key));
    plan.items.onChange(({ key, after }) => this.#planChanges.set(key, after));
    verdicts.onChange(({ key, after }) => this.#verdictChanges.set(key, after));
    this.#inputs = inputs;
    this.#plan = plan.items;
    this.#verdicts = verdicts;
    this.#merged = merged;
    this.#attachments = attachments;
    this.#routes = routes;
    this.#policies = own;
    this.#violations = tenants.violations;
    this.#quotaUses = quotas.uses;
    this.#holds = tenancy.holds;
  }

  /** Takes resources that appeared, changed or (undefined) went away, all in one step. */
  apply(changes: Iterable<{ readonly key: Key; readonly resource: Resource | undefined }>): EngineDelta {
    for (const { key, resource } of changes) enter(this.#inputs, key, resource);
    return this.#settle();
  }

  /**
   * What changes would do. They are made and taken back at once, so it costs twice what they cost,
   * whatever else exists. `resources` is what the engine has now.
   */
  tryOut(
    changes: readonly { readonly key: Key; readonly resource: Resource | undefined }[],
    resources: ReadonlyMap<Key, Resource>,
  ): EngineDelta {
    try {
      return this.apply(changes);
    } finally {
      this.apply(changes.map(({ key }) => ({ key, resource: resources.get(key) })));
    }
  }

  learn({ reports = [], forgotten = [], infrastructure, replicas, claims }: Facts): EngineDelta {
    for (const report of reports) this.#inputs.reports.set(report.id, report);
    for (const id of forgotten) this.#inputs.reports.set(id, undefined);
    for (const [key, fact] of infrastructure ?? []) this.#inputs.infrastructure.set(key, fact);
    for (const [key, fact] of replicas ?? []) this.#inputs.replicas.set(key, fact);
    for (const [key, fact] of claims ?? []) this.#inputs.claims.set(key, fact);
    return this.#settle();
  }

  #settle(): EngineDelta {
    this.#graph.settle();
    const upserts: PlanItem[] = [];
    const removes: string[] = [];
    for (const [id, item] of this.#planChanges) {
      if (item === undefined) removes.push(id);
      else upserts.push(item);
    }
    const verdicts = this.#verdictChanges;
    this.#planChanges = new Map();
    this.#verdictChanges = new Map();
    return { plan: { upserts, removes }, verdicts };
  }

  /** The whole plan, for a data plane that has just come. */
  plan(): Iterable<PlanItem> {
    return values(this.#plan);
  }

  verdicts(): IterableIterator<[Key, ObjectVerdict]> {
    return this.#verdicts.entries();
  }

  verdict(key: Key): ObjectVerdict | undefined {
    return this.#verdicts.get(key);
  }

  /** Every listener of every attached owner, served or not: the merged table. */
  listeners(): Iterable<MergedListener> {
    return values(this.#merged);
  }

  attachment(key: Key): Attachment | undefined {
    return this.#attachments.get(key);
  }

  routeAttachments(): Iterable<RouteAttachment> {
    return values(this.#routes);
  }

  /** TrafficPolicies, ClientPolicies and BackendPolicies of an object and of its sections. */
  policiesOf(object: Key): readonly PolicyAtTarget[] {
    return policiesOf(object, this.#policies);
  }

  /** How much is against the TenantPolicy of each Gateway. */
  tenantViolations(): Iterable<TenantViolations> {
    return this.#violations();
  }

  /** Of every namespace that has a quota and uses something of a Gateway. */
  quotaUses(): Iterable<QuotaUse> {
    return values(this.#quotaUses);
  }

  /** Gateways of this controller whose TenantPolicy holds claims. */
  *claimHolds(): Iterable<[Key, ClaimHold]> {
    for (const [gateway, hold] of this.#holds.entries())
      if (this.#attachments.get(gateway)?.owner.role === "root") yield [gateway, hold];
  }

  /** Claims that have changed since this was last asked, and (undefined) those that are gone. */
  changedClaims(): ReadonlyMap<string, UsedHostname | undefined> {
    const changed = new Map(Array.from(this.#claimChanges, (place) => [place, this.#claims.get(place)]));
    this.#claimChanges.clear();
    return changed;
  }

  /** Nodes computed so far: the cost of changes, independent of the machine. */
  get recomputed(): number {
    return this.#graph.recomputed;
  }
}

function* values<V>(collection: ReadonlyCollection<V>): Iterable<V> {
  for (const [, value] of collection.entries()) yield value;
}
