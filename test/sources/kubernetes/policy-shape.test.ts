/** A policy that cannot be read must not leave open what it guards. */
import { describe, expect, test } from "vitest";
import { keyOf } from "../../../src/api/key.ts";
import { GROUP_OF_KIND, type Kind, type Resource } from "../../../src/api/resource.ts";
import { Engine } from "../../../src/engine/engine.ts";
import { TRAFFIC_FIELDS } from "../../../src/engine/policies/traffic-policies.ts";
import type { PolicyVerdict } from "../../../src/engine/verdicts/verdicts.ts";
import type { ApiObject } from "../../../src/kubernetes/api-object.ts";
import { type Shaped, shaperOf } from "../../../src/sources/kubernetes/shape.ts";
import { TEST_SETTINGS } from "../../engine/settings.ts";

const TARGETS = [{ kind: "Gateway", name: "gw" }];

function shape(kind: Kind, fields: object, last?: Resource): Shaped {
  const group = GROUP_OF_KIND[kind];
  const version = group === "mergeway.dev" ? "v1alpha1" : "v1";
  const metadata = { name: "it", namespace: "infra", generation: 3 };
  const object = { metadata, ...fields } as unknown as ApiObject;
  return shaperOf(kind, group === "" ? version : `${group}/${version}`)(object, last);
}

function shaped(kind: Kind, fields: object, last?: Resource): Resource {
  const found = shape(kind, fields, last);
  if (!("resource" in found)) throw new Error(found.problem);
  return found.resource;
}

function named(resource: Resource, name: string, namespace: string): Resource {
  return { ...resource, metadata: { ...resource.metadata, name, namespace } } as Resource;
}

const GATEWAY = named(
  shaped("Gateway", {
    spec: {
      gatewayClassName: "mergeway",
      allowedListeners: { namespaces: { from: "All" } },
      listeners: [
        { name: "http", port: 80, protocol: "HTTP", allowedRoutes: { namespaces: { from: "All" } } },
        { name: "tcp", port: 90, protocol: "TCP", allowedRoutes: { namespaces: { from: "All" } } },
      ],
    },
  }),
  "gw",
  "infra",
);
const parentRefs = [{ name: "gw", namespace: "infra" }];
const filters = [{ type: "RequestRedirect", requestRedirect: { hostname: "b.example" } }];
const WORLD: readonly Resource[] = [
  GATEWAY,
  named(shaped("HTTPRoute", { spec: { parentRefs, rules: [{ filters }] } }), "route", "team"),
  named(
    shaped("ListenerSet", {
      spec: {
        parentRef: { name: "gw", namespace: "infra" },
        listeners: [{ name: "own", port: 80, protocol: "HTTP", hostname: "team.example" }],
      },
    }),
    "set",
    "team",
  ),
];

function engineWith(...more: readonly Resource[]): Engine {
  const engine = new Engine(TEST_SETTINGS);
  engine.apply([...WORLD, ...more].map((resource) => ({ key: keyOf(resource), resource })));
  return engine;
}

/** Guards of the route's rule that have no item: data planes answer 500. */
function closedGuards(engine: Engine): readonly string[] {
  const items = [...engine.plan()];
  const ids = new Set(items.map(({ id }) => id));
  const guards = items.flatMap((item) =>
    item.type === "host" ? item.rules.flatMap((rule) => rule.guards ?? []) : [],
  );
  return [...new Set(guards)].filter((id) => !ids.has(id));
}

function accepted(engine: Engine, key: string): unknown {
  const { ancestors } = engine.verdict(key) as PolicyVerdict;
  return ancestors[0]?.conditions.find(({ type }) => type === "Accepted");
}

const INVALID = { status: "False", reason: "Invalid" };

