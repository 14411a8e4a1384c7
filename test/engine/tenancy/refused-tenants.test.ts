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
