/** The whole world in a few numbers. */
import type { ListenerState } from "../../view/merged-state.ts";
import type { Outline } from "../../view/outline.ts";

export interface Summary {
  readonly gateways: number;
  readonly owners: number;
  readonly listeners: number;
  readonly states: Readonly<Record<ListenerState, number>>;
  readonly routes: number;
  readonly routesWithProblems: number;
  readonly strayRoutes: number;
}

export function summaryOf(outline: Outline): Summary {
  const owners = [...outline.gateways.flatMap((gateway) => gateway.owners), ...outline.orphans];
  const states = { serving: 0, waiting: 0, failed: 0, conflicted: 0, refused: 0 };
  for (const { listeners } of owners) for (const { state } of listeners) states[state]++;
  const routes = new Map<string, boolean>();
  for (const { kind, namespace, name, problems } of outline.routes) {
    const key = `${kind}/${namespace}/${name}`;
    routes.set(key, problems.length > 0 || routes.get(key) === true);
  }
  return {
    gateways: outline.gateways.length,
    owners: owners.length,
    listeners: Object.values(states).reduce((sum, count) => sum + count, 0),
    states,
    routes: routes.size + outline.strayRoutes.length,
    routesWithProblems: [...routes.values()].filter(Boolean).length,
    strayRoutes: outline.strayRoutes.length,
  };
}
