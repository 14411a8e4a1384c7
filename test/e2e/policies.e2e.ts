/**
 * TrafficPolicy, ClientPolicy, BackendPolicy and TenantPolicy in a cluster, on both data planes:
 * what the platform demands of its tenants, and what a team may choose (GEP-713; GEP-1713, Policy
 * Attachment).
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ok } from "../../tools/cluster/bed.ts";
import {
  eventually,
  GATEWAY_API,
  type Named,
  type Request,
  ServedCluster,
  type Stored,
  said,
} from "./support/served-cluster.ts";

const OWN_API = "mergeway.dev/v1alpha1";
const MAIN: string = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const PLANES = ["envoy", "embedded"] as const;
type Plane = (typeof PLANES)[number];

let cluster: ServedCluster;
const addresses = new Map<Plane, string>();

function named(apiVersion: string, kind: string, namespace: string, name: string): Named {
  return { apiVersion, kind, metadata: { namespace, name } };
}

function gatewayOf(plane: Plane): Named {
  return named(GATEWAY_API, "Gateway", "infra", plane);
}

/** Hostnames differ by data plane, so that one team has a set at each. */
function hostOf(plane: Plane, name = "shop"): string {
  return `${name}.${plane}.example.com`;
}

function setOf(plane: Plane, hostname = hostOf(plane)): object {
  const listener = { name: "web", port: 80, protocol: "HTTP", hostname };
  return {
    ...named(GATEWAY_API, "ListenerSet", "team", plane),
    spec: {
      parentRef: { group: "gateway.networking.k8s.io", kind: "Gateway", namespace: "infra", name: plane },
      listeners: [listener],
    },
  };
}

function routeOf(plane: Plane): object {
  const parent = { group: "gateway.networking.k8s.io", kind: "ListenerSet", name: plane };
  return {
    ...named(GATEWAY_API, "HTTPRoute", "team", plane),
    spec: { parentRefs: [parent], rules: [{ backendRefs: [{ name: "echo", port: 8080 }] }] },
  };
}

function trafficPolicy(
  namespace: string,
  target: object,
  settings: object,
): Named & { readonly spec: object } {
  return {
    ...named(OWN_API, "TrafficPolicy", namespace, "traffic"),
    spec: { targetRefs: [target], ...settings },
  };
}

const OF_GATEWAY = (plane: Plane): object => ({ kind: "Gateway", name: plane });
const OF_SET = (plane: Plane): object => ({ kind: "ListenerSet", name: plane });
const EVERYBODY = ["0.0.0.0/0", "::/0"];

function requestTo(plane: Plane, hostname = hostOf(plane)): Request {
  return { url: `http://${hostname}/`, address: addresses.get(plane) ?? "" };
}

/** The answer's code to a client that says more than `request` does; 0 where there is none. */
async function curl(plane: Plane, ...flags: readonly string[]): Promise<number> {
  const host = hostOf(plane);
  const always = ["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20"];
  const resolve = ["--resolve", `${host}:80:${addresses.get(plane)}`];
  const { out } = await cluster.bed.run(["curl", ...always, ...resolve, ...flags, `http://${host}/`]);
  return Number(out);
}

async function answersCurl(plane: Plane, code: number, ...flags: readonly string[]): Promise<void> {
  await eventually(async () => expect(await curl(plane, ...flags), flags.join(" ")).toBe(code), 120);
}

interface PolicyStatus {
  readonly ancestors?: readonly {
    readonly ancestorRef: { readonly kind?: string; readonly name: string };
    readonly conditions: Parameters<typeof said>[0] extends infer Holder
      ? NonNullable<Holder> extends { readonly conditions?: infer Conditions }
        ? Conditions
        : never
      : never;
  }[];
}

/** Until the policy says this of each of its targets. */
async function saysOfAll(policy: Named, wanted: Readonly<Record<string, string>>): Promise<void> {
  await eventually(async () => {
    const stored: Stored = await cluster.get(policy);
    const { ancestors = [] } = (stored.status ?? {}) as PolicyStatus;
    expect(ancestors.length).toBeGreaterThan(0);
    for (const { conditions } of ancestors) {
      expect(said({ conditions: conditions ?? [] })).toMatchObject(wanted);
      for (const { observedGeneration } of conditions ?? [])
        expect(observedGeneration).toBe(stored.metadata.generation);
    }
  }, 120);
}

const APPLIED = { Accepted: "True/Accepted", Programmed: "True/Programmed" };

