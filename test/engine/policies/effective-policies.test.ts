/**
 * Which policies hold for a rule, compared with a naive computation from the resources alone, on
 * random histories (GEP-713, Effective Policies; GEP-1713, Policy Attachment).
 */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { TrafficPolicy } from "../../../src/api/traffic-policy.ts";
import type { HostItem, ListenerItem } from "../../../src/plan/plan.ts";
import type { Filters, ForwardAction, RedirectAction, Rule } from "../../../src/plan/rule.ts";
import { Player, tell } from "../history.ts";
import type { Change } from "../random-resources.ts";
import { policyHistory, world } from "./policy-history.ts";

const RUNS = Number(process.env["HISTORIES"] ?? 500);
const FIELDS = ["clientAddresses", "rateLimits", "requestBody"] as const;
const TIMEOUTS = ["request", "backendRequest", "idle"] as const;

interface Target {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly section?: string | undefined;
}

/** From far to near, as a reader of the documentation would list them. */
function levelsOf(listener: ListenerItem, { origin }: Rule): readonly Target[] {
  const [namespace = "", name = ""] = listener.gateway.split("/");
  const gateway = { kind: "Gateway", namespace, name };
  const { owner } = listener;
  const isRoot = owner.kind === "Gateway" && owner.namespace === namespace && owner.name === name;
  const route = { kind: origin.kind, namespace: origin.namespace, name: origin.name };
  return [
    gateway,
    ...(isRoot ? [] : [owner]),
    { ...owner, section: listener.section },
    route,
    ...(origin.ruleName === undefined ? [] : [{ ...route, section: origin.ruleName }]),
  ];
}

