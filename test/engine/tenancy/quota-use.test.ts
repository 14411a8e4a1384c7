/** How much of its quota a namespace uses, compared with a naive count on random histories. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Key, keyOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import type { TenantPolicy, TenantQuota, TenantRule } from "../../../src/api/tenant-policy.ts";
import type { Engine } from "../../../src/engine/engine.ts";
import type { MergedListener } from "../../../src/engine/listeners/merge.ts";
import { levelOf, type QuotaUse } from "../../../src/engine/tenancy/quota-use.ts";
import { Player, tell } from "../history.ts";
import { world } from "../policies/policy-history.ts";
import { tenantPolicySpec } from "../random-policies.ts";
import { attachedPolicy, type Change, change } from "../random-resources.ts";

const RUNS = Math.ceil(Number(process.env["HISTORIES"] ?? 500) / 4);
const GATEWAY = "Gateway/ns-plat/gw-main";

const policyChange: fc.Arbitrary<Change> = fc
  .record({
    policy: attachedPolicy("TenantPolicy", tenantPolicySpec),
    deleted: fc.constantFrom(false, false, false, true),
  })
  .map(({ policy, deleted }) => ({ key: keyOf(policy), resource: deleted ? undefined : policy }));

const histories = fc
  .array(
    fc.array(fc.oneof({ weight: 1, arbitrary: policyChange }, { weight: 3, arbitrary: change }), {
      minLength: 1,
      maxLength: 3,
    }),
    { minLength: 1, maxLength: 25, size: "max" },
  )
  .map((steps) => [world, ...steps]);

type Used = Readonly<Record<keyof TenantQuota, number>>;

/** Of listeners: every one that the namespace has at the Gateway. */
function countListeners(own: readonly MergedListener[]): Omit<Used, "routes" | "rules"> {
  const named = own.filter(({ protocol }) => ["HTTP", "HTTPS", "TLS"].includes(protocol ?? ""));
  const hostnames = new Set(named.map(({ hostname }) => hostname));
  return {
    listeners: own.length,
    hostnames: hostnames.size,
    wildcards: [...hostnames].filter((name) => name === "" || name.startsWith("*")).length,
    ports: new Set(own.map(({ port }) => port)).size,
    certificates: new Set(own.flatMap(({ certificates }) => certificates)).size,
  };
}

/** Whether a route attaches there: alone, so that no rival is in its way, and without quotas. */
function attaches(route: Key, resources: ReadonlyMap<Key, Resource>): boolean {
  const alone = [...resources].filter(([key]) => key === route || !key.includes("Route/"));
  const player = new Player();
  player.play(alone.map(([key, resource]) => ({ key, resource: withoutQuotas(resource) })));
  return [...player.engine.routeAttachments()].some(({ parents }) =>
    parents.some(({ bindings }) => bindings.some(({ gateway }) => gateway === GATEWAY)),
  );
}

function withoutQuotas(resource: Resource): Resource {
  if (resource.kind !== "TenantPolicy") return resource;
  const rules = resource.spec.rules?.map(({ quota: _, ...rule }) => rule) ?? [];
  return { ...resource, spec: { ...resource.spec, rules } };
}

function oldestPolicy({ resources }: Player): TenantPolicy | undefined {
  const policies = [...resources.values()].filter((each) => each.kind === "TenantPolicy");
  const age = ({ metadata }: TenantPolicy): string => `${metadata.creationTimestamp ?? ""} ${metadata.name}`;
  return policies
    .filter(({ metadata }) => metadata.namespace === "ns-plat")
    .sort((a, b) => (age(a) < age(b) ? -1 : 1))[0];
}

function ruleOf({ resources }: Player, policy: TenantPolicy, namespace: string): TenantRule | undefined {
  const team = resources.get(`Namespace//${namespace}`)?.metadata.labels?.["team"];
  return policy.spec.rules?.find(
    ({ namespaceSelector: { matchLabels } }) => matchLabels === undefined || matchLabels["team"] === team,
  );
}

