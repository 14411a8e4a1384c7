import { type Key, partsOf } from "../../api/key.ts";
import { GROUP_OF_KIND } from "../../api/resource.ts";
import type { Route } from "../../api/routes.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Inputs } from "../foundation/inputs.ts";
import { backendId, gatewayName } from "../foundation/item-ids.ts";
import type { EngineSettings } from "../foundation/settings.ts";
import type { ListenerKey } from "../listeners/listeners.ts";
import { resolveBackend } from "../references/backends.ts";
import type { Grants } from "../references/grants.ts";
import type { ServiceEndpoints } from "../references/refused-endpoints.ts";
import { compileRules } from "../rules/compile.ts";
import type { CompiledRules } from "../rules/compiled.ts";
import type { RouteAttachment } from "./route-attachment.ts";

/**
 * A route's rules for one Gateway that it is attached to (or was refused by: its references are
 * reported all the same).
 */
export interface CompiledRoute extends CompiledRules {
  readonly gateway: Key;
  /** The listeners of this Gateway that the route is bound to. */
  readonly listeners: readonly ListenerKey[];
}

export function compiledRouteKey(route: Key, gateway: Key): string {
  return `${route}@${gateway}`;
}

/**
 * The Gateway under which the references of a route are reported that no Gateway of ours has
 * accepted.
 */
export const NO_GATEWAY: Key = "Gateway//";

export function deriveCompiledRoutes(
  graph: Graph,
  sources: {
    readonly inputs: Inputs;
    readonly grants: Grants;
    readonly endpoints: ServiceEndpoints;
    readonly attachments: ReadonlyCollection<RouteAttachment>;
    /** What a rule reaches its backends as, see `BackendTarget.use`. */
    readonly useOf: (route: Key, ruleName: string | undefined, lookup: Lookup) => string | undefined;
  },
  settings: EngineSettings,
): ReadonlyCollection<CompiledRoute> {
  const { inputs, grants, endpoints, attachments, useOf } = sources;
  return graph.expand<RouteAttachment, CompiledRoute>(
    "compiled routes",
    attachments,
    (key, attachment, lookup) => {
      const route: Route | undefined = lookup.get(inputs.routes, key);
      if (route === undefined) return [];
      const from = {
        group: GROUP_OF_KIND[route.kind],
        kind: route.kind,
        namespace: partsOf(key).namespace,
      };
      return gatewaysOfRoute(attachment).map((gateway) => {
        const compiled = compileRules(route, {
          features: settings.features,
          resolve: (reference, ruleName) => {
            const resolved = resolveBackend(reference, from, lookup, { inputs, grants, endpoints });
            const use = "target" in resolved ? useOf(key, ruleName, lookup) : undefined;
            return "failure" in resolved || use === undefined
              ? resolved
              : { target: { ...resolved.target, use } };
          },
          idOf: (target) => backendId(gateway, target),
          gateway: gatewayName(gateway),
        });
        return [
          compiledRouteKey(key, gateway),
          { ...compiled, gateway, listeners: listenersAt(attachment, gateway) },
        ] as const;
      });
    },
  );
}

/**
 * A route of which nothing can be served is not accepted (HTTPRoute, RouteReasonUnsupportedValue).
 */
export function isWhollyDropped(compiled: CompiledRules | undefined): boolean {
  return compiled !== undefined && compiled.dropped.length > 0 && compiled.rules.length === 0;
}

/**
 * The rules of a route as its status speaks of them: they differ between Gateways only in the ids
 * of backends.
 */
export function anyCompiled(
  route: Key,
  attachment: RouteAttachment,
  lookup: Lookup,
  compiled: ReadonlyCollection<CompiledRoute>,
): CompiledRoute | undefined {
  return lookup.get(compiled, compiledRouteKey(route, gatewaysOfRoute(attachment)[0] ?? NO_GATEWAY));
}

function listenersAt({ parents }: RouteAttachment, at: Key): readonly ListenerKey[] {
  const found = new Set<ListenerKey>();
  for (const { bindings } of parents) {
    for (const { gateway, listener } of bindings) if (gateway === at) found.add(listener);
  }
  return [...found];
}

/** Every Gateway that the route has a binding at, or the placeholder. */
export function gatewaysOfRoute({ parents }: RouteAttachment): readonly Key[] {
  const gateways = new Set(parents.flatMap(({ bindings }) => bindings.map(({ gateway }) => gateway)));
  return gateways.size === 0 ? [NO_GATEWAY] : [...gateways];
}
