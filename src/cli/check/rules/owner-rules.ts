/** Rules about Gateways, ListenerSets and their classes. */
import { keyFor } from "../../../api/key.ts";
import type { Kind } from "../../../api/resource.ts";
import { DEFAULT_CONTROLLER } from "../../../engine/foundation/settings.ts";
import { describe, type OwnerView } from "../../../view/merged-state.ts";
import type { CheckInput, CheckRule, Problem } from "./finding.ts";
import { keyOfRef, ownersOf } from "./places.ts";

export const unknownClass: CheckRule = {
  id: "unknown-class",
  severity: "info",
  summary: "A Gateway names a GatewayClass that is not among the manifests.",
  *find({ workspace: { resources } }) {
    for (const [key, resource] of resources) {
      if (resource.kind !== "Gateway") continue;
      const name = resource.spec.gatewayClassName;
      if (resources.has(keyFor("GatewayClass", "", name))) continue;
      yield {
        at: key,
        path: ["spec", "gatewayClassName"],
        message: `GatewayClass ${name} is not here; it is taken for one of ${DEFAULT_CONTROLLER}`,
        remedy: `Add the GatewayClass, with controllerName ${DEFAULT_CONTROLLER}, or check the name.`,
      };
    }
  },
};

export const otherController: CheckRule = {
  id: "other-controller",
  severity: "info",
  summary: "A Gateway, or the Gateway of a set, belongs to another controller: Mergeway does not serve it.",
  *find({ state }) {
    for (const ref of state.foreign) {
      yield {
        at: keyOfRef(ref),
        message: `${describe(ref)} belongs to another controller and is not served`,
        remedy: `To have it served, use a GatewayClass whose controllerName is ${DEFAULT_CONTROLLER}.`,
      };
    }
  },
};

export const gatewayNotAccepted: CheckRule = {
  id: "gateway-not-accepted",
  severity: "error",
  summary: "A Gateway is not accepted, and nothing of it is served.",
  find: (input) => notAttached(input, ({ role }) => role !== "set"),
};

export const setNotAccepted: CheckRule = {
  id: "set-not-accepted",
  severity: "error",
  summary: "A ListenerSet is not attached to its Gateway: it may not, or the Gateway is not there.",
  find: (input) => notAttached(input, ({ role }) => role === "set"),
};

const REMEDIES: Readonly<Record<string, string>> = {
  NotAllowed: "Let the Gateway's spec.allowedListeners select this namespace, or attach to another Gateway.",
  ParentNotAccepted: "Name a Gateway that is there and accepted in spec.parentRef.",
  Invalid: "Name a Gateway (group gateway.networking.k8s.io) as parent.",
  UnsupportedAddress: "Remove the address, or use type IPAddress or Hostname.",
  InvalidParameters: "Remove the parametersRef, or name a GatewayParameters object that is there and valid.",
};

function* notAttached({ state }: CheckInput, concerns: (owner: OwnerView) => boolean): Generator<Problem> {
  for (const owner of ownersOf(state)) {
    if (owner.attached || !concerns(owner)) continue;
    const accepted = owner.conditions.find(({ type }) => type === "Accepted");
    const reason = accepted?.reason ?? "Unknown";
    yield {
      at: keyOfRef(owner),
      path: owner.role === "set" ? ["spec", "parentRef"] : ["spec"],
      message: `${reason}: ${accepted?.message ?? "not accepted"}`,
      remedy: REMEDIES[reason] ?? "Mend what the message says.",
    };
  }
}

export const gatewayReferences: CheckRule = {
  id: "gateway-reference",
  severity: "error",
  summary: "A reference of the Gateway itself (its client certificate for backends) does not resolve.",
  *find({ state }) {
    for (const gateway of state.gateways) {
      const resolved = gateway.conditions.find(({ type }) => type === "ResolvedRefs");
      if (resolved?.status !== "False") continue;
      yield {
        at: keyOfRef(gateway),
        path: ["spec", "tls"],
        message: `${resolved.reason}: ${resolved.message}`,
        remedy: "Add what it refers to, or a ReferenceGrant beside it.",
      };
    }
  },
};

export const namespaceUnknown: CheckRule = {
  id: "namespace-labels-unknown",
  severity: "info",
  summary: "A Gateway selects namespaces by label, and the Namespace of a set is not among the manifests.",
  *find({ workspace: { resources } }) {
    for (const [key, resource] of resources) {
      if (resource.kind !== "ListenerSet" && resource.kind !== "XListenerSet") continue;
      const { namespace = "" } = resource.metadata;
      const { parentRef } = resource.spec;
      const parent = resources.get(
        keyFor(parentRef.kind as Kind, parentRef.namespace ?? namespace, parentRef.name),
      );
      if (parent?.kind !== "Gateway" || parent.spec.allowedListeners?.namespaces?.from !== "Selector")
        continue;
      if (resources.has(keyFor("Namespace", "", namespace))) continue;
      yield {
        at: key,
        path: ["metadata", "namespace"],
        message: `the Gateway selects namespaces by label, and the labels of namespace ${namespace} are not known here`,
        remedy: `Add the Namespace ${namespace} with its labels to the manifests.`,
      };
    }
  },
};
