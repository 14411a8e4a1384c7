/** Policies of mergeway.dev, each at its targets. */
import type { Service } from "../api/core.ts";
import { type Key, keyOf } from "../api/key.ts";
import type { ParentReference } from "../api/references.ts";
import type { Resource } from "../api/resource.ts";
import type { Route } from "../api/routes.ts";
import type { Engine } from "../engine/engine.ts";
import { targetParts } from "../engine/foundation/policy-targets.ts";
import type { Verdict } from "../engine/foundation/verdict.ts";
import type { SectionedPolicyKind } from "../engine/policies/attached-policies.ts";
import type { PolicyAtTarget } from "../engine/policies/own-policies.ts";
import type { QuotaUse } from "../engine/tenancy/quota-use.ts";
import { gatewaysOf } from "../engine/tenancy/tenancy.ts";
import type { PolicyVerdict } from "../engine/verdicts/verdicts.ts";
import type { StateSources } from "./build-state.ts";
import { isRoute } from "./is-route.ts";
import { type PolicyView, type QuotaView, refOf, type StrayPolicy } from "./merged-state.ts";
import { backendSettingTexts, clientLimitTexts, ruleSettingTexts } from "./setting-texts.ts";

/** Of a Gateway or set, by the listener that they are attached to; undefined: the whole object. */
export function policiesOfOwner(
  engine: Engine,
  owner: Key,
): ReadonlyMap<string | undefined, readonly PolicyView[]> {
  const views = engine.policiesOf(owner).map((attached) => {
    const { section } = targetParts(attached.target);
    const entry = ancestorsOf(engine, attached).find(
      ({ ancestorRef }) => keyOfRef(ancestorRef) === owner && ancestorRef.sectionName === section,
    );
    return viewOf(attached, entry?.conditions ?? []);
  });
  return Map.groupBy(views, ({ section }) => section);
}

/** Of a Gateway, the oldest first: that one counts. */
export function tenantPoliciesOf({ engine, resources }: StateSources, gateway: Key): readonly PolicyView[] {
  const views: PolicyView[] = [];
  for (const [key, policy] of resources) {
    if (policy.kind !== "TenantPolicy" || !gatewaysOf(policy).includes(gateway)) continue;
    const verdict = engine.verdict(key);
    const entries = verdict?.type === "policy" ? verdict.ancestors : [];
    const entry = entries.find(({ ancestorRef }) => keyOfRef(ancestorRef) === gateway);
    const conditions = entry?.conditions ?? [];
    const counts = conditions.some(({ type }) => type === "Enforced");
    const quotas = counts ? quotasAt(engine.quotaUses(), gateway) : [];
    views.push({
      ...{ ...refOf(key), defaults: [], overrides: [], counts, conditions },
      ...(quotas.length === 0 ? {} : { quotas }),
    });
  }
  return views.toSorted((a, b) => Number(b.counts) - Number(a.counts));
}

/** How much each namespace uses at the Gateway, by name. */
export function quotasAt(uses: Iterable<QuotaUse>, gateway: Key): readonly QuotaView[] {
  return [...uses]
    .filter((use) => use.gateway === gateway)
    .map(({ gateway: _, ...view }) => view)
    .sort((a, b) => (a.namespace < b.namespace ? -1 : 1));
}

/** Of a route and its rules, as they stand at one of its parents. */
export function policiesOfRoute(
  engine: Engine,
  route: { readonly key: Key; readonly resource: Route },
  parent: ParentReference | undefined,
): readonly PolicyView[] {
  const { names } = sectionsOf(route.resource);
  const at = parent && referenceText({ namespace: refOf(route.key).namespace, ...parent });
  return engine.policiesOf(route.key).flatMap((attached): PolicyView[] => {
    const { section } = targetParts(attached.target);
    if (section !== undefined && !names.includes(section)) return [];
    const entry = ancestorsOf(engine, attached).find(({ ancestorRef }) => referenceText(ancestorRef) === at);
    const conditions = entry?.conditions ?? [];
    // A status has one entry for the route and all of its rules: it may be that of another target.
    const isOfTarget = attached.counts
      ? !conditions.some(({ reason }) => reason === "Conflicted" || reason === "TargetNotFound")
      : conditions.some(({ reason }) => reason === "Conflicted");
    return [viewOf(attached, isOfTarget ? conditions : [])];
  });
}

