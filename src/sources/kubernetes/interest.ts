/**
 * Which Secrets and ConfigMaps are of use: those that a Gateway of our classes, a set of such a
 * Gateway, or a policy refers to, and those that parameters refer to which such a Gateway or its
 * class uses; of those, the ones that may be used (permits.ts). Counted as references come and go,
 * so that a change costs what the changed object refers to.
 */
import type { ClientPolicy } from "../../api/client-policy.ts";
import type { Gateway, ListenerSet } from "../../api/gateway.ts";
import type { GatewayParameters } from "../../api/gateway-parameters.ts";
import { type Key, keyFor } from "../../api/key.ts";
import type { BackendTlsPolicy } from "../../api/policies.ts";
import type { ObjectReference } from "../../api/references.ts";
import { GROUP_OF_KIND, MERGEWAY_GROUP, type Resource } from "../../api/resource.ts";
import { needsGrant } from "../../api/rules/reference-grants.ts";
import type { TrafficPolicy } from "../../api/traffic-policy.ts";
import { fromOf, type PermitChange, Permits, type Use, useOf } from "./permits.ts";

interface Referrer {
  /** Counts only while this one does. */
  readonly parent?: Key;
  readonly counts: boolean;
  readonly references: readonly Use[];
}

interface UseChange {
  readonly begun: readonly Use[];
  readonly ended: readonly Use[];
}

const NOTHING: PermitChange = { wanted: [], unwanted: [] };

export class Interest {
  readonly #controllerName: string;
  readonly #referrers = new Map<Key, Referrer>();
  readonly #children = new Map<Key, Set<Key>>();
  readonly #uses = new Map<Use, number>();
  readonly #permits = new Permits();

  constructor(controllerName: string) {
    this.#controllerName = controllerName;
  }

  isWanted(key: Key): boolean {
    return this.#permits.isWanted(key);
  }

  /** Takes the newest version of an object that may refer to others, or permit it. */
  take(key: Key, resource: Resource | undefined): PermitChange {
    if (key.startsWith("ReferenceGrant/"))
      return this.#permits.takeGrant(key, resource?.kind === "ReferenceGrant" ? resource : undefined);
    const before = this.#referrers.get(key);
    const after = resource && referrerOf(resource, this.#controllerName);
    if (sameReferrer(before, after)) return NOTHING;
    const wasActive = this.#isActive(key);
    const deltas = new Map<Use, number>();
    if (wasActive) count(deltas, before?.references ?? [], -1);
    this.#set(key, before, after);
    const active = this.#isActive(key);
    if (active) count(deltas, after?.references ?? [], 1);
    if (wasActive !== active) this.#countBelow(key, active ? 1 : -1, deltas);
    const { begun, ended } = this.#apply(deltas);
    return this.#permits.takeUses(begun, ended);
  }

  #set(key: Key, before: Referrer | undefined, after: Referrer | undefined): void {
    if (before?.parent !== undefined) this.#children.get(before.parent)?.delete(key);
    if (after === undefined) this.#referrers.delete(key);
    else this.#referrers.set(key, after);
    if (after?.parent === undefined) return;
    const siblings = this.#children.get(after.parent) ?? new Set();
    siblings.add(key);
    this.#children.set(after.parent, siblings);
  }

  #isActive(key: Key): boolean {
    const referrer = this.#referrers.get(key);
    if (!referrer?.counts || (isReferredTo(key) && !this.#uses.has(key))) return false;
    return referrer.parent === undefined || this.#isActive(referrer.parent);
  }

  /** What lies below an object whose own activity has just changed. */
  #countBelow(key: Key, sign: 1 | -1, deltas: Map<Use, number>): void {
    for (const child of this.#children.get(key) ?? []) {
      const referrer = this.#referrers.get(child);
      if (!referrer?.counts) continue;
      count(deltas, referrer.references, sign);
      this.#countBelow(child, sign, deltas);
    }
  }

  #apply(deltas: ReadonlyMap<Use, number>): UseChange {
    const begun: Use[] = [];
    const ended: Use[] = [];
    const further = new Map<Use, number>();
    for (const [use, delta] of deltas) {
      const before = this.#uses.get(use) ?? 0;
      const after = before + delta;
      if (after > 0) this.#uses.set(use, after);
      else this.#uses.delete(use);
      if (before > 0 === after > 0) continue;
      if (isReferredTo(use)) {
        const parameters = this.#referrers.get(use as Key);
        count(further, parameters?.references ?? [], after > 0 ? 1 : -1);
      } else (after > 0 ? begun : ended).push(use);
    }
    if (further.size === 0) return { begun, ended };
    const more = this.#apply(further);
    return { begun: [...begun, ...more.begun], ended: [...ended, ...more.ended] };
  }
}

/** Of use only where somebody refers to it, and refers to others itself. */
function isReferredTo(use: Use): boolean {
  return use.startsWith("GatewayParameters/");
}

function count(deltas: Map<Use, number>, uses: readonly Use[], by: 1 | -1): void {
  for (const use of uses) deltas.set(use, (deltas.get(use) ?? 0) + by);
}