/** `namespace resource used/limit` of every namespace that has something there. */
function naiveUses(player: Player): readonly string[] {
  const policy = oldestPolicy(player);
  if (policy === undefined) return [];
  const listeners = [...player.engine.listeners()].filter(({ gateway }) => gateway === GATEWAY);
  const routes = [...player.resources].filter(([key]) => key.includes("Route/"));
  const spaces = [...listeners.map(({ owner }) => owner.namespace), ...routes.map(([key]) => partOf(key))];
  return [...new Set(spaces)].flatMap((namespace) => {
    const quota = namespace === "ns-plat" ? undefined : ruleOf(player, policy, namespace)?.quota;
    if (quota === undefined) return [];
    const own = listeners.filter(({ owner }) => owner.namespace === namespace);
    const isLimited = quota.routes !== undefined || quota.rules !== undefined;
    const attached = routes.filter(
      ([key]) => isLimited && partOf(key) === namespace && attaches(key, player.resources),
    );
    if (own.length === 0 && attached.length === 0) return [];
    const rules = attached.flatMap(([, route]) => ("spec" in route ? rulesOf(route) : [])).length;
    const used: Used = { ...countListeners(own), routes: attached.length, rules };
    return Object.entries(quota).map(([what, limit]) => {
      return `${namespace} ${what} ${used[what as keyof Used]}/${limit}`;
    });
  });
}

function partOf(key: Key): string {
  return key.split("/")[1] ?? "";
}

function rulesOf(route: Resource): readonly unknown[] {
  return (route as { spec: { rules?: readonly unknown[] } }).spec.rules ?? [];
}

function texts(uses: Iterable<QuotaUse>): readonly string[] {
  return [...uses]
    .filter(({ gateway }) => gateway === GATEWAY)
    .flatMap(({ namespace, resources }) =>
      resources.map(({ resource, used, limit }) => `${namespace} ${resource} ${used}/${limit}`),
    );
}

/** The counts in the status of the policy that decides. */
function toldCounts(player: Player): string | undefined {
  const policy = oldestPolicy(player);
  const verdict = policy && player.engine.verdict(keyOf(policy));
  const conditions = verdict?.type === "policy" ? verdict.ancestors[0]?.conditions : undefined;
  return /at a limit: .*$/.exec(conditions?.find(({ type }) => type === "WithinQuotas")?.message ?? "")?.[0];
}

describe("the use of quotas", () => {
  test(
    "is what a naive count finds, after every history",
    () => {
      const seen = { below: 0, full: 0, above: 0, routes: 0 };
      fc.assert(
        fc.property(histories, (steps) => {
          const player = new Player();
          for (const changes of steps) player.play(changes);
          const uses = [...player.engine.quotaUses()];
          try {
            expect(texts(uses).toSorted()).toEqual(naiveUses(player).toSorted());
            const fresh = new Player();
            fresh.play([...player.resources].map(([key, resource]) => ({ key, resource })));
            expect(texts(fresh.engine.quotaUses()).toSorted()).toEqual(texts(uses).toSorted());
            const counts = toldCounts(player);
            if (counts !== undefined) {
              const levels = uses.filter(({ gateway }) => gateway === GATEWAY).map((use) => levelOf(use));
              const many = (level: string): number => levels.filter((each) => each === level).length;
              expect(counts.match(/\d+/g)?.map(Number)).toEqual([many("full"), many("near")]);
            }
          } catch (error) {
            throw new Error(`${error instanceof Error ? error.message : error}\n${tell(steps)}`, {
              cause: error,
            });
          }
          for (const { resource, used, limit } of uses.flatMap(({ resources }) => resources)) {
            seen[used < limit ? "below" : used === limit ? "full" : "above"]++;
            if (resource === "routes" && used > 0) seen.routes++;
          }
        }),
        { numRuns: RUNS },
      );
      for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(0);
    },
    60_000 + RUNS * 400,
  );
});

const PARENT = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw", namespace: "infra" };

function object(kind: string, namespace: string, name: string, spec: object): Resource {
  return { apiVersion: "v1", kind, metadata: { namespace, name }, spec } as unknown as Resource;
}

