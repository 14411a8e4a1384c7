/** How far what a Gateway should serve has come: accepted, programmed, and what was refused. */
import type { Outline, OutlineGateway } from "../../view/outline.ts";
import { listenerNodeId, routeNodeId } from "./tree.ts";

export interface DataPlaneRefusal {
  readonly node: string;
  readonly what: string;
  readonly text: string;
}

export interface Rollout {
  readonly listeners: number;
  readonly accepted: number;
  readonly programmed: number;
  readonly waiting: number;
  /** Listeners and routes that the data plane has refused. */
  readonly refusals: readonly DataPlaneRefusal[];
  /** What the Gateway's condition says, replicas that lag among it; absent while all is well. */
  readonly note?: string;
}

/** The reason of a route whose rule the data plane has refused. */
const REFUSED = "Refused";

export function rolloutOf({ owners, conditions }: OutlineGateway, { routes }: Outline): Rollout {
  const all = owners.flatMap((owner) => owner.listeners.map((listener) => ({ owner, listener })));
  const inState = (...states: readonly string[]): number =>
    all.filter(({ listener }) => states.includes(listener.state)).length;
  const refusals = all.flatMap(({ owner, listener }): readonly DataPlaneRefusal[] => {
    const node = listenerNodeId({ ...owner, section: listener.section });
    const place = `${owner.kind} ${owner.namespace}/${owner.name}, listener ${listener.section}`;
    const own = { node, what: place, text: `${listener.reason}: ${listener.message ?? ""}` };
    const ofRoutes = listener.routes.flatMap((index): readonly DataPlaneRefusal[] => {
      const route = routes[index];
      const refused = route?.problems.filter(({ reason }) => reason === REFUSED) ?? [];
      if (route === undefined || refused.length === 0) return [];
      const what = `${route.kind} ${route.namespace}/${route.name} at ${place}`;
      return [
        { node: routeNodeId(node, route), what, text: refused.map(({ message }) => message).join("; ") },
      ];
    });
    return listener.state === "failed" ? [own, ...ofRoutes] : ofRoutes;
  });
  const programmed = conditions.find(({ type }) => type === "Programmed");
  const isQuiet =
    programmed === undefined || (programmed.status === "True" && !programmed.message.includes("replica"));
  return {
    listeners: all.length,
    accepted: inState("serving", "waiting", "failed"),
    programmed: inState("serving"),
    waiting: inState("waiting"),
    refusals,
    ...(isQuiet ? {} : { note: programmed.message }),
  };
}
