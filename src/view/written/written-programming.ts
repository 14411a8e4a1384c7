/**
 * What of the computed state is really served. Whoever computes from the objects of a cluster
 * cannot know: only the controller hears of the data plane, and writes it into the condition
 * Programmed.
 */
import { type Key, keyFor } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { Verdict } from "../../engine/foundation/verdict.ts";
import { stateOf } from "../build-listener.ts";
import type { GatewayView, ListenerView, MergedState, ObjectRef, OwnerView } from "../merged-state.ts";
import { currentVerdicts } from "./current-verdicts.ts";

export function withWrittenProgramming(
  state: MergedState,
  resources: ReadonlyMap<Key, Resource>,
): MergedState {
  const written = (ref: ObjectRef): Written =>
    writtenOf(resources.get(keyFor(ref.kind as Kind, ref.namespace, ref.name)));
  return {
    ...state,
    gateways: state.gateways.map((gateway): GatewayView => {
      const conditions = programmedAs(gateway.conditions, written(gateway).own);
      return {
        ...gateway,
        conditions,
        owners: gateway.owners.map((owner) => ownerAs(owner, written(owner))),
      };
    }),
  };
}

type Kind = Resource["kind"];

interface Written {
  readonly own: Verdict | undefined;
  /** By the name of the listener. */
  readonly listeners: ReadonlyMap<string, Verdict>;
}

function writtenOf(resource: Resource | undefined): Written {
  if (resource?.kind !== "Gateway" && resource?.kind !== "ListenerSet" && resource?.kind !== "XListenerSet")
    return { own: undefined, listeners: new Map() };
  const { metadata, status } = resource;
  const listeners = (status?.listeners ?? []).flatMap(({ name, conditions }) => {
    const programmed = programmedIn(currentVerdicts(metadata, conditions));
    return programmed === undefined ? [] : [[name, programmed] as const];
  });
  return { own: programmedIn(currentVerdicts(metadata, status?.conditions)), listeners: new Map(listeners) };
}

function programmedIn(verdicts: readonly Verdict[]): Verdict | undefined {
  return verdicts.find(({ type }) => type === "Programmed");
}

function programmedAs(conditions: readonly Verdict[], written: Verdict | undefined): readonly Verdict[] {
  if (written === undefined) return conditions;
  return conditions.map((condition) => (condition.type === "Programmed" ? written : condition));
}

function ownerAs(owner: OwnerView, { own, listeners }: Written): OwnerView {
  return {
    ...owner,
    conditions: programmedAs(owner.conditions, own),
    listeners: owner.listeners.map((listener) => listenerAs(listener, listeners.get(listener.section))),
  };
}

/** What is refused or conflicted never came to the data plane. */
function listenerAs(listener: ListenerView, programmed: Verdict | undefined): ListenerView {
  if (programmed === undefined || listener.state !== "serving") return listener;
  return { ...listener, ...stateOf([programmed]) };
}
