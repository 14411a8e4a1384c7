/** What a TenantPolicy refuses takes nothing away from others. */
import { describe, expect, test } from "vitest";
import { keyOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { Player } from "../history.ts";

const GROUP = "gateway.networking.k8s.io";
const PARENT = { group: GROUP, kind: "Gateway", name: "gw", namespace: "infra" };

function object(kind: string, namespace: string, name: string, more: object): Resource {
  return { apiVersion: "v1", kind, metadata: { namespace, name }, ...more } as unknown as Resource;
}

function gateway(listeners: readonly object[] = []): Resource {
  const allowedListeners = { namespaces: { from: "All" } };
  return object("Gateway", "infra", "gw", {
    spec: { gatewayClassName: "mergeway", allowedListeners, listeners },
  });
}

function set(kind: string, namespace: string, listeners: readonly object[]): Resource {
  return object(kind, namespace, "set", { spec: { parentRef: PARENT, listeners } });
}

function tenantPolicy(spec: object): Resource {
  const targetRefs = [{ group: GROUP, kind: "Gateway", name: "gw" }];
  const defaults = { enforcement: "Enforce", unmatchedNamespaces: "Deny" };
  return object("TenantPolicy", "infra", "tenants", { spec: { targetRefs, ...defaults, ...spec } });
}

const EVERYTHING = { namespaceSelector: {}, hostnames: { allow: ["*"] } };

function played(resources: readonly Resource[], settings: object = {}): Player {
  const player = new Player(settings);
  player.play(resources.map((resource) => ({ key: keyOf(resource), resource })));
  return player;
}

describe("a listener that a TenantPolicy refuses", () => {
  test("displaces no port that another set was assigned", () => {
    const good = set("XListenerSet", "good", [{ name: "web", protocol: "HTTP", hostname: "a.test" }]);
    const policy = tenantPolicy({ rules: [{ ...EVERYTHING, protocols: ["HTTP"] }] });
    const before = played([gateway(), good, policy]);
    const port = [...before.engine.listeners()][0]?.port;
    const evil = set("ListenerSet", "evil", [{ name: "tcp", protocol: "TCP", port }]);
    const portOf = (player: Player): number | undefined =>
      [...player.engine.listeners()].find(({ owner }) => owner.namespace === "good")?.port;
    expect(portOf(played([gateway(), evil, good, policy]))).toBe(port);
    expect(portOf(played([gateway(), evil, good]))).not.toBe(port);
  });

  test("gets no port of the range, and says that it is not allowed", () => {
    const evil = set("XListenerSet", "evil", [{ name: "web", protocol: "HTTP", hostname: "a.test" }]);
    const [listener] = played([gateway(), evil, tenantPolicy({})]).engine.listeners();
    expect(listener).toMatchObject({ port: 0, refused: { reason: "NamespaceNotAllowed" } });
  });

  test("does not count for the Gateway's limit of listeners", () => {
    const http = (name: string): object => ({ name, port: 80, protocol: "HTTP", hostname: `${name}.test` });
    const evil = set("ListenerSet", "evil", ["a", "b", "c", "d"].map(http));
    const good = set("ListenerSet", "good", [http("good")]);
    const policy = tenantPolicy({ rules: [{ ...EVERYTHING, quota: { listeners: 1 } }] });
    const served = (resources: readonly Resource[]): readonly (string | undefined)[] =>
      [...played(resources, { maxListenersPerGateway: 3 }).plan.values()].flatMap((item) =>
        item.type === "listener" ? [item.owner.namespace] : [],
      );
    expect(served([gateway(), evil, good, policy])).toContain("good");
    expect(served([gateway(), evil, good])).not.toContain("good");
  });
});

describe("a TCPRoute at a listener of the platform", () => {
  const tcp = { name: "tcp", port: 9000, protocol: "TCP", allowedRoutes: { namespaces: { from: "All" } } };
  const route = object("TCPRoute", "team", "app", {
    spec: { parentRefs: [PARENT], rules: [{ backendRefs: [] }] },
  });
  const accepted = (policy: Resource): unknown => {
    const verdict = played([gateway([tcp]), route, policy]).engine.verdict(keyOf(route));
    return verdict?.type === "route" ? verdict.parents[0]?.conditions[0]?.reason : undefined;
  };

  test("has no hostname that could be reserved", () => {
    const reservedHostnames = ["login.test"];
    expect(accepted(tenantPolicy({ rules: [EVERYTHING], reservedHostnames }))).toBe("Accepted");
  });

  test("is judged by port and protocol", () => {
    expect(accepted(tenantPolicy({ rules: [{ ...EVERYTHING, ports: [{ port: 80 }] }] }))).toBe(
      "PortNotAllowed",
    );
    expect(accepted(tenantPolicy({}))).toBe("NamespaceNotAllowed");
  });
});

test("an exception whose placeholder has no value denies everything", () => {
  const hostnames = { allow: ["*.test"], deny: ["{label:env}-admin.test"] };
  const policy = tenantPolicy({ rules: [{ namespaceSelector: {}, hostnames }] });
  const team = set("ListenerSet", "team", [{ name: "web", port: 80, protocol: "HTTP", hostname: "a.test" }]);
  const labelled = {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "team", labels: { env: "prod" } },
  };
  const refused = (...more: readonly Resource[]): unknown =>
    [...played([gateway(), team, policy, ...more]).engine.listeners()][0]?.refused?.reason;
  expect(refused()).toBe("HostnameNotAllowed");
  expect(refused(labelled as unknown as Resource)).toBeUndefined();
});

