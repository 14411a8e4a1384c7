/**
 * How backends are reached, compared with a naive computation from the policies alone, on random
 * histories (GEP-713, Effective Policies).
 */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { BackendPolicy, WrittenBackendSettings } from "../../../src/api/backend-policy.ts";
import { RoutingTable } from "../../../src/matching/routing-table.ts";
import type { BackendItem } from "../../../src/plan/backend.ts";
import type { Rule } from "../../../src/plan/rule.ts";
import { buildState } from "../../../src/view/build-state.ts";
import { effectivePolicy } from "../../../src/view/explain/effective-policy.ts";
import { Player, tell } from "../history.ts";
import { policyHistory } from "./policy-history.ts";

const RUNS = Number(process.env["HISTORIES"] ?? 300);

interface Target {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly section?: string | undefined;
}

/** From far to near, as a reader of the documentation would list them. */
function levelsOf(
  { gateway, service }: BackendItem,
  { origin }: Rule,
  { resources }: Player,
): readonly Target[] {
  const [namespace = "", name = ""] = gateway.split("/");
  const backend = { kind: "Service", namespace: service.namespace, name: service.name };
  const resource = resources.get(`Service/${service.namespace}/${service.name}`);
  const ports = resource?.kind === "Service" ? (resource.spec?.ports ?? []) : [];
  const portName = ports.find(({ port }) => port === service.port)?.name;
  const route = { kind: origin.kind, namespace: origin.namespace, name: origin.name };
  return [
    { kind: "Gateway", namespace, name },
    backend,
    ...(portName === undefined ? [] : [{ ...backend, section: portName }]),
    route,
    ...(origin.ruleName === undefined ? [] : [{ ...route, section: origin.ruleName }]),
  ];
}

function policyOf(target: Target, policies: readonly BackendPolicy[]): BackendPolicy | undefined {
  const age = ({ metadata }: BackendPolicy): string => `${metadata.creationTimestamp ?? ""} ${metadata.name}`;
  return policies
    .filter(({ metadata }) => metadata.namespace === target.namespace)
    .filter(({ spec }) =>
      spec.targetRefs.some(
        ({ kind, name, sectionName }) =>
          kind === target.kind && name === target.name && sectionName === target.section,
      ),
    )
    .sort((a, b) => (age(a) < age(b) ? -1 : 1))[0];
}

/** What the random settings say, if it can be read. */
const READ = {
  loadBalancing: ({ loadBalancing }: WrittenBackendSettings): string | undefined => {
    if (loadBalancing?.type === "ConsistentHash")
      return loadBalancing.consistentHash?.header === "X-User" ? "hash x-user" : undefined;
    const words: Readonly<Record<string, string>> = {
      RoundRobin: "roundRobin",
      LeastRequest: "leastRequest",
      Random: "random",
    };
    return words[loadBalancing?.type ?? ""];
  },
  sessionPersistence: ({ sessionPersistence }: WrittenBackendSettings): string | undefined => {
    const name = sessionPersistence?.cookie?.name;
    return name === "odd;name" ? undefined : name;
  },
};

/** The farthest override, or the nearest default that no override stands beside or before. */
function naiveChoice(
  levels: readonly BackendPolicy[],
  read: (written: WrittenBackendSettings) => string | undefined,
): string | undefined {
  const override = levels.find(({ spec }) => read(spec.overrides ?? {}) !== undefined);
  if (override !== undefined) return read(override.spec.overrides ?? {});
  const fallback = levels.findLast(({ spec }) => read(spec.defaults ?? {}) !== undefined);
  return read(fallback?.spec.defaults ?? {});
}

const LIMITS = ["connections", "pendingRequests", "requests"] as const;

function naiveLimits(levels: readonly BackendPolicy[]): Readonly<Record<string, number>> | undefined {
  const readable = (limits: WrittenBackendSettings["limits"]): typeof limits =>
    limits?.requests === 0 || limits?.requests === 2 ** 53 ? undefined : limits;
  const overrides = levels.map(({ spec }) => readable(spec.overrides?.limits));
  const defaults = levels.map(({ spec }) => readable(spec.defaults?.limits));
  const nearest = defaults.findLastIndex((each) => each !== undefined);
  const holds = nearest >= 0 && overrides.slice(nearest).every((each) => each === undefined);
  const all = [...overrides, holds ? defaults[nearest] : undefined].filter((each) => each !== undefined);
  if (all.length === 0) return undefined;
  const found = LIMITS.flatMap((name) => {
    const values = all.flatMap((each) => each[name] ?? []);
    return values.length === 0 ? [] : [[name, Math.min(...values)] as const];
  });
  return Object.fromEntries(found);
}