function sameReferrer(a: Referrer | undefined, b: Referrer | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.counts === b.counts &&
    a.parent === b.parent &&
    a.references.length === b.references.length &&
    a.references.every((use, index) => use === b.references[index])
  );
}

function referrerOf(resource: Resource, controllerName: string): Referrer | undefined {
  switch (resource.kind) {
    case "GatewayClass": {
      const { parametersRef } = resource.spec;
      const counts = resource.spec.controllerName === controllerName;
      return { counts, references: counts ? parametersOf(parametersRef, parametersRef?.namespace) : [] };
    }
    case "GatewayParameters":
      return { counts: true, references: referencesOfParameters(resource) };
    case "Gateway":
      return {
        parent: keyFor("GatewayClass", "", resource.spec.gatewayClassName),
        counts: true,
        references: referencesOfGateway(resource),
      };
    case "ListenerSet":
    case "XListenerSet": {
      const { parentRef } = resource.spec;
      const namespace = parentRef.namespace ?? resource.metadata.namespace ?? "";
      return {
        parent: keyFor("Gateway", namespace, parentRef.name),
        counts: true,
        references: certificatesOf(resource),
      };
    }
    case "TrafficPolicy":
      return { counts: true, references: credentialsOf(resource) };
    case "ClientPolicy":
      return { counts: true, references: authoritiesOf(resource) };
    case "BackendTLSPolicy":
      return { counts: true, references: referencesOfPolicy(resource) };
    default:
      return undefined;
  }
}

function referencesOfGateway(gateway: Gateway): readonly Use[] {
  const { tls } = gateway.spec;
  const validations = [tls?.frontend?.default, ...(tls?.frontend?.perPort ?? []).map((port) => port.tls)];
  const client = tls?.backend?.clientCertificateRef;
  return [
    ...parametersOf(gateway.spec.infrastructure?.parametersRef, gateway.metadata.namespace),
    ...certificatesOf(gateway),
    ...(client === undefined ? [] : usesOf([client], gateway)),
    ...validations.flatMap((each) => usesOf(each?.validation?.caCertificateRefs ?? [], gateway)),
  ];
}

function parametersOf(
  reference: { readonly group: string; readonly kind: string; readonly name: string } | undefined,
  namespace: string | undefined,
): readonly Key[] {
  if (reference?.group !== MERGEWAY_GROUP || reference.kind !== "GatewayParameters") return [];
  return [keyFor("GatewayParameters", namespace ?? "", reference.name)];
}

function referencesOfParameters({ metadata, spec }: GatewayParameters): readonly Key[] {
  const { credentialsSecretRef, tunnelTokenSecretRef } = spec?.tunnel ?? {};
  return [credentialsSecretRef, tunnelTokenSecretRef].flatMap((reference) =>
    reference === undefined ? [] : [keyFor("Secret", metadata.namespace ?? "", reference.name)],
  );
}

function certificatesOf(owner: Gateway | ListenerSet): readonly Use[] {
  return (owner.spec.listeners ?? []).flatMap(({ tls }) => usesOf(tls?.certificateRefs ?? [], owner));
}

function referencesOfPolicy(policy: BackendTlsPolicy): readonly Use[] {
  return usesOf(policy.spec.validation.caCertificateRefs ?? [], policy);
}

/** Secrets with credentials and ConfigMaps with keys or answers, of the policy's own namespace. */
function credentialsOf({ metadata, spec }: TrafficPolicy): readonly Use[] {
  const { namespace = "" } = metadata;
  return [spec.defaults, spec.overrides].flatMap((settings) => {
    const secrets = [settings?.apiKeys?.secretRef, settings?.basicAuth?.secretRef];
    const maps = [
      ...(settings?.jwt?.issuers ?? []).map(({ jwks }) => jwks.configMapRef),
      settings?.directResponse?.body?.configMapRef,
    ];
    return [
      ...secrets.flatMap((each) => (each === undefined ? [] : [keyFor("Secret", namespace, each.name)])),
      ...maps.flatMap((each) => (each === undefined ? [] : [keyFor("ConfigMap", namespace, each.name)])),
    ];
  });
}

/** ConfigMaps with authorities, of the policy's own namespace. */
function authoritiesOf({ metadata, spec }: ClientPolicy): readonly Use[] {
  return [spec.defaults, spec.overrides].flatMap((settings) =>
    (settings?.tls?.clientCertificates?.caCertificateRefs ?? []).map(({ name }) =>
      keyFor("ConfigMap", metadata.namespace ?? "", name),
    ),
  );
}

function usesOf(references: readonly ObjectReference[], { kind: own, metadata }: Resource): readonly Use[] {
  const { namespace: home = "" } = metadata;
  return references.flatMap(({ group, kind, namespace = home, name }) => {
    if (group !== "" || (kind !== "Secret" && kind !== "ConfigMap")) return [];
    const from = needsGrant({ namespace: home }, { namespace }) ? fromOf(GROUP_OF_KIND[own], own, home) : "";
    return [useOf(keyFor(kind, namespace, name), from)];
  });
}
