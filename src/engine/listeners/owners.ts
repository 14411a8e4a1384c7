/**
 * Owner: the one abstraction over every kind that carries listeners. Each kind has a small adapter
 * to it, and the merge knows only owners:
 *
 * - Gateway: its own root.
 * - ListenerSet: attached by spec.parentRef (GEP-1713).
 * - XListenerSet: attached by spec.parentRef (GEP-1713 (experimental)).
 * - Child Gateway: attached by spec.infrastructure.attachTo (GEP-1713 (provisional)), or by the
 *   annotation mergeway.dev/attach-to.
 */
import type { Gateway, Listener, ListenerSet, NamespaceSelection } from "../../api/gateway.ts";
import { type Key, keyFor, keyOf } from "../../api/key.ts";
import type { ObjectMeta } from "../../api/metadata.ts";
import type { ObjectReference } from "../../api/references.ts";
import { GATEWAY_GROUP, GROUP_OF_KIND } from "../../api/resource.ts";
import { ownerRank, type Rank } from "../foundation/precedence.ts";

export interface Owner {
  readonly key: Key;
  readonly kind: "Gateway" | "ListenerSet" | "XListenerSet";
  readonly role: "root" | "set" | "child";
  readonly namespace: string;
  readonly name: string;
  /**
   * The Gateway that the listeners merge into: its own key for a root. Absent when the reference
   * names no Gateway at all.
   */
  readonly gateway: Key | undefined;
  readonly listeners: readonly Listener[];
  readonly rank: Rank;
  /**
   * Ports that an earlier status has shown for entries without one: the status is the memory of the
   * assignment.
   */
  readonly shownPorts: Readonly<Record<string, number>>;
}

export const ATTACH_TO_ANNOTATION = "mergeway.dev/attach-to";
export const ALLOWED_CHILDREN_ANNOTATION = "mergeway.dev/allowed-children";

const NO_PORTS: Readonly<Record<string, number>> = {};

export function ownerOfGateway(gateway: Gateway): Owner {
  const parent = parentOfChild(gateway);
  return {
    key: keyOf(gateway),
    kind: "Gateway",
    role: parent === undefined ? "root" : "child",
    namespace: gateway.metadata.namespace ?? "",
    name: gateway.metadata.name,
    gateway: parent === undefined ? keyOf(gateway) : parent,
    listeners: gateway.spec.listeners ?? [],
    rank: ownerRank(gateway.metadata, parent === undefined ? "root" : "child"),
    shownPorts: NO_PORTS,
  };
}

export function ownerOfSet(set: ListenerSet): Owner {
  return {
    key: keyOf(set),
    kind: set.kind,
    role: "set",
    namespace: set.metadata.namespace ?? "",
    name: set.metadata.name,
    gateway: gatewayNamedBy(set.spec.parentRef, set.metadata),
    listeners: set.spec.listeners,
    rank: ownerRank(set.metadata, set.kind),
    shownPorts: set.spec.listeners.some((listener) => !listener.port) ? shownPorts(set) : NO_PORTS,
  };
}

/** As a referrer in ReferenceGrants. */
export function referrer(owner: Owner): { group: string; kind: string; namespace: string } {
  return { group: GROUP_OF_KIND[owner.kind], kind: owner.kind, namespace: owner.namespace };
}

/** The Gateway that this one wants to be a child of, or undefined for an ordinary Gateway. */
export function parentOfChild(gateway: Gateway): Key | undefined {
  const attachTo = gateway.spec.infrastructure?.attachTo;
  if (attachTo !== undefined) return gatewayNamedBy(attachTo, gateway.metadata) ?? "";
  const annotation = gateway.metadata.annotations?.[ATTACH_TO_ANNOTATION];
  if (annotation === undefined) return undefined;
  const [first = "", second] = annotation.split("/");
  return second === undefined
    ? keyFor("Gateway", gateway.metadata.namespace ?? "", first)
    : keyFor("Gateway", first, second);
}

/** Which namespaces children may come from, or undefined when the Gateway takes none. */
export function allowedChildren(gateway: Gateway): NamespaceSelection | undefined {
  const field = gateway.spec.infrastructure?.allowedChildren;
  if (field !== undefined) return field.namespaces ?? { from: "Same" };
  const annotation = gateway.metadata.annotations?.[ALLOWED_CHILDREN_ANNOTATION];
  if (annotation === undefined) return undefined;
  if (annotation === "All" || annotation === "Same") return { from: annotation };
  return { from: "Selector", selector: { matchLabels: parseLabels(annotation) } };
}

function gatewayNamedBy(reference: ObjectReference, metadata: ObjectMeta): Key | undefined {
  if (reference.group !== GATEWAY_GROUP || reference.kind !== "Gateway") return undefined;
  return keyFor("Gateway", reference.namespace ?? metadata.namespace ?? "", reference.name);
}

function shownPorts(set: ListenerSet): Readonly<Record<string, number>> {
  const ports: Record<string, number> = {};
  for (const { name, port } of set.status?.listeners ?? []) if (port) ports[name] = port;
  return ports;
}

/** `team=a,stage=prod`: the annotation's form of matchLabels. */
function parseLabels(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split(",").map((pair): [string, string] => {
      const [key = "", value = ""] = pair.split("=");
      return [key.trim(), value.trim()];
    }),
  );
}