function set(namespace: string, hostnames: readonly string[]): Resource {
  const listeners = hostnames.map((hostname, place) => ({
    ...{ name: `l${place}`, port: 80, protocol: "HTTP", hostname },
  }));
  return object("ListenerSet", namespace, "set", { parentRef: PARENT, listeners });
}

function many(count: number, namespace: string): readonly string[] {
  return Array.from({ length: count }, (_, place) => `h${place}.${namespace}.test`);
}

function crowd(tenants: number, quota: TenantQuota | undefined): Engine {
  const rule = { name: "teams", namespaceSelector: {}, hostnames: { allow: ["*"] } };
  const player = new Player();
  const resources = [
    object("Gateway", "infra", "gw", {
      gatewayClassName: "mergeway",
      allowedListeners: { namespaces: { from: "All" } },
      listeners: [{ name: "web", port: 80, protocol: "HTTP", hostname: "platform.test" }],
    }),
    object("TenantPolicy", "infra", "tenants", {
      ...{ targetRefs: [PARENT], enforcement: "Enforce", unmatchedNamespaces: "Deny" },
      rules: [quota === undefined ? rule : { ...rule, quota }],
    }),
    ...Array.from({ length: tenants }, (_, place) => set(`team-${place}`, many(2, `team-${place}`))),
  ];
  player.play(resources.map((resource) => ({ key: keyOf(resource), resource })));
  return player.engine;
}

function conditionOf(engine: Engine): string | undefined {
  const verdict = engine.verdict("TenantPolicy/infra/tenants");
  const conditions = verdict?.type === "policy" ? verdict.ancestors[0]?.conditions : [];
  return conditions?.find(({ type }) => type === "WithinQuotas")?.message;
}

describe("a namespace", () => {
  const apply = (engine: Engine, resource: Resource): ReturnType<Engine["apply"]> =>
    engine.apply([{ key: keyOf(resource), resource }]);

  test("is shown with the rule that limits it, and with limits that it does not use", () => {
    const [use] = crowd(1, { listeners: 10, routes: 5 }).quotaUses();
    expect(use).toEqual({
      gateway: "Gateway/infra/gw",
      namespace: "team-0",
      rule: "teams",
      resources: [
        { resource: "listeners", used: 2, limit: 10 },
        { resource: "routes", used: 0, limit: 5 },
      ],
    });
  });

  test("without a quota is not counted", () => {
    expect([...crowd(3, undefined).quotaUses()]).toEqual([]);
    expect(conditionOf(crowd(3, undefined))).toBeUndefined();
  });

  test("that uses more wakes the policy's status only when it gets near a limit, and to it", () => {
    const engine = crowd(2, { listeners: 10 });
    const told = (count: number): unknown => {
      const { verdicts } = apply(engine, set("team-0", many(count, "team-0")));
      return verdicts.has("TenantPolicy/infra/tenants") ? conditionOf(engine) : "nothing";
    };
    const within = "no namespace asks for more than it may have";
    expect(told(8)).toBe("nothing");
    expect(told(9)).toBe(`${within}; at a limit: 0 namespaces; at nine tenths of one: 1 namespace`);
    expect(told(10)).toBe(`${within}; at a limit: 1 namespace; at nine tenths of one: 0 namespaces`);
    expect(told(3)).toBe(`${within}; at a limit: 0 namespaces; at nine tenths of one: 0 namespaces`);
  });

  test("costs the same to count among many as among few", () => {
    const cost = (tenants: number): number => {
      const engine = crowd(tenants, { listeners: 10, hostnames: 10 });
      const before = engine.recomputed;
      apply(engine, set("team-0", many(3, "team-0")));
      return engine.recomputed - before;
    };
    expect(cost(100)).toBe(cost(2));
  });

  test("that may have none of something, and has none, is not at its limit", () => {
    expect(levelOf({ resources: [{ resource: "wildcards", used: 0, limit: 0 }] })).toBeUndefined();
    expect(levelOf({ resources: [{ resource: "wildcards", used: 1, limit: 0 }] })).toBe("full");
  });
});
