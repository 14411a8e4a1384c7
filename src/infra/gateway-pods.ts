/**
 * The pods of each Gateway, from the EndpointSlices of its Services. They also show pods that never
 * connected to this controller, and when a pod is gone for good. Slices of other Services are
 * ignored.
 */
import type { EndpointSlice } from "../api/core.ts";
import type { Key } from "../api/key.ts";
import { bounded, GATEWAY_NAME_LABEL, MANAGED_BY } from "./objects/names.ts";

export interface GatewayPod {
  readonly name: string;
  readonly isReady: boolean;
}

/** The Gateway is `namespace/name`. No list: there is no pod, or they are not known by name. */
export type OnPods = (gateway: string, pods: readonly GatewayPod[] | undefined) => void;

interface SlicePods {
  /** `namespace/label` of the Gateway. */
  readonly label: string;
  readonly pods: readonly GatewayPod[] | undefined;
}

export class GatewayPods {
  readonly #onPods: OnPods;
  /** Served Gateways by their label: long names stand there cut. */
  readonly #gateways: Map<string, string> = new Map();
  readonly #slices: Map<Key, SlicePods> = new Map();
  /** The same by label, so that a change costs what its own Gateway has. */
  readonly #byLabel: Map<string, Set<Key>> = new Map();
  readonly #told: Map<string, string> = new Map();

  constructor(onPods: OnPods) {
    this.#onPods = onPods;
  }

  serve(gateway: string): void {
    const label = labelOf(gateway);
    this.#gateways.set(label, gateway);
    this.#tell(label);
  }

  release(gateway: string): void {
    const label = labelOf(gateway);
    if (!this.#gateways.delete(label) || !this.#told.delete(label)) return;
    this.#onPods(gateway, undefined);
  }

  notice(key: Key, slice: EndpointSlice | undefined): void {
    const before = this.#slices.get(key);
    const after = slice === undefined ? undefined : podsIn(slice);
    if (before === undefined && after === undefined) return;
    this.#forget(key);
    if (after !== undefined) this.#keep(key, after);
    for (const label of new Set([before?.label, after?.label])) if (label !== undefined) this.#tell(label);
  }

  #keep(key: Key, slice: SlicePods): void {
    const siblings = this.#byLabel.get(slice.label) ?? new Set();
    this.#byLabel.set(slice.label, siblings.add(key));
    this.#slices.set(key, slice);
  }

  #forget(key: Key): void {
    const label = this.#slices.get(key)?.label ?? "";
    const siblings = this.#byLabel.get(label);
    siblings?.delete(key);
    if (siblings?.size === 0) this.#byLabel.delete(label);
    this.#slices.delete(key);
  }

  #tell(label: string): void {
    const gateway = this.#gateways.get(label);
    if (gateway === undefined) return;
    const slices = Array.from(this.#byLabel.get(label) ?? [], (key) => this.#slices.get(key));
    const pods = slices.every((each) => each?.pods !== undefined)
      ? united(slices.flatMap((each) => each?.pods ?? []))
      : [];
    const text = JSON.stringify(pods);
    if (text === (this.#told.get(label) ?? "[]")) return;
    this.#told.set(label, text);
    this.#onPods(gateway, pods.length === 0 ? undefined : pods);
  }
}

function labelOf(gateway: string): string {
  const at = gateway.indexOf("/");
  return `${gateway.slice(0, at)}/${bounded(gateway.slice(at + 1))}`;
}

function podsIn({ metadata, endpoints = [] }: EndpointSlice): SlicePods | undefined {
  const { labels = {}, namespace } = metadata;
  const name = labels[GATEWAY_NAME_LABEL];
  if (name === undefined || labels["app.kubernetes.io/managed-by"] !== MANAGED_BY) return undefined;
  const staying = endpoints.filter(({ conditions }) => conditions?.terminating !== true);
  const pods = staying.flatMap(({ targetRef, conditions }) =>
    targetRef?.kind === "Pod" && targetRef.name !== undefined
      ? [{ name: targetRef.name, isReady: conditions?.ready !== false }]
      : [],
  );
  return { label: `${namespace}/${name}`, pods: pods.length === staying.length ? pods : undefined };
}

/** A pod stands in a slice of each Service and each family of addresses. */
function united(pods: readonly GatewayPod[]): readonly GatewayPod[] {
  const byName = Map.groupBy(pods, ({ name }) => name);
  return Array.from(byName, ([name, all]) => ({ name, isReady: all.some(({ isReady }) => isReady) })).sort(
    (a, b) => (a.name < b.name ? -1 : 1),
  );
}