function shown({ balancing, persistence, limits }: BackendItem): unknown {
  return {
    balancing:
      balancing?.type === "hash" ? `hash ${"name" in balancing.key && balancing.key.name}` : balancing?.type,
    persistence: persistence?.name,
    limits,
  };
}

interface Reached {
  readonly rule: Rule;
  readonly backend: BackendItem;
}

function reachedBackends(table: RoutingTable): readonly Reached[] {
  return [...table.ports()].flatMap(({ id }) =>
    [...table.listenersOf(id)].flatMap((listener) =>
      [...table.hostsOf(listener.id)].flatMap(({ rules }) =>
        rules.flatMap((rule) =>
          rule.action.type !== "forward"
            ? []
            : rule.action.backends.flatMap(({ backend }) => {
                const item = backend === undefined ? undefined : table.get("backend", backend);
                return item === undefined ? [] : [{ rule, backend: item }];
              }),
        ),
      ),
    ),
  );
}

function worldAfter(player: Player): { readonly table: RoutingTable; readonly policies: BackendPolicy[] } {
  const table = new RoutingTable();
  table.apply({ upserts: [...player.engine.plan()], removes: [] });
  const policies = [...player.resources.values()].filter((each) => each.kind === "BackendPolicy");
  return { table, policies };
}

/** A failing history is told step by step. */
function holds(check: (player: Player) => void, runs: number): void {
  fc.assert(
    fc.property(policyHistory, (steps) => {
      const player = new Player();
      for (const step of steps) player.play(step);
      try {
        check(player);
      } catch (error) {
        throw new Error(`${error instanceof Error ? error.message : error}\n${tell(steps)}`, {
          cause: error,
        });
      }
    }),
    { numRuns: runs },
  );
}

test("each backend of each rule is reached as the levels say, and no route's policy holds for another", () => {
  let decided = 0;
  holds((player) => {
    const { table, policies } = worldAfter(player);
    for (const { rule, backend } of reachedBackends(table)) {
      if (rule.origin.kind !== "HTTPRoute" && rule.origin.kind !== "GRPCRoute") continue;
      const levels = levelsOf(backend, rule, player).flatMap((target) => policyOf(target, policies) ?? []);
      if (levels.length > 0) decided++;
      expect(shown(backend)).toEqual({
        balancing: naiveChoice(levels, READ.loadBalancing),
        persistence: naiveChoice(levels, READ.sessionPersistence),
        limits: naiveLimits(levels),
      });
    }
  }, RUNS);
  expect(decided).toBeGreaterThan(RUNS);
});

test("no nearer level has more than an override allows", () => {
  holds((player) => {
    const { table, policies } = worldAfter(player);
    for (const { rule, backend } of reachedBackends(table)) {
      for (const target of levelsOf(backend, rule, player)) {
        const { requests, ...bounds } = policyOf(target, policies)?.spec.overrides?.limits ?? {};
        if (requests === 0 || requests === 2 ** 53) continue;
        for (const [name, most] of Object.entries(bounds))
          expect(backend.limits?.[name as "connections"]).toBeLessThanOrEqual(most);
      }
    }
  }, RUNS);
});

test("explain has one choice of each backend, and it is the one of the plan", () => {
  holds(
    (player) => {
      const { table } = worldAfter(player);
      const state = buildState({ engine: player.engine, resources: player.resources });
      for (const { id } of table.ports())
        for (const { id: at, owner, section, hostname } of table.listenersOf(id))
          for (const { rules } of table.hostsOf(at))
            for (const rule of rules) {
              if (rule.action.type !== "forward") continue;
              const items = rule.action.backends.flatMap(({ backend }) =>
                backend === undefined ? [] : (table.get("backend", backend) ?? []),
              );
              const backends = items.map(({ service, endpoints }) => ({
                ...service,
                endpoints,
                weight: 1,
                share: 1,
              }));
              const { settings } = effectivePolicy(state, {
                listener: { ...owner, section, hostname },
                route: rule.origin,
                guards: [],
                backends,
              });
              const said = settings.filter(({ field }) => field === "loadBalancing").length;
              const planned = items.filter(({ balancing }) => balancing !== undefined).length;
              expect(said > 0).toBe(planned > 0);
            }
    },
    Math.ceil(RUNS / 3),
  );
});
