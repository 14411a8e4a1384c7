/**
 * Nobody serves what the Gateway's TenantPolicy does not allow, and nobody is refused what it does,
 * compared with a naive reading of the policy on random histories.
 */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keyOf } from "../../../src/api/key.ts";
import type { Route } from "../../../src/api/routes.ts";
import type { TenantPolicy, TenantRule } from "../../../src/api/tenant-policy.ts";
import { isServing, type MergedListener } from "../../../src/engine/listeners/merge.ts";
import { hostnameProblem, rightsOf } from "../../../src/engine/tenancy/tenant-rights.ts";
import { Player, tell } from "../history.ts";
import { world } from "../policies/policy-history.ts";
import { tenantPolicySpec } from "../random-policies.ts";
import { attachedPolicy, type Change, change } from "../random-resources.ts";

const RUNS = Number(process.env["HISTORIES"] ?? 500);

const policyChange: fc.Arbitrary<Change> = fc
  .record({
    policy: attachedPolicy("TenantPolicy", tenantPolicySpec),
    deleted: fc.constantFrom(false, false, false, true),
  })
  .map(({ policy, deleted }) => ({ key: keyOf(policy), resource: deleted ? undefined : policy }));

const tenantHistory = fc
  .array(
    fc.array(fc.oneof({ weight: 1, arbitrary: policyChange }, { weight: 5, arbitrary: change }), {
      minLength: 1,
      maxLength: 3,
    }),
    { minLength: 1, maxLength: 30, size: "max" },
  )
  .map((steps) => [world, ...steps]);

/** Every name of the universe, and some more: a pattern is the names that it matches. */
const NAMES = [
  "host-one.test",
  "host-two.test",
  "sub.host-one.test",
  "host-main.test",
  "x.host-one.test",
  "y.sub.host-one.test",
  "ns-ant.test",
  "ns-bee.test",
  "else.test",
  "else.where",
];

function names(pattern: string): readonly string[] {
  if (pattern === "" || pattern === "*") return NAMES;
  return NAMES.filter((name) =>
    pattern.startsWith("*.") ? name.endsWith(pattern.slice(1)) : name === pattern,
  );
}

/** An exact name of a rule is covered by itself alone; sets of names show the rest. */
function isAllowed(listener: MergedListener, policy: TenantPolicy, team: string | undefined): boolean {
  const { spec } = policy;
  const isNamed = listener.protocol !== "TCP" && listener.protocol !== "UDP";
  const asked = names(listener.hostname);
  const overlaps = (pattern: string): boolean => names(pattern).some((name) => asked.includes(name));
  const rule = spec.rules?.find(
    ({ namespaceSelector: { matchLabels } }) => matchLabels === undefined || matchLabels["team"] === team,
  );
  if (rule === undefined && spec.unmatchedNamespaces === "Deny") return false;
  if (isNamed && spec.reservedHostnames?.some(overlaps)) return false;
  return rule === undefined || allowedByRule(listener, rule, { isNamed, asked, overlaps });
}

function allowedByRule(
  { port, protocol, owner }: MergedListener,
  rule: TenantRule,
  {
    isNamed,
    asked,
    overlaps,
  }: {
    readonly isNamed: boolean;
    readonly asked: readonly string[];
    readonly overlaps: (pattern: string) => boolean;
  },
): boolean {
  if (rule.protocols !== undefined && !rule.protocols.includes(protocol ?? "")) return false;
  const inPorts = rule.ports?.some((range) => port >= range.port && port <= (range.endPort ?? range.port));
  // Port 0: none was left to be assigned, so that there is none to judge.
  if (inPorts === false && port !== 0) return false;
  if (!isNamed) return true;
  const patterns = rule.hostnames.allow.map((pattern) => pattern.replace("{namespace}", owner.namespace));
  const isCovered = patterns.some((pattern) => asked.every((name) => names(pattern).includes(name)));
  return isCovered && !rule.hostnames.deny?.some(overlaps);
}

function ruleOf(player: Player, { spec }: TenantPolicy, namespace: string): TenantRule | undefined {
  const team = player.resources.get(`Namespace//${namespace}`)?.metadata.labels?.["team"];
  return spec.rules?.find(
    ({ namespaceSelector: { matchLabels } }) => matchLabels === undefined || matchLabels["team"] === team,
  );
}

/** Listeners beyond a quota: each is compared with all that come before it. */
function naiveExcess(player: Player, policy: TenantPolicy): ReadonlySet<string> {
  const found = new Set<string>();
  const tenants = [...player.engine.listeners()]
    .filter(({ gateway, owner }) => gateway === "Gateway/ns-plat/gw-main" && owner.namespace !== "ns-plat")
    .sort((a, b) => (a.rank < b.rank ? -1 : 1));
  for (const [namespace, own] of Map.groupBy(tenants, ({ owner }) => owner.namespace)) {
    const quota = ruleOf(player, policy, namespace)?.quota ?? {};
    const limits = {
      hostnames: Infinity,
      wildcards: Infinity,
      ports: Infinity,
      certificates: Infinity,
      ...quota,
    };
    for (const [place, listener] of own.entries()) {
      const kept = [...own.slice(0, place), listener].filter(({ key }) => !found.has(key));
      const named = kept.filter(({ protocol }) => ["HTTP", "HTTPS", "TLS"].includes(protocol ?? ""));
      const hostnames = new Set(named.map(({ hostname }) => hostname));
      const used = {
        hostnames: hostnames.size,
        wildcards: [...hostnames].filter((name) => name === "" || name.startsWith("*")).length,
        ports: new Set(kept.map(({ port }) => port)).size,
        certificates: new Set(kept.flatMap(({ certificates }) => certificates)).size,
      };
      const isBeyond = (Object.keys(used) as (keyof typeof used)[]).some((what) => used[what] > limits[what]);
      if (place >= (quota.listeners ?? Infinity) || isBeyond) found.add(listener.key);
    }
  }
  return found;
}