/** Of a Service and of one of its ports, as they stand at a Gateway. */
export function policiesOfService(
  engine: Engine,
  service: Service,
  at: { readonly gateway: Key; readonly port: number | undefined },
): readonly PolicyView[] {
  const portName = service.spec?.ports?.find(({ port }) => port === at.port)?.name;
  return engine.policiesOf(keyOf(service)).flatMap((attached): PolicyView[] => {
    const { section } = targetParts(attached.target);
    if (section !== undefined && section !== portName) return [];
    const entry = ancestorsOf(engine, attached).find(
      ({ ancestorRef }) => keyOfRef(ancestorRef) === at.gateway && ancestorRef.sectionName === undefined,
    );
    return [viewOf(attached, entry?.conditions ?? [])];
  });
}

const TEXTS: Readonly<
  Record<string, (policy: PolicyAtTarget["policy"]) => Readonly<Record<string, string>> | undefined>
> = {
  TrafficPolicy: ruleSettingTexts,
  ClientPolicy: clientLimitTexts,
  BackendPolicy: backendSettingTexts,
};

function viewOf({ policy, target, counts }: PolicyAtTarget, conditions: readonly Verdict[]): PolicyView {
  const { section } = targetParts(target);
  const { kind } = refOf(policy.key);
  const values = TEXTS[kind]?.(policy);
  return {
    ...refOf(policy.key),
    ...(section === undefined ? {} : { section }),
    defaults: Object.keys(policy.defaults ?? {}),
    overrides: Object.keys(policy.overrides ?? {}),
    ...(values === undefined ? {} : { values }),
    counts,
    conditions,
  };
}

/** The policies that have defaults and overrides. */
export function isSectioned(
  resource: Resource,
): resource is Extract<Resource, { readonly kind: SectionedPolicyKind }> {
  return Object.hasOwn(TEXTS, resource.kind);
}

/** Targets that the tree does not show. */
export function strayPolicies({ engine, resources }: StateSources): StrayPolicy[] {
  const bound = new Set<Key>();
  for (const { route, parents } of engine.routeAttachments())
    if (parents.some(({ bindings }) => bindings.length > 0)) bound.add(route);
  const reached = new Set<Key>();
  for (const item of engine.plan())
    if (item.type === "backend") reached.add(`Service/${item.service.namespace}/${item.service.name}`);
  const isServed = (object: Key): boolean =>
    bound.has(object) || reached.has(object) || engine.attachment(object) !== undefined;
  const stray: StrayPolicy[] = [];
  for (const [key, policy] of resources) {
    if (!isSectioned(policy)) continue;
    const { namespace } = refOf(key);
    for (const { kind, name, sectionName: section } of policy.spec.targetRefs) {
      const object = `${kind}/${namespace}/${name}`;
      const absence = absenceOf(resources.get(object), section, isServed(object));
      if (absence === undefined) continue;
      stray.push({ ...refOf(key), target: { kind, namespace, name, section: section ?? "" }, ...absence });
    }
  }
  return stray;
}

function absenceOf(
  resource: Resource | undefined,
  section: string | undefined,
  isServed: boolean,
): { readonly reason: string; readonly message: string } | undefined {
  if (resource === undefined) return { reason: "TargetNotFound", message: "it does not exist" };
  const { what, names } = sectionsOf(resource);
  if (section !== undefined && !names.includes(section))
    return { reason: "TargetNotFound", message: `it has no ${what} of that name` };
  if (isServed) return undefined;
  if (what === "port") return { reason: "NotAttached", message: "no route that is served uses it" };
  return what === "rule"
    ? { reason: "NotAttached", message: "no listener has taken the route" }
    : { reason: "OtherController", message: "it belongs to another controller" };
}

function sectionsOf(resource: Resource): {
  readonly what: "rule" | "listener" | "port";
  readonly names: readonly (string | undefined)[];
} {
  if (isRoute(resource)) {
    const rules = (resource.spec.rules ?? []) as readonly { readonly name?: string }[];
    return { what: "rule", names: rules.map(({ name }) => name) };
  }
  if (resource.kind === "Service")
    return { what: "port", names: resource.spec?.ports?.map(({ name }) => name) ?? [] };
  const isOwner =
    resource.kind === "Gateway" || resource.kind === "ListenerSet" || resource.kind === "XListenerSet";
  const listeners = isOwner ? (resource.spec.listeners ?? []) : [];
  return { what: "listener", names: listeners.map(({ name }) => name) };
}

function ancestorsOf(engine: Engine, { policy }: PolicyAtTarget): PolicyVerdict["ancestors"] {
  const verdict = engine.verdict(policy.key);
  return verdict?.type === "policy" ? verdict.ancestors : [];
}

function keyOfRef({ kind, namespace, name }: ParentReference): Key {
  return `${kind}/${namespace ?? ""}/${name}`;
}

function referenceText({ group, kind, namespace, name, sectionName, port }: ParentReference): string {
  return JSON.stringify([group, kind, namespace, name, sectionName, port]);
}