describe("a TrafficPolicy", () => {
  const limit = { requests: 5 };

  test.each([
    ["counts by something new", { per: "Path" }],
    ["counts by something new that has a header", { per: "Cookie", header: "session" }],
  ])("that %s closes its target and says so", (_what, more) => {
    const policy = shaped("TrafficPolicy", {
      spec: { targetRefs: TARGETS, overrides: { rateLimits: [{ ...limit, ...more }] } },
    });
    const engine = engineWith(policy);
    expect(closedGuards(engine)).toEqual(["guard:infra/gw:infra/it:overrides.rateLimits.0"]);
    expect(accepted(engine, "TrafficPolicy/infra/it")).toMatchObject(INVALID);
  });

  test.each([
    { overrides: { rateLimits: [{ requests: "5 a second" }] } },
    { overrides: { rateLimits: "few" } },
    { defaults: { clientAddresses: { allow: [7] } } },
    { overrides: "strict" },
  ])("whose settings are %j closes its target and says so", (settings) => {
    const found = shape("TrafficPolicy", { spec: { targetRefs: TARGETS, ...settings } });
    expect(found).toHaveProperty("warning", expect.stringContaining("what it guards is closed, spec."));
    const engine = engineWith(shaped("TrafficPolicy", { spec: { targetRefs: TARGETS, ...settings } }));
    expect(closedGuards(engine)).toEqual(
      TRAFFIC_FIELDS.map((field) => `guard:infra/gw:infra/it:overrides.${field}.0`),
    );
    expect(accepted(engine, "TrafficPolicy/infra/it")).toMatchObject(INVALID);
  });

  test("that also names a new kind of target guards the others", () => {
    const spec = {
      targetRefs: [{ kind: "Mesh", name: "m" }, ...TARGETS],
      overrides: { rateLimits: [limit] },
    };
    const found = shape("TrafficPolicy", { spec });
    expect(found).toMatchObject({
      resource: { spec: { targetRefs: [{ kind: "Gateway" }], overrides: { rateLimits: [limit] } } },
      warning: expect.stringContaining("a target is left out"),
    });
  });

  test("without a target that can be read is left out", () => {
    for (const targetRefs of [undefined, null, "gw", [{ kind: "Mesh", name: "m" }], [7]])
      expect(shape("TrafficPolicy", { spec: { targetRefs } })).toHaveProperty("problem");
  });

  test("cannot be called unreadable by its author", () => {
    const policy = shaped("TrafficPolicy", { spec: { targetRefs: TARGETS, unreadable: "yes" } });
    expect("spec" in policy && policy.spec).not.toHaveProperty("unreadable");
  });
});

describe("a policy that cannot be read any more", () => {
  const good = { spec: { targetRefs: TARGETS, overrides: { rateLimits: [{ requests: 5 }] } } };
  const bad = { spec: { targetRefs: TARGETS, overrides: { rateLimits: 5 } } };
  const last = shaped("TrafficPolicy", { ...good, metadata: { name: "it", generation: 2, uid: "a" } });

  test("holds as it was, with its new status and metadata", () => {
    const metadata = { name: "it", generation: 3, uid: "a", resourceVersion: "9" };
    const status = { ancestors: [] };
    expect(shape("TrafficPolicy", { ...bad, metadata, status }, last)).toMatchObject({
      resource: { metadata: { generation: 2, resourceVersion: "9" }, spec: good.spec, status },
      warning: expect.stringContaining("the last version that could be read holds, spec.overrides"),
    });
    expect(shape("TrafficPolicy", { metadata }, last)).toMatchObject({ resource: { spec: good.spec } });
  });

  test("is closed when the last one was another object, or could not be read either", () => {
    const metadata = { name: "it", generation: 3, uid: "b" };
    const closed = shaped("TrafficPolicy", { ...bad, metadata }, last);
    expect(closed).toHaveProperty("spec.unreadable");
    const again = { ...bad, spec: { ...bad.spec, defaults: 7 } };
    expect(shape("TrafficPolicy", { ...again, metadata }, closed)).toHaveProperty(
      "warning",
      expect.stringContaining("what it guards is closed"),
    );
  });
});

describe("a ClientPolicy", () => {
  const ports = (engine: Engine): unknown =>
    [...engine.plan()].find((item) => item.type === "port" && item.port === 80);

  test("with a new way of the PROXY protocol requires it and is Invalid", () => {
    const clientAddress = { proxyProtocol: "Version3" };
    const policy = shaped("ClientPolicy", { spec: { targetRefs: TARGETS, overrides: { clientAddress } } });
    const engine = engineWith(policy);
    expect(ports(engine)).toMatchObject({ clientAddress: { proxyProtocol: "required" } });
    expect(accepted(engine, "ClientPolicy/infra/it")).toMatchObject(INVALID);
  });

  test("whose settings cannot be read trusts nobody and is Invalid", () => {
    const forwardedFor = { trustedHops: "many" };
    const policy = shaped("ClientPolicy", {
      spec: { targetRefs: TARGETS, overrides: { clientAddress: { forwardedFor } } },
    });
    const engine = engineWith(policy);
    expect(ports(engine)).not.toHaveProperty("clientAddress");
    expect(accepted(engine, "ClientPolicy/infra/it")).toMatchObject(INVALID);
  });
});