describe("a quota", () => {
  const aged = (resource: Resource, day: number): Resource =>
    ({
      ...resource,
      metadata: { ...resource.metadata, creationTimestamp: `2026-01-0${day}T00:00:00Z` },
    }) as Resource;
  const http = (name: string, hostname: string, port = 80): object => ({
    name,
    port,
    protocol: "HTTP",
    hostname,
  });
  const reasons = (quota: object, listeners: readonly object[], enforcement = "Enforce"): unknown => {
    const policy = tenantPolicy({ enforcement, rules: [{ ...EVERYTHING, quota }] });
    const { engine } = played([gateway(), set("ListenerSet", "team", listeners), policy]);
    return [...engine.listeners()].map(({ excess, violation }) => [excess?.reason, violation?.reason]);
  };
  const none = [undefined, undefined];

  test("of hostnames counts each name once", () => {
    const listeners = [http("a", "a.test"), http("b", "a.test", 81), http("c", "c.test")];
    const beyond = ["TooManyHostnames", "TooManyHostnames"];
    expect(reasons({ hostnames: 1 }, listeners)).toEqual([none, none, beyond]);
  });

  test("of wildcards leaves exact names alone, and of ports the hostnames on them", () => {
    const wide = [http("a", "*.a.test"), http("b", "b.test"), http("c", "*.c.test")];
    expect(reasons({ wildcards: 1 }, wide)).toEqual([none, none, ["TooManyWildcards", "TooManyWildcards"]]);
    const ports = [http("a", "a.test"), http("b", "b.test", 81), http("c", "c.test")];
    expect(reasons({ ports: 1 }, ports)).toEqual([none, ["TooManyPorts", "TooManyPorts"], none]);
  });

  test("that is audited is counted and not enforced", () => {
    const listeners = [http("a", "a.test"), http("b", "b.test")];
    expect(reasons({ listeners: 1 }, listeners, "Audit")).toEqual([none, [undefined, "TooManyListeners"]]);
  });

  test("is told in the status of the policy: how many ask for more, and how much there is against it", () => {
    const policy = tenantPolicy({ rules: [{ ...EVERYTHING, quota: { listeners: 1, routes: 5 } }] });
    const told = (listeners: readonly object[]): unknown => {
      const { engine } = played([gateway(), set("ListenerSet", "team", listeners), policy]);
      const verdict = engine.verdict(keyOf(policy));
      const conditions = verdict?.type === "policy" ? verdict.ancestors[0]?.conditions : [];
      return [conditions?.find(({ type }) => type === "WithinQuotas"), ...engine.tenantViolations()];
    };
    const at = "Gateway/infra/gw";
    expect(told([http("a", "a.test")])).toMatchObject([
      { status: "True", reason: "WithinQuotas" },
      { gateway: at, listeners: 0, routes: 0 },
    ]);
    expect(told([http("a", "a.test"), http("b", "b.test")])).toMatchObject([
      {
        status: "False",
        reason: "QuotaExceeded",
        message:
          "1 namespace would use more than 1 listeners; at a limit: 1 namespace; at nine tenths of one: 0 namespaces",
      },
      { gateway: at, listeners: 1, routes: 0 },
    ]);
  });

  test("of routes lets the oldest be, at the tenant's own listener too, and holds for rules", () => {
    const open = { ...http("web", "a.test"), allowedRoutes: { namespaces: { from: "Same" } } };
    const parentRefs = [{ group: GROUP, kind: "ListenerSet", name: "set" }];
    const route = (name: string, day: number, rules: number): Resource =>
      aged(
        object("HTTPRoute", "team", name, {
          spec: { parentRefs, rules: Array(rules).fill({ backendRefs: [] }) },
        }),
        day,
      );
    const refused = (quota: object): unknown => {
      const routes = [route("young", 3, 1), route("old", 1, 2), route("middle", 2, 5)];
      const policy = tenantPolicy({ rules: [{ ...EVERYTHING, quota }] });
      const { engine } = played([gateway(), set("ListenerSet", "team", [open]), policy, ...routes]);
      return Object.fromEntries(
        [...engine.routeAttachments()].map(({ route: key, parents: [parent] }) => [
          key.split("/")[2],
          parent?.refused?.reason ?? parent?.bindings.length,
        ]),
      );
    };
    expect(refused({ routes: 2 })).toEqual({ old: 1, middle: 1, young: "TooManyRoutes" });
    expect(refused({ rules: 3 })).toEqual({ old: 1, middle: "TooManyRules", young: 1 });
  });

  test("does not let a route that is beyond it displace another tenant's", () => {
    const open = { name: "web", port: 80, protocol: "HTTP", allowedRoutes: { namespaces: { from: "All" } } };
    const at = (kind: string, namespace: string, day: number): Resource =>
      aged(
        object(kind, namespace, "app", {
          spec: { parentRefs: [PARENT], hostnames: ["a.test"], rules: [{ backendRefs: [] }] },
        }),
        day,
      );
    const quota = { routes: 0 };
    const rules = [
      { ...EVERYTHING, namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "evil" } }, quota },
      EVERYTHING,
    ];
    const routes = [at("GRPCRoute", "evil", 1), at("HTTPRoute", "good", 2)];
    const { engine } = played([gateway([open]), tenantPolicy({ rules }), ...routes]);
    const bound = [...engine.routeAttachments()].map(({ route, parents }) => [
      route,
      parents[0]?.refused?.reason,
    ]);
    expect(Object.fromEntries(bound)).toEqual({
      "GRPCRoute/evil/app": "TooManyRoutes",
      "HTTPRoute/good/app": undefined,
    });
  });
});

