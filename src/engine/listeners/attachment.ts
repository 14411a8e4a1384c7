/**
 * Whether an owner is attached to its Gateway. Both sides must agree:
 *
 * - A root is always attached to itself.
 * - A set is attached when spec.allowedListeners of the Gateway selects the set's namespace. The
 *   default is None (GEP-1713, Gateway & ListenerSet Handshake).
 * - A child Gateway is attached when its parent declares allowedChildren, has the same
 *   gatewayClassName and is no child itself. The child sets no other infrastructure and no
 *   addresses (GEP-1713 (provisional), Validation).
 */
import type { Gateway } from "../../api/gateway.ts";
import type { DataPlaneName } from "../../api/gateway-parameters.ts";
import { type Key, partsOf } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { allowsNamespace } from "../foundation/selectors.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { GatewayState } from "./gateways.ts";
import type { Owner } from "./owners.ts";

export interface Attachment {
  readonly owner: Owner;
  /** The Gateway that the listeners merge into; absent when the owner is not attached. */
  readonly gateway?: Key;
  /** The data plane that the Gateway has chosen, if it has. */
  readonly dataPlane?: DataPlaneName;
  readonly problem?: Failure;
  /** The parent Gateway does not exist. */
  readonly orphan?: true;
}

/** Owners whose Gateway belongs to another controller have no attachment. */
export function deriveAttachments(
  graph: Graph,
  inputs: Inputs,
  owners: ReadonlyCollection<Owner>,
  states: ReadonlyCollection<GatewayState>,
): ReadonlyCollection<Attachment> {
  const labels = (lookup: Lookup) => (namespace: string) =>
    lookup.get(inputs.namespaces, `Namespace//${namespace}`)?.metadata.labels ?? {
      "kubernetes.io/metadata.name": namespace,
    };

  function attach(owner: Owner, lookup: Lookup): Attachment | undefined {
    if (owner.role === "root") return attachRoot(owner, lookup);
    if (owner.gateway === undefined || owner.gateway === "") return refuseForeignParent(owner, lookup);
    const parent = lookup.get(states, owner.gateway);
    if (parent === undefined) return refuseMissingParent(owner, owner.gateway, lookup);
    const problem =
      owner.role === "set" ? setProblem(owner, parent, lookup) : childProblem(owner, parent, lookup);
    if (problem !== undefined) return { owner, problem };
    if (parent.problem !== undefined) return { owner, problem: PARENT_NOT_ACCEPTED };
    return attached(owner, parent);
  }

  function attachRoot(owner: Owner, lookup: Lookup): Attachment | undefined {
    const state = lookup.get(states, owner.key);
    if (state === undefined) return undefined;
    return state.problem === undefined ? attached(owner, state) : { owner, problem: state.problem };
  }

  /**
   * A child Gateway with a broken reference is still a Gateway of our class; a set with one belongs
   * to nobody.
   */
  function refuseForeignParent(owner: Owner, lookup: Lookup): Attachment | undefined {
    if (owner.role === "child" && lookup.get(states, owner.key) === undefined) return undefined;
    const message = "the parent reference does not name a Gateway of group gateway.networking.k8s.io";
    return { owner, problem: { reason: "Invalid", message }, orphan: true };
  }

  function refuseMissingParent(owner: Owner, parent: Key, lookup: Lookup): Attachment | undefined {
    const exists = lookup.get(inputs.gateways, parent) !== undefined;
    if (owner.role === "set" && exists) return undefined;
    if (owner.role === "child" && lookup.get(states, owner.key) === undefined) return undefined;
    if (exists) return { owner, problem: OTHER_CLASS };
    const { namespace, name } = partsOf(parent);
    const message = `Gateway ${namespace}/${name} does not exist`;
    return { owner, problem: { reason: "ParentNotAccepted", message }, orphan: true };
  }

  function setProblem(owner: Owner, parent: GatewayState, lookup: Lookup): Failure | undefined {
    if (parent.isChild) {
      return {
        reason: "NotAllowed",
        message: "the parent Gateway is itself attached to another one; attach to that one instead",
      };
    }
    const home = partsOf(parent.key).namespace;
    return allowsNamespace(parent.allowedListeners, home, owner.namespace, labels(lookup))
      ? undefined
      : {
          reason: "NotAllowed",
          message: `the Gateway's spec.allowedListeners does not allow listeners from namespace ${owner.namespace}`,
        };
  }

  function childProblem(owner: Owner, parent: GatewayState, lookup: Lookup): Failure | undefined {
    const child = lookup.get(inputs.gateways, owner.key);
    const shape = child && childShapeProblem(child);
    if (shape !== undefined) return { reason: "Invalid", message: shape };
    if (parent.isChild) {
      return {
        reason: "NotAllowed",
        message: "the parent Gateway is itself a child; only one tier is allowed",
      };
    }
    if (child?.spec.gatewayClassName !== parent.className) return OTHER_CLASS;
    const home = partsOf(parent.key).namespace;
    if (
      parent.allowedChildren === undefined ||
      !allowsNamespace(parent.allowedChildren, home, owner.namespace, labels(lookup))
    ) {
      return {
        reason: "NotAllowed",
        message: `the parent Gateway's allowedChildren does not allow children from namespace ${owner.namespace}`,
      };
    }
    return undefined;
  }

  return graph.derive("attachments", owners, (_key, owner, lookup) => attach(owner, lookup));
}

function attached(owner: Owner, { key, dataPlane }: GatewayState): Attachment {
  return { owner, gateway: key, ...(dataPlane === undefined ? {} : { dataPlane }) };
}

export const PARENT_NOT_ACCEPTED: Failure = {
  reason: "ParentNotAccepted",
  message: "the parent Gateway is not accepted",
};

const OTHER_CLASS: Failure = {
  reason: "Invalid",
  message: "a child Gateway must have the same gatewayClassName as its parent",
};

function childShapeProblem(child: Gateway): string | undefined {
  const { attachTo: _attachTo, ...others } = child.spec.infrastructure ?? {};
  const extra = Object.keys(others)[0];
  if (extra !== undefined)
    return `a child Gateway cannot set spec.infrastructure.${extra}: its parent owns the infrastructure`;
  if (child.spec.addresses !== undefined && child.spec.addresses.length > 0) {
    return "a child Gateway cannot set spec.addresses: it has its parent's addresses";
  }
  return undefined;
}