describe("a TenantPolicy", () => {
  const rule = { namespaceSelector: {}, hostnames: { allow: ["*"] } };
  const isServed = (engine: Engine): boolean =>
    [...engine.plan()].some((item) => item.type === "listener" && item.owner.name === "set");
  const withRules = (rules: unknown, more: object = {}): Engine =>
    engineWith(shaped("TenantPolicy", { spec: { targetRefs: TARGETS, rules, ...more } }));

  test("with a protocol that is not known restricts as before", () => {
    expect(isServed(withRules([rule]))).toBe(true);
    expect(isServed(withRules([{ ...rule, protocols: ["HTTP", "QUIC"] }]))).toBe(true);
    expect(isServed(withRules([{ ...rule, protocols: ["QUIC"] }]))).toBe(false);
  });

  test("with a new enforcement enforces, and with a new word for other namespaces denies", () => {
    expect(isServed(withRules([], { unmatchedNamespaces: "Ask", enforcement: "Softly" }))).toBe(false);
  });

  test("whose rules cannot be read allows nothing and is Invalid, unless it only audits", () => {
    const engine = withRules([{ ...rule, hostnames: "all" }], { unmatchedNamespaces: "Allow" });
    expect(isServed(engine)).toBe(false);
    expect(accepted(engine, "TenantPolicy/infra/it")).toMatchObject(INVALID);
    expect(isServed(withRules([{ ...rule, hostnames: "all" }], { enforcement: "Audit" }))).toBe(true);
  });

  test("with an operator that is not known allows nothing to whom it might select, and is Invalid", () => {
    const matchExpressions = [{ key: "tier", operator: "Gt", values: ["3"] }];
    const unknown = { ...rule, namespaceSelector: { matchExpressions } };
    const engine = withRules([unknown, rule]);
    expect(isServed(engine)).toBe(false);
    expect(accepted(engine, "TenantPolicy/infra/it")).toMatchObject(INVALID);
    expect(isServed(withRules([rule, unknown]))).toBe(true);
  });
});

test.each(["TrafficPolicy", "ClientPolicy", "BackendPolicy", "TenantPolicy", "BackendTLSPolicy"] as const)(
  "a %s is read whatever others have written in its status, and keeps what fits",
  (kind) => {
    const spec =
      kind === "BackendTLSPolicy"
        ? {
            targetRefs: [{ group: "", kind: "Service", name: "s" }],
            validation: { hostname: "s.example", wellKnownCACertificates: "System" },
          }
        : { targetRefs: TARGETS };
    const fits = { ancestorRef: { name: "gw" }, controllerName: "example.com/other", conditions: [] };
    const statusOf = (status: unknown): unknown => {
      const resource = shaped(kind, { spec, status });
      return "status" in resource ? resource.status : undefined;
    };
    expect(statusOf({ ancestors: [fits], future: 1 })).toEqual({ ancestors: [fits], future: 1 });
    const { ancestorRef: _, ...without } = fits;
    expect(statusOf({ ancestors: [without, fits, null] })).toEqual({ ancestors: [fits] });
    for (const status of [7, null, { ancestors: 7 }, undefined]) expect(statusOf(status)).toBeUndefined();
  },
);

test.each(Object.keys(GROUP_OF_KIND) as Kind[])("a %s without spec is no trouble to the engine", (kind) => {
  for (const fields of [{}, { spec: null }, { spec: {} }]) {
    const found = shape(kind, fields);
    if (!("resource" in found)) continue;
    const engine = engineWith(found.resource);
    expect([...engine.plan()].length).toBeGreaterThan(0);
    expect([...engine.verdicts()].length).toBeGreaterThan(0);
  }
});