test("a kind of route that is not allowed is refused at every listener of the Gateway", () => {
  const rules = [{ ...EVERYTHING, routeKinds: ["HTTPRoute"] }];
  const parentRefs = [{ group: GROUP, kind: "ListenerSet", name: "set" }];
  const open = { name: "web", port: 80, protocol: "HTTP", allowedRoutes: { namespaces: { from: "Same" } } };
  const route = (kind: string): Resource => object(kind, "team", "app", { spec: { parentRefs, rules: [] } });
  const routes = [route("HTTPRoute"), route("GRPCRoute")];
  const { engine } = played([
    gateway(),
    set("ListenerSet", "team", [open]),
    tenantPolicy({ rules }),
    ...routes,
  ]);
  const found = [...engine.routeAttachments()].map(({ parents }) => parents[0]?.refused?.reason);
  expect(found).toEqual([undefined, "RouteKindNotAllowed"]);
});

test("a changed policy hands a hostname over in one step, without a moment of neither", () => {
  const shop = { name: "web", port: 80, protocol: "HTTP", hostname: "shop.test" };
  const given = (namespace: string): Resource =>
    tenantPolicy({
      rules: [
        {
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
          hostnames: { allow: ["shop.test"] },
        },
      ],
    });
  const sets = ["older", "younger"].map((namespace) => set("ListenerSet", namespace, [shop]));
  const { engine } = played([gateway(), ...sets, given("older")]);
  const holders = (): readonly string[] =>
    [...engine.plan()].flatMap((item) => (item.type === "listener" ? [item.owner.namespace] : []));
  expect(holders()).toEqual(["older"]);
  const policy = given("younger");
  const { plan } = engine.apply([{ key: keyOf(policy), resource: policy }]);
  expect(holders()).toEqual(["younger"]);
  expect(plan.upserts.some((item) => item.type === "listener" && item.owner.namespace === "younger")).toBe(
    true,
  );
  expect(plan.removes.some((id) => id.includes("older"))).toBe(true);
});
