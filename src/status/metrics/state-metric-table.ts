/**
 * Every metric of the state of Gateway API objects, by kind. Names and labels are those of
 * gateway-api-state-metrics, a configuration of kube-state-metrics; ListenerSets, which it does not
 * have, follow its rules. Its `*_labels` are left out: tenants would choose names of labels.
 */
import { type Kind, ROUTE_KINDS } from "../../api/resource.ts";
import { CLASS_FAMILIES, GATEWAY_FAMILIES, SET_FAMILIES } from "./gateway-families.ts";
import { routeFamilies } from "./route-families.ts";
import type { StateFamily } from "./state-family.ts";

export interface KindMetrics {
  /** Kinds of one shape share their metrics. */
  readonly kinds: readonly Kind[];
  readonly prefix: string;
  /** Labels that name the object. */
  readonly identity: readonly IdentityLabel[];
  readonly families: readonly StateFamily<never>[];
}

export type IdentityLabel = "namespace" | "name" | "customresource_kind";

const NAMESPACED: readonly IdentityLabel[] = ["namespace", "name"];

export const STATE_METRICS: readonly KindMetrics[] = [
  {
    kinds: ["GatewayClass"],
    prefix: "gatewayapi_gatewayclass",
    identity: ["name"],
    families: CLASS_FAMILIES,
  },
  { kinds: ["Gateway"], prefix: "gatewayapi_gateway", identity: NAMESPACED, families: GATEWAY_FAMILIES },
  {
    kinds: ["ListenerSet", "XListenerSet"],
    prefix: "gatewayapi_listenerset",
    identity: [...NAMESPACED, "customresource_kind"],
    families: SET_FAMILIES,
  },
  ...ROUTE_KINDS.map((kind) => ({
    kinds: [kind],
    prefix: `gatewayapi_${kind.toLowerCase()}`,
    identity: NAMESPACED,
    families: routeFamilies(kind),
  })),
];

export const OMITTED_OBJECTS = {
  name: "mergeway_state_omitted_objects",
  help: "Objects that are in no metric here because there are more than 50,000 of their kind; the oldest are shown",
  labels: ["kind"],
} as const;