/** The older one, then the first by name. */
function policyOf(target: Target, policies: readonly TrafficPolicy[]): TrafficPolicy | undefined {
  const age = ({ metadata }: TrafficPolicy): string => `${metadata.creationTimestamp ?? ""} ${metadata.name}`;
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

type Steps = readonly (readonly Change[])[];

/** A failing history is told step by step. */
function holds(check: (steps: Steps) => void): void {
  fc.assert(
    fc.property(policyHistory, (steps) => {
      try {
        check(steps);
      } catch (error) {
        throw new Error(`${error instanceof Error ? error.message : error}\n${tell(steps)}`, {
          cause: error,
        });
      }
    }),
    { numRuns: RUNS },
  );
}

function naiveGuards(listener: ListenerItem, rule: Rule, policies: readonly TrafficPolicy[]): string[] {
  const levels = levelsOf(listener, rule).flatMap((target) => policyOf(target, policies) ?? []);
  const isStream = !["HTTPRoute", "GRPCRoute"].includes(rule.origin.kind);
  const ids = FIELDS.filter((field) => !isStream || field === "clientAddresses").flatMap((field) => {
    const idsOf = (policy: TrafficPolicy, section: "defaults" | "overrides"): string[] => {
      const written = policy.spec[section]?.[field];
      const count = field === "rateLimits" && Array.isArray(written) ? written.length : 1;
      const { namespace, name } = policy.metadata;
      return Array.from(
        { length: count },
        (_, place) => `guard:${listener.gateway}:${namespace}/${name}:${section}.${field}.${place}`,
      );
    };
    const overrides = levels.filter(({ spec }) => spec.overrides?.[field] !== undefined);
    const setting = levels.filter(
      ({ spec }) => spec.overrides?.[field] !== undefined || spec.defaults?.[field] !== undefined,
    );
    const nearest = setting.at(-1);
    const isDefault = nearest !== undefined && nearest.spec.overrides?.[field] === undefined;
    return [
      ...overrides.flatMap((policy) => idsOf(policy, "overrides")),
      ...(isDefault ? idsOf(nearest, "defaults") : []),
    ];
  });
  // One policy may be attached at two levels: its limits still count a request once.
  return [...new Set(isStream ? ids : [...ids, ...closedByTimeouts(listener, levels)])];
}

type WrittenTimeouts = NonNullable<TrafficPolicy["spec"]["defaults"]>["timeouts"];

const MS: Readonly<Record<string, number>> = {
  "0s": 0,
  "1ms": 1,
  "1s": 1_000,
  "2s": 2_000,
  "5s": 5_000,
  "10s": 10_000,
  "20s": 20_000,
  "30s": 30_000,
  "1m30s": 90_000,
};

/** Longer than a day, or an attempt that outlasts its request. */
function isReadable({ request, backendRequest }: NonNullable<WrittenTimeouts> = {}): boolean {
  if (request === "48h") return false;
  return (MS[backendRequest ?? ""] ?? 0) <= (MS[request ?? ""] ?? Number.POSITIVE_INFINITY);
}

/** What the route says, or else the default; never more than any override. */
function naiveTimeouts(
  listener: ListenerItem,
  rule: Rule,
  { policies, own = {} }: { readonly policies: readonly TrafficPolicy[]; readonly own?: WrittenTimeouts },
): Readonly<Record<string, number>> {
  const levels = levelsOf(listener, rule)
    .flatMap((target) => policyOf(target, policies) ?? [])
    .filter(({ spec }) => spec.overrides?.timeouts !== undefined || spec.defaults?.timeouts !== undefined);
  const nearest = levels.at(-1)?.spec;
  const chosen = nearest?.overrides?.timeouts === undefined ? nearest?.defaults?.timeouts : undefined;
  const isOff = Object.values(own).includes("0s");
  const found = TIMEOUTS.flatMap((name) => {
    const ofRoute = own[name] === "0s" ? undefined : own[name];
    const mayDefault = isReadable(chosen) && (name === "idle" || !isOff);
    const otherwise = ofRoute ?? (mayDefault ? chosen?.[name] : undefined);
    const overrides = levels
      .map(({ spec }) => spec.overrides?.timeouts)
      .filter(isReadable)
      .map((written) => written?.[name]);
    const all = [otherwise, ...overrides].flatMap((written) =>
      written === undefined ? [] : [MS[written] ?? Number.NaN],
    );
    return all.length === 0 ? [] : [[`${name}Ms`, Math.min(...all)] as const];
  });
  return Object.fromEntries(found);
}

/** The values that a client would see, for each backend. */
function policyHeaders(action: ForwardAction | RedirectAction): readonly (string | undefined)[] {
  const last = (of: readonly Filters[]): string | undefined =>
    of
      .flatMap(({ responseHeaders = [] }) => responseHeaders)
      .filter(({ name }) => name === "x-policy")
      .at(-1)?.value;
  if (action.type === "redirect") return [last([action.filters])];
  return [...new Set(action.backends.map(({ filters }) => last([action.filters, filters])))];
}

function naiveHeaders(
  listener: ListenerItem,
  rule: Rule,
  policies: readonly TrafficPolicy[],
): readonly (string | undefined)[] {
  const levels = levelsOf(listener, rule)
    .flatMap((target) => policyOf(target, policies) ?? [])
    .filter(({ spec }) => (spec.overrides?.responseHeaders ?? spec.defaults?.responseHeaders) !== undefined);
  const farthest = levels.find(({ spec }) => spec.overrides?.responseHeaders !== undefined);
  const { overrides, defaults } = (farthest ?? levels.at(-1))?.spec ?? {};
  return [(overrides?.responseHeaders ?? defaults?.responseHeaders)?.set?.[0]?.value];
}

/** The status; undefined: none. Of overrides the farthest counts, of defaults the nearest. */
function naiveRedirect(
  listener: ListenerItem,
  rule: Rule,
  policies: readonly TrafficPolicy[],
): number | undefined {
  if (listener.protocol !== "HTTP") return undefined;
  const levels = levelsOf(listener, rule)
    .flatMap((target) => policyOf(target, policies) ?? [])
    .map(({ spec }) => ({ demanded: spec.overrides?.httpsRedirect, proposed: spec.defaults?.httpsRedirect }))
    .filter(({ demanded, proposed }) => demanded !== undefined || proposed !== undefined);
  const demanding = levels.find(({ demanded }) => demanded?.enabled === true);
  if (demanding !== undefined) return demanding.demanded?.statusCode;
  const nearest = levels.at(-1);
  const proposed = nearest?.demanded === undefined ? nearest?.proposed : undefined;
  return proposed?.enabled === true ? proposed.statusCode : undefined;
}

/** Of overrides the farthest counts, of defaults the nearest. */
function naiveOrigins(levels: readonly TrafficPolicy[]): readonly string[] | undefined {
  const demanding = levels.find(({ spec }) => spec.overrides?.cors !== undefined);
  const proposing = levels.findLast(({ spec }) => spec.defaults?.cors !== undefined);
  return (demanding?.spec.overrides?.cors ?? proposing?.spec.defaults?.cors)?.allowOrigins;
}

/** Undefined: nothing is compressed. */
function naiveMinBytes(levels: readonly TrafficPolicy[]): number | undefined {
  const demanding = levels.find(({ spec }) => spec.overrides?.compression !== undefined);
  const proposing = levels.findLast(({ spec }) => spec.defaults?.compression !== undefined);
  const holding = demanding?.spec.overrides?.compression ?? proposing?.spec.defaults?.compression;
  return holding?.enabled === false ? undefined : holding?.minBytes;
}

/** The nearest default, and no more than any override; routes of the histories ask for none. */
function naiveAttempts(levels: readonly TrafficPolicy[]): number | undefined {
  const proposing = levels.findLast(({ spec }) => spec.defaults?.retries !== undefined);
  const caps = levels.map(({ spec }) => spec.overrides?.retries?.attempts ?? Number.POSITIVE_INFINITY);
  return Math.min(proposing?.spec.defaults?.retries?.attempts ?? 0, ...caps) || undefined;
}

/** The text; undefined: none. Of overrides the farthest counts, of defaults the nearest. */
function naiveResponse(levels: readonly TrafficPolicy[]): string | undefined {
  const settings = levels
    .map(({ spec }) => [spec.overrides?.directResponse, spec.defaults?.directResponse] as const)
    .filter(([demanded, proposed]) => (demanded ?? proposed) !== undefined);
  const demanding = settings.find(([demanded]) => demanded?.enabled === true);
  const [nearest, proposed] = settings.at(-1) ?? [];
  const holding = demanding?.[0] ?? (nearest === undefined ? proposed : undefined);
  return holding?.enabled === true ? holding.body?.inline : undefined;
}

test(
  "a rule has the timeouts, retries, redirects, headers, origins and answers of a naive computation, and escapes no override",
  () => {
    let changed = 0;
    let redirects = 0;
    let retried = 0;
    let answered = 0;
    holds((steps) => {
      const player = new Player();
      for (const changes of steps) player.play(changes);
      const policies = [...player.resources.values()].filter((each) => each.kind === "TrafficPolicy");
      const hosts = [...player.plan.values()].filter((item): item is HostItem => item.type === "host");
      for (const host of hosts) {
        const listener = player.plan.get(host.listener) as ListenerItem;
        for (const rule of host.rules) {
          const { kind, namespace, name } = rule.origin;
          const redirected = naiveRedirect(listener, rule, policies);
          if (redirected !== undefined && rule.action.type !== "respond") {
            expect(rule.action).toMatchObject({ type: "redirect", scheme: "https", statusCode: redirected });
            redirects++;
          }
          if (redirected === undefined) expect(rule.action.type).not.toBe("redirect");
          const levels = levelsOf(listener, rule).flatMap((target) => policyOf(target, policies) ?? []);
          if (rule.action.type !== "redirect" && ["HTTPRoute", "GRPCRoute"].includes(kind)) {
            const content = rule.action.type === "respond" ? rule.action.content : undefined;
            expect(content?.text).toBe(naiveResponse(levels));
            if (content !== undefined) answered++;
          }
          if (rule.action.type !== "respond" && ["HTTPRoute", "GRPCRoute"].includes(kind))
            expect(policyHeaders(rule.action)).toEqual(naiveHeaders(listener, rule, policies));
          if (rule.action.type !== "forward" || !["HTTPRoute", "GRPCRoute"].includes(kind)) continue;
          expect(rule.action.filters.cors?.allowOrigins).toEqual(naiveOrigins(levels));
          expect(rule.action.compression?.minBytes).toEqual(naiveMinBytes(levels));
          expect(rule.action.retry?.attempts).toEqual(naiveAttempts(levels));
          if (rule.action.retry !== undefined) retried++;
          const route = player.resources.get(`${kind}/${namespace}/${name}`);
          const own =
            route?.kind === "HTTPRoute" ? route.spec.rules?.[rule.origin.rule]?.timeouts : undefined;
          const { unbounded: _unbounded, ...timeouts } = rule.action.timeouts;
          const expected = naiveTimeouts(
            listener,
            rule,
            own === undefined ? { policies } : { policies, own },
          );
          expect(timeouts).toEqual(expected);
          if (Object.keys(expected).length > Object.keys(own ?? {}).length) changed++;
        }
      }
    });
    expect(changed, "rules with timeouts of policies").toBeGreaterThan(RUNS / 10);
    expect(redirects, "rules that redirect to HTTPS").toBeGreaterThan(RUNS / 10);
    expect(answered, "rules with an answer of a policy").toBeGreaterThan(RUNS / 10);
    expect(retried, "rules with retries").toBeGreaterThan(RUNS / 10);
  },
  60_000 + RUNS * 100,
);

/** Timeouts are no guards, but for those that cannot be read: they let nothing pass. */
function closedByTimeouts({ gateway }: ListenerItem, levels: readonly TrafficPolicy[]): readonly string[] {
  const setting = levels.filter(
    ({ spec }) => spec.overrides?.timeouts !== undefined || spec.defaults?.timeouts !== undefined,
  );
  return setting.flatMap(({ metadata: { namespace, name }, spec }, place) => {
    const isNearest = place === setting.length - 1;
    const section = spec.overrides?.timeouts !== undefined ? "overrides" : "defaults";
    const holdsThere = section === "overrides" || isNearest;
    if (!holdsThere || isReadable(spec[section]?.timeouts)) return [];
    return [`guard:${gateway}:${namespace}/${name}:${section}.timeouts.0`];
  });
}

test(
  "a rule has the guards that a naive computation gives it, and escapes no override",
  () => {
    let guarded = 0;
    let overridden = 0;
    holds((steps) => {
      const player = new Player();
      for (const changes of steps) player.play(changes);
      const policies = [...player.resources.values()].filter((each) => each.kind === "TrafficPolicy");
      const hosts = [...player.plan.values()].filter((item): item is HostItem => item.type === "host");
      for (const host of hosts) {
        const listener = player.plan.get(host.listener) as ListenerItem;
        for (const rule of host.rules) {
          const expected = naiveGuards(listener, rule, policies);
          expect(rule.guards ?? []).toEqual(expected);
          if (expected.length > 0) guarded++;
          if (expected.some((id) => id.includes(":overrides."))) overridden++;
          for (const id of expected) {
            const item = player.plan.get(id);
            // A guard that cannot be read has no item, so that the rule stays closed.
            if (item === undefined) expect(id).toMatch(/clientAddresses|requestBody|timeouts/);
            else expect(item).toMatchObject({ type: "guard", gateway: listener.gateway });
          }
        }
      }
    });
    expect(guarded, "rules with guards").toBeGreaterThan(RUNS / 10);
    expect(overridden, "rules with overrides").toBeGreaterThan(RUNS / 10);
  },
  60_000 + RUNS * 100,
);

test(
  "policies that come one by one give what they give at once, in plan and statuses",
  () => {
    holds((steps) => {
      const player = new Player({ assumeProgrammed: false });
      for (const changes of steps) player.confirm(player.play(changes));
      const atOnce = new Player({ assumeProgrammed: false });
      atOnce.learn(player.reports);
      atOnce.play([...player.resources].map(([key, resource]) => ({ key, resource })));
      expect(atOnce.answer()).toEqual(player.answer());
    });
  },
  60_000 + RUNS * 100,
);

test("a policy of one set changes that set's rules and nobody else's", () => {
  const player = new Player();
  player.play(world);
  const target = { group: "gateway.networking.k8s.io", kind: "ListenerSet", name: "ls-antone" };
  const policy = {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "TrafficPolicy" as const,
    metadata: { name: "pol-one", namespace: "ns-ant" },
    spec: { targetRefs: [target], defaults: { clientAddresses: { allow: ["10.0.0.0/8"] } } },
  };
  const { plan } = player.play([{ key: "TrafficPolicy/ns-ant/pol-one", resource: policy }]);
  const touched = plan.upserts.map(({ id }) => id);
  expect(touched.filter((id) => !id.startsWith("guard:") && !id.includes("ls-antone"))).toEqual([]);
  // One host for each of the two listeners of the set.
  expect(touched.filter((id) => id.startsWith("host:")).length).toBe(2);
  expect(plan.removes).toEqual([]);
});