beforeAll(async () => {
  cluster = await ServedCluster.up("e2e-policies");
  await cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "infra" } });
  await cluster.namespaceWithBackend("team", { tenant: "yes" });
  for (const plane of PLANES) {
    const parameters = { group: "mergeway.dev", kind: "GatewayParameters", name: plane };
    await cluster.apply(
      {
        ...named(OWN_API, "GatewayParameters", "infra", plane),
        spec: { dataPlane: plane, service: { type: "ClusterIP" } },
      },
      {
        ...gatewayOf(plane),
        spec: {
          gatewayClassName: "mergeway",
          infrastructure: { parametersRef: parameters },
          allowedListeners: { namespaces: { from: "All" } },
          listeners: [{ name: "own", port: 80, protocol: "HTTP", hostname: hostOf(plane, "platform") }],
        },
      },
      setOf(plane),
      routeOf(plane),
    );
  }
  for (const plane of PLANES) {
    addresses.set(plane, await cluster.addressOf(gatewayOf(plane)));
    await cluster.answers(requestTo(plane));
  }
});

afterAll(async () => {
  await cluster?.down();
});

describe.each(PLANES)("on the data plane %s", (plane) => {
  test("a team does not shed the platform's override by a policy of its own", async () => {
    const platform = trafficPolicy("infra", OF_GATEWAY(plane), {
      overrides: { clientAddresses: { deny: EVERYBODY } },
    });
    const team = trafficPolicy("team", OF_SET(plane), {
      overrides: { clientAddresses: { allow: EVERYBODY } },
    });
    await cluster.apply(team);
    await saysOfAll(team, APPLIED);
    await cluster.answers(requestTo(plane));
    await cluster.apply(platform);
    await saysOfAll(platform, APPLIED);
    await cluster.answers(requestTo(plane), 403);
    // The same host in another spelling is the same host.
    for (const host of [hostOf(plane).toUpperCase(), `${hostOf(plane)}.`])
      expect(await curl(plane, "-H", `Host: ${host}`), host).toBe(403);
    await cluster.remove(team);
    await cluster.answers(requestTo(plane), 403);
    await cluster.remove(platform);
    await cluster.answers(requestTo(plane));
  });

  test("requests beyond a rate limit are answered with 429", async () => {
    const policy = trafficPolicy("team", OF_SET(plane), {
      defaults: { rateLimits: [{ requests: 1, period: "24h" }] },
    });
    await cluster.apply(policy);
    await saysOfAll(policy, APPLIED);
    await cluster.answers(requestTo(plane), 429);
    await cluster.remove(policy);
    await cluster.answers(requestTo(plane));
  });

  test("a listener is closed for maintenance, and its backends are balanced as a policy says", async () => {
    const closed = trafficPolicy("team", OF_SET(plane), {
      overrides: { directResponse: { status: 503, retryAfter: "10m", body: { inline: "back soon" } } },
    });
    const balanced = {
      ...named(OWN_API, "BackendPolicy", "team", "echo"),
      spec: {
        targetRefs: [{ group: "", kind: "Service", name: "echo" }],
        defaults: {
          loadBalancing: { type: "ConsistentHash", consistentHash: { key: "ClientAddress" } },
          sessionPersistence: { cookie: { name: "stays" } },
        },
      },
    };
    await cluster.apply(closed, balanced);
    await saysOfAll(closed, APPLIED);
    await saysOfAll(balanced, { Accepted: "True/Accepted" });
    await cluster.answers(requestTo(plane), 503);
    await cluster.remove(closed);
    await cluster.answers(requestTo(plane));
    await cluster.remove(balanced);
  });

  test("a trusted proxy says who the client is, and a client by itself does not", async () => {
    const policy = trafficPolicy("team", OF_SET(plane), {
      defaults: { clientAddresses: { allow: ["203.0.113.0/24"] } },
    });
    const forged = ["-H", "X-Forwarded-For: 203.0.113.7"];
    await cluster.apply(policy);
    await answersCurl(plane, 403, ...forged);
    const clients = {
      ...named(OWN_API, "ClientPolicy", "infra", plane),
      spec: {
        targetRefs: [OF_GATEWAY(plane)],
        defaults: { clientAddress: { forwardedFor: { trustedHops: 1 } } },
      },
    };
    await cluster.apply(clients);
    await saysOfAll(clients, APPLIED);
    await answersCurl(plane, 200, ...forged);
    await answersCurl(plane, 403, "-H", "X-Forwarded-For: 203.0.113.7, 198.51.100.1");
    await cluster.remove(policy, clients);
    await cluster.answers(requestTo(plane));
  });

  test("a port that requires the PROXY protocol serves nobody without it", async () => {
    const clients = {
      ...named(OWN_API, "ClientPolicy", "infra", plane),
      spec: {
        targetRefs: [OF_GATEWAY(plane)],
        overrides: { clientAddress: { proxyProtocol: "Required" } },
      },
    };
    await cluster.apply(clients);
    await answersCurl(plane, 200, "--haproxy-protocol");
    await answersCurl(plane, 0);
    await cluster.remove(clients);
    await cluster.answers(requestTo(plane));
  });

  test("a TenantPolicy says who may have which hostname, and a change of it is followed", async () => {
    const rule = {
      namespaceSelector: { matchLabels: { tenant: "yes" } },
      hostnames: { allow: ["*.example.com"] },
    };
    const tenants = {
      ...named(OWN_API, "TenantPolicy", "infra", plane),
      spec: { targetRefs: [OF_GATEWAY(plane)], reservedHostnames: [hostOf(plane, "login")], rules: [rule] },
    };
    const set = named(GATEWAY_API, "ListenerSet", "team", plane);
    await cluster.apply(tenants);
    await saysOfAll(tenants, { Accepted: "True/Accepted", Enforced: "True/Enforced" });
    await cluster.answers(requestTo(plane));
    await cluster.apply(setOf(plane, hostOf(plane, "login")));
    await cluster.settled(set, ({ status }) =>
      expect(said(status?.listeners?.[0])["Accepted"]).toBe("False/HostnameNotAllowed"),
    );
    await cluster.answers(requestTo(plane), 404);
    await cluster.patch(tenants, { spec: { enforcement: "Audit" } });
    await saysOfAll(tenants, { Enforced: "False/Audit" });
    await cluster.answers(requestTo(plane, hostOf(plane, "login")));
    await cluster.remove(tenants);
    await cluster.apply(setOf(plane));
    await cluster.answers(requestTo(plane));
  });
});