/** No namespace has more routes and rules at the Gateway than it may. */
function expectRoutesWithinQuota(player: Player, policy: TenantPolicy): void {
  const attached = [...player.engine.routeAttachments()].filter(({ parents }) =>
    parents.some(({ bindings }) => bindings.some(({ gateway }) => gateway === "Gateway/ns-plat/gw-main")),
  );
  const ofNamespace = Map.groupBy(attached, ({ route }) => route.split("/")[1] ?? "");
  for (const [namespace, routes] of ofNamespace) {
    if (namespace === "ns-plat") continue;
    const rule = ruleOf(player, policy, namespace);
    const rules = routes.map(({ route }) => player.resources.get(route) as Route);
    expect(routes.length).toBeLessThanOrEqual(rule?.quota?.routes ?? Infinity);
    expect(rules.flatMap(({ spec }) => spec.rules ?? []).length).toBeLessThanOrEqual(
      rule?.quota?.rules ?? Infinity,
    );
    for (const { kind } of rules) expect(rule?.routeKinds ?? [kind]).toContain(kind);
  }
}

describe("a TenantPolicy", () => {
  test(
    "is what decides about the listeners of tenants, and about no others",
    () => {
      const seen = { allowed: 0, refused: 0, audited: 0, excess: 0 };
      fc.assert(
        fc.property(tenantHistory, (steps) => {
          const player = new Player();
          for (const changes of steps) player.play(changes);
          const policies = [...player.resources.values()]
            .filter((each) => each.kind === "TenantPolicy")
            .filter(({ metadata }) => metadata.namespace === "ns-plat");
          const age = ({ metadata }: TenantPolicy): string =>
            `${metadata.creationTimestamp ?? ""} ${metadata.name}`;
          const policy = policies.sort((a, b) => (age(a) < age(b) ? -1 : 1))[0];
          const excess = policy === undefined ? new Set() : naiveExcess(player, policy);
          try {
            if (policy?.spec.enforcement === "Enforce") expectRoutesWithinQuota(player, policy);
            for (const listener of player.engine.listeners()) {
              const isTenant = listener.owner.namespace !== "ns-plat";
              const isRestricted = isTenant && listener.gateway === "Gateway/ns-plat/gw-main";
              if (policy === undefined || !isRestricted || listener.protocol === undefined) {
                expect(listener.violation).toBeUndefined();
                continue;
              }
              const namespace = player.resources.get(`Namespace//${listener.owner.namespace}`);
              const allowed = isAllowed(listener, policy, namespace?.metadata.labels?.["team"]);
              const isEnforced = policy.spec.enforcement === "Enforce";
              const isExcess = excess.has(listener.key);
              if (isEnforced) {
                expect(listener.violation === undefined).toBe(allowed && listener.excess === undefined);
                if (isExcess) expect(isServing(listener)).toBe(false);
                else expect(listener.excess).toBeUndefined();
              } else expect(listener.violation === undefined).toBe(allowed && !isExcess);
              if (!allowed && isEnforced) expect(listener.refused).toBeDefined();
              if (allowed && !isExcess) seen.allowed++;
              else if (isExcess) seen.excess++;
              else seen[isEnforced ? "refused" : "audited"]++;
            }
          } catch (error) {
            throw new Error(`${error instanceof Error ? error.message : error}\n${tell(steps)}`, {
              cause: error,
            });
          }
        }),
        { numRuns: RUNS },
      );
      for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(RUNS / 50);
    },
    60_000 + RUNS * 100,
  );

  test.each([
    ["ſhop.example.com", "a letter that is not ASCII"],
    ["xn--shop-9na.example.com", "a look-alike in Punycode"],
    ["shop.example.com.", "a trailing dot"],
    ["shop.example.com.evil.test", "the name as a prefix"],
    ["evilshop.example.com", "the name as a suffix without a dot"],
    ["*.example.com", "a wildcard around the name"],
    ["", "no hostname"],
  ])("allows shop.example.com and not %j: %s", (hostname) => {
    const rights = rightsOf(
      {
        targetRefs: [],
        enforcement: "Enforce",
        unmatchedNamespaces: "Deny",
        rules: [{ namespaceSelector: {}, hostnames: { allow: ["{namespace}.example.com"] } }],
      },
      "shop",
      {},
    );
    expect(hostnameProblem("shop.example.com", rights)).toBeUndefined();
    expect(hostnameProblem(hostname, rights)).toMatchObject({ reason: "HostnameNotAllowed" });
  });

  test.each([
    ["{label:team}.example.com", {}],
    ["{label:team}.example.com", { team: "" }],
    ["{label:team}.example.com", { team: "a b" }],
    ["{label:__proto__}.example.com", {}],
    ["{label:team}", { team: "*" }],
  ])("a placeholder without a value that makes a hostname allows nothing: %s with %j", (pattern, labels) => {
    const rights = rightsOf(
      {
        targetRefs: [],
        enforcement: "Enforce",
        unmatchedNamespaces: "Deny",
        rules: [{ namespaceSelector: {}, hostnames: { allow: [pattern] } }],
      },
      "shop",
      labels,
    );
    expect(rights.allow).toEqual([]);
  });
});