test("a tenant's reference is resolved to both sides, and the owner gives the hostname away", async () => {
  const hostname = hostOf("envoy");
  const command = (...args: readonly string[]): Promise<string> =>
    ok(cluster.bed.run([process.execPath, MAIN, ...args]));
  const rule = {
    namespaceSelector: { matchLabels: { tenant: "yes" } },
    hostnames: { allow: ["*.example.com"] },
  };
  const tenants = {
    ...named(OWN_API, "TenantPolicy", "infra", "envoy"),
    spec: { targetRefs: [OF_GATEWAY("envoy")], claims: "Hold", rules: [rule] },
  };
  const rival = named(GATEWAY_API, "ListenerSet", "rival", "rival");
  const { spec } = setOf("envoy") as { readonly spec: object };
  await cluster.apply(
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "rival", labels: { tenant: "yes" } } },
    tenants,
    { ...rival, spec },
  );
  let reference = "";
  await cluster.settled(rival, ({ status }) => {
    const texts = status?.listeners?.[0]?.conditions.map(({ message }) => message).join();
    reference = /reference ([0-9a-z]{16})/.exec(texts ?? "")?.[1] ?? "";
    expect(reference, texts).not.toBe("");
    expect(texts).not.toMatch(/team/);
  });
  await eventually(async () => {
    const resolved = await command("resolve", reference);
    expect(resolved).toContain(hostname);
    expect(resolved).toMatch(/has it +ListenerSet team\/envoy/);
    expect(resolved).toMatch(/wants it +ListenerSet rival\/rival/);
  }, 60);
  expect(await command("transfer", hostname, "--to", "rival", "--dry-run")).toContain("rival");
  await command("transfer", hostname, "--to", "rival");
  await cluster.settled(rival, ({ status }) =>
    expect(said(status?.listeners?.[0])).toMatchObject({ Accepted: "True/Accepted" }),
  );
  // The rival has no route.
  await cluster.answers(requestTo("envoy"), 404);
  await eventually(async () => {
    expect(await command("who", hostname)).toMatch(/had it +ListenerSet team\/envoy/);
  }, 60);
  await cluster.remove(tenants, rival);
  await cluster.answers(requestTo("envoy"));
});

test("the API server refuses policies that make no sense, with words that say why", async () => {
  const wrong: readonly (readonly [object, RegExp])[] = [
    [trafficPolicy("team", OF_SET("envoy"), {}), /set defaults, overrides or both/],
    [
      trafficPolicy("team", OF_SET("envoy"), { defaults: { clientAddresses: { allow: ["10.0.0.0/33"] } } }),
      /clientAddresses\.allow/,
    ],
    [
      trafficPolicy("team", OF_SET("envoy"), { defaults: { rateLimits: [{ requests: 0 }] } }),
      /greater than or equal to 1/,
    ],
    [
      trafficPolicy("team", OF_SET("envoy"), { defaults: { rateLimits: [{ requests: 1, per: "Header" }] } }),
      /set header if and only if per is Header/,
    ],
  ];
  for (const [manifest, words] of wrong) {
    const { code, err } = await cluster.bed.kubectl(["apply", "-f", "-"], JSON.stringify(manifest));
    expect(code).not.toBe(0);
    expect(err).toMatch(words);
  }
  await ok(cluster.bed.kubectl(["get", "trafficpolicies,clientpolicies,tenantpolicies", "-A"]));
});
