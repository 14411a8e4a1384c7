/**
 * Gateways behind Cloudflare Tunnel in a real cluster, without Cloudflare: API and edge are doubles in the cluster's network, the connector in the pods is a double from an image of its
 * own, or real cloudflared where CLOUDFLARED names one. Everything else is what users get. Needs `npm run build`.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadImage } from "../cluster/cluster.ts";
import { selfSigned } from "../dataplanes/certificates.ts";
import { ok } from "./bed.ts";
import {
  ACCEPTED,
  ALL_WELL,
  conditionOf,
  eventually,
  gateway,
  http,
  httpRoute,
  listenerOf,
  listenerSet,
  type Named,
  type Place,
  ServedCluster,
  SYSTEM,
  said,
  tlsSecret,
} from "./served-cluster.ts";
import { API_URL, Cloudflare, cloudflaredImage, connectorImage } from "./tunnel/cloudflare.ts";

const CONNECTOR = "connector-double:test";
const REAL = process.env["CLOUDFLARED"] || undefined;
const EDGE: Place = { namespace: "infra", name: "edge" };

let cluster: ServedCluster;
let cloudflare: Cloudflare;
let tunnel: string;

beforeAll(async () => {
  cluster = await ServedCluster.up("e2e-tunnel", [
    "--set=dataPlane.tunnel.enabled=true",
    `--set=controller.extraArgs={--cloudflare-api=${API_URL}}`,
  ]);
  cloudflare = await Cloudflare.start(cluster.bed.cluster);
  await loadImage(cluster.bed.cluster, await connectorImage(CONNECTOR, cloudflare.started));
  // The pods of a tunnel, cloudflared's container as well, satisfy the Pod Security Standard "restricted".
  await cluster.apply(namespace("infra", { "pod-security.kubernetes.io/enforce": "restricted" }));
  await Promise.all([cluster.namespaceWithBackend("team-a"), cluster.namespaceWithBackend("team-b")]);
  await cluster.apply(
    apiToken("cloudflare", cloudflare.started.token),
    parameters("edge", byApi("cloudflare")),
    shared(EDGE, "edge"),
    listenerSet(TEAM_A, EDGE, [http("web", "a.example.com")]),
    listenerSet(TEAM_B, EDGE, [http("web", "b.example.com")]),
    httpRoute({ ...TEAM_A, name: "web" }, { parentRefs: [parentSet(TEAM_A)] }),
    httpRoute({ ...TEAM_B, name: "web" }, { parentRefs: [parentSet(TEAM_B)], hostnames: ["b.example.com"] }),
  );
  tunnel = await programmed(EDGE);
});

afterAll(async () => {
  cloudflare?.stop();
  await cluster?.down();
});

const TEAM_A: Place = { namespace: "team-a", name: "team-a" };
const TEAM_B: Place = { namespace: "team-b", name: "team-b" };

function namespace(name: string, labels: Readonly<Record<string, string>> = {}): Named {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } } as Named;
}

function secret(name: string, stringData: Readonly<Record<string, string>>): Named {
  return { apiVersion: "v1", kind: "Secret", metadata: { name, namespace: "infra" }, stringData } as Named;
}

function apiToken(name: string, token: string): Named {
  return secret(name, { "api-token": token });
}

function byApi(credentials: string, more: object = {}): object {
  return { accountId: cloudflare.started.account, credentialsSecretRef: { name: credentials }, ...more };
}

function parameters(name: string, tunnelSettings: object, image = CONNECTOR): Named {
  return {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "GatewayParameters",
    metadata: { name, namespace: "infra" },
    spec: { dataPlane: "tunnel", tunnel: { image, connections: 1, ...tunnelSettings } },
  } as Named;
}

/** A Gateway for all teams, with a listener of its own. */
function shared(place: Place, own: string, hostname = "platform.example.com"): Named {
  return gateway(place, {
    infrastructure: { parametersRef: { group: "mergeway.dev", kind: "GatewayParameters", name: own } },
    allowedListeners: { namespaces: { from: "All" } },
    listeners: [http("platform", hostname)],
  });
}

function parentSet({ name }: Place): object {
  return { group: "gateway.networking.k8s.io", kind: "ListenerSet", name };
}

function at({ namespace: where, name }: Place): Named {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name, namespace: where },
  };
}

function set(place: Place): Named {
  return { ...at(place), kind: "ListenerSet" };
}

/** The id of the Gateway's tunnel, as soon as the Gateway is programmed. */
async function programmed(place: Place, seconds = 60): Promise<string> {
  const stored = await cluster.settled(
    at(place),
    ({ status }) => {
      expect(said(status)).toEqual(ACCEPTED);
      expect(status?.addresses).toEqual([
        { type: "Hostname", value: expect.stringMatching(/^[0-9a-f-]{36}\.cfargotunnel\.com$/) },
      ]);
    },
    seconds,
  );
  return stored.status?.addresses?.[0]?.value.split(".")[0] ?? "";
}

interface Echo {
  readonly namespace?: string;
  readonly headers?: Readonly<Record<string, readonly string[]>>;
}

/** The namespace of the backend that answered, or the status where none did. */
async function answerOf(
  host: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<string | number> {
  const { status, body } = await cloudflare.visit(tunnel, { host, headers });
  return status === 200 ? ((JSON.parse(body) as Echo).namespace ?? "") : status;
}

/** Everything that was seen while a Deployment was rolled, until old pods were told to go and some time after. */
async function duringRollout<T>(
  where: string,
  name: string,
  look: () => Promise<T>,
): Promise<ReadonlySet<T>> {
  const rolled = cluster.bed.kubectl(["-n", where, "rollout", "status", `deploy/${name}`, "--timeout=120s"]);
  const state = { end: Number.POSITIVE_INFINITY };
  void rolled.finally(() => {
    state.end = Date.now() + 4_000;
  });
  const seen = new Set<T>();
  while (Date.now() < state.end) seen.add(await look());
  await ok(rolled);
  return seen;
}

describe("a Gateway whose parameters choose a tunnel", () => {
  test("serves: edge → tunnel → listener of a ListenerSet → backend", async () => {
    await eventually(async () => expect(await answerOf("a.example.com")).toBe("team-a"));
    expect(await answerOf("b.example.com")).toBe("team-b");
    expect(await answerOf("c.example.com")).toBe(404);
    expect(await answerOf("platform.example.com")).toBe(404);
  });

  test("has a tunnel named after it, with one rule", async () => {
    expect(await cloudflare.named("mergeway.infra.edge")).toMatchObject({
      id: tunnel,
      connections: 1,
      services: ["http://127.0.0.1:8080"],
    });
  });

  test("has no Service with an address, and its token in a Secret of its own", async () => {
    expect(await cluster.infrastructureIn("infra")).toEqual([
      "deployment.apps/edge-mergeway",
      "service/edge-mergeway-pods",
      "serviceaccount/edge-mergeway",
    ]);
    const stored = await cluster.get({ ...secret("edge-mergeway-tunnel", {}) });
    const { uid, metadata } = { ...(await cluster.get(at(EDGE))).metadata, metadata: stored.metadata };
    expect(metadata).toMatchObject({ ownerReferences: [{ kind: "Gateway", name: "edge", uid }] });
  });

  test("tells backends who the visitor is, as the edge vouches for it", async () => {
    const visit = { host: "a.example.com", from: "203.0.113.9", headers: { "x-forwarded-for": "10.1.1.1" } };
    const { body } = await cloudflare.visit(tunnel, visit);
    const { headers = {} } = JSON.parse(body) as Echo;
    expect(headers["X-Forwarded-For"]).toEqual(["203.0.113.9"]);
    expect(headers["X-Forwarded-Proto"]).toEqual(["https"]);
  });

  test.each([
    "x-original-host",
    "x-forwarded-host",
    "x-forwarded-server",
    "x-host",
    "x-http-host-override",
    "x-original-url",
    "x-rewrite-url",
    "forwarded",
    "cf-worker",
  ])("%s lets no client choose another tenant's routes", async (header) => {
    const value = header === "forwarded" ? "host=b.example.com" : "b.example.com";
    expect(await answerOf("a.example.com", { [header]: value })).toBe("team-a");
    expect(await answerOf("nobody.example.com", { [header]: value })).toBe(404);
  });

  test("with a GRPCRoute is led to the pod's port for HTTP/2, without another pod", async () => {
    const pods = (): Promise<string> => ok(cluster.bed.kubectl(["-n", "infra", "get", "pods", "-o", "name"]));
    const before = await pods();
    const place: Place = { namespace: "team-a", name: "grpc" };
    const rules = [{ backendRefs: [{ name: "echo", port: 8080 }] }];
    const grpc = { ...httpRoute(place, { parentRefs: [parentSet(place)], rules }), kind: "GRPCRoute" };
    await cluster.apply(listenerSet(place, EDGE, [http("grpc", "g.example.com")]), grpc);
    await eventually(async () => {
      expect((await cloudflare.named("mergeway.infra.edge"))?.services).toEqual(["https://127.0.0.1:8081"]);
    });
    await eventually(async () => expect(await answerOf("a.example.com")).toBe("team-a"));
    await cluster.remove(grpc, set(place));
    await eventually(async () => {
      expect((await cloudflare.named("mergeway.infra.edge"))?.services).toEqual(["http://127.0.0.1:8080"]);
    });
    await eventually(async () => expect(await answerOf("a.example.com")).toBe("team-a"));
    expect(await pods()).toBe(before);
  });

  test("of a class whose parameters choose it: the class claims what a tunnel can carry, and no more", async () => {
    const gatewayClass = {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "GatewayClass",
      metadata: { name: "tunnelled" },
      spec: {
        controllerName: "mergeway.dev/controller",
        parametersRef: { group: "mergeway.dev", kind: "GatewayParameters", name: "edge", namespace: "infra" },
      },
    };
    await cluster.apply(gatewayClass);
    const { status } = await cluster.settled(gatewayClass, ({ status: now }) =>
      expect(now?.supportedFeatures?.length).toBeGreaterThan(0),
    );
    const claimed = (status?.supportedFeatures ?? []).map(({ name }) => name);
    expect(claimed).toEqual(expect.arrayContaining(["ListenerSet", "HTTPRoute", "GRPCRoute"]));
    expect(claimed.filter((name) => /^(TCP|UDP|TLS)Route|StaticAddresses|Port8080/.test(name))).toEqual([]);
    await cluster.remove(gatewayClass);
  });

  test("loses no request while its pods are replaced", async () => {
    await ok(cluster.bed.kubectl(["-n", "infra", "rollout", "restart", "deploy/edge-mergeway"]));
    const answers = await duringRollout("infra", "edge-mergeway", () => answerOf("a.example.com"));
    expect(answers).toEqual(new Set(["team-a"]));
  });

  test("keeps its address and serves while the controller is replaced", async () => {
    await ok(cluster.bed.kubectl(["-n", SYSTEM, "rollout", "restart", "deploy/mergeway"]));
    const seen = await duringRollout(SYSTEM, "mergeway", async () => {
      const { status } = await cluster.get(at(EDGE));
      return `${status?.addresses?.[0]?.value} ${said(status)["Programmed"]} ${await answerOf("a.example.com")}`;
    });
    expect(seen).toEqual(new Set([`${tunnel}.cfargotunnel.com True/Programmed team-a`]));
    expect(await programmed(EDGE)).toBe(tunnel);
  });
});

/** The tables of seed 004, line by line. Where they leave something untrue, the line here says what is true. */
describe("top-level conditions of a ListenerSet", () => {
  const place: Place = { namespace: "team-a", name: "table" };
  const refused = { Accepted: "False/ListenersNotValid", Programmed: "False/ListenersNotValid" };
  const gone = {
    ...http("web", "t.example.com", 443),
    protocol: "HTTPS",
    tls: { certificateRefs: [{ name: "gone" }] },
  };

  async function says(listeners: readonly object[], expected: object): Promise<void> {
    await cluster.apply(listenerSet(place, EDGE, listeners));
    await cluster.settled(set(place), ({ status }) => expect(said(status)).toEqual(expected));
  }

  test("Accepted=True Accepted and Programmed=True Programmed: permitted, and an entry is valid", async () => {
    await says([http("web", "t.example.com")], ACCEPTED);
  });

  test("Accepted=False ListenersNotValid, mirrored: every entry is conflicted", async () => {
    await says([http("web", "platform.example.com")], refused);
  });

  test("Accepted=False ListenersNotValid, mirrored: every entry has unresolved references", async () => {
    await says([gone], refused);
  });

  test("Accepted=True with one valid entry beside a conflicted one", async () => {
    await says([http("web", "t.example.com"), http("taken", "platform.example.com")], ACCEPTED);
  });

  test.each(["TCP", "UDP", "TLS"])(
    "%s is refused for the entry, and for a set that has nothing else",
    async (protocol) => {
      const own = protocol === "TLS" ? { hostname: "t.example.com", tls: { mode: "Passthrough" } } : {};
      await says([{ name: "stream", port: 5432, protocol, ...own }], refused);
      const { Accepted } = said(listenerOf(await cluster.get(set(place)), "stream"));
      expect(Accepted).toBe("False/UnsupportedProtocol");
    },
  );

  test("Accepted=False NotAllowed, mirrored: the Gateway's allowedListeners reject it", async () => {
    await cluster.patch(at(EDGE), { spec: { allowedListeners: { namespaces: { from: "Same" } } } });
    await says([http("web", "t.example.com")], {
      Accepted: "False/NotAllowed",
      Programmed: "False/NotAllowed",
    });
    await cluster.patch(at(EDGE), { spec: { allowedListeners: { namespaces: { from: "All" } } } });
    await says([http("web", "t.example.com")], ACCEPTED);
  });

  test("Programmed=False Pending while no connector is connected; the address stays", async () => {
    await cloudflare.accept(false);
    try {
      await cluster.settled(set(place), ({ status }) =>
        expect(said(status)).toEqual({ Accepted: "True/Accepted", Programmed: "False/Pending" }),
      );
      const { status } = await cluster.get(at(EDGE));
      expect(conditionOf(status, "Programmed")).toMatchObject({
        reason: "Pending",
        message: "no connector of the tunnel is connected",
      });
      expect(status?.addresses?.[0]?.value).toBe(`${tunnel}.cfargotunnel.com`);
    } finally {
      await cloudflare.accept(true);
    }
    await programmed(EDGE);
    await cluster.settled(set(place), ({ status: now }) => expect(said(now)).toEqual(ACCEPTED));
    await cluster.remove(set(place));
  });
});

describe("conditions of an entry", () => {
  const place: Place = { namespace: "team-b", name: "table" };
  const conflict = (reason: string): object => ({
    Accepted: `False/${reason}`,
    Conflicted: `True/${reason}`,
    ResolvedRefs: "True/ResolvedRefs",
    Programmed: `False/${reason}`,
  });
  const https = (reference: object): object => ({
    ...http("web", "t.example.com", 443),
    protocol: "HTTPS",
    tls: { certificateRefs: [reference] },
  });
  const certificate = selfSigned(["t.example.com"]);

  async function says(listener: object, expected: object): Promise<void> {
    await cluster.apply(listenerSet(place, EDGE, [listener]));
    await cluster.settled(set(place), (stored) =>
      expect(said(listenerOf(stored, "web"))).toEqual(expect.objectContaining(expected)),
    );
  }

  test("Accepted, Programmed, ResolvedRefs True and Conflicted=False NoConflicts", async () => {
    await says(http("web", "t.example.com"), ALL_WELL);
  });

  test("HostnameConflict: the same port and hostname of a listener that comes first", async () => {
    await says(http("web", "a.example.com"), conflict("HostnameConflict"));
  });

  test("ProtocolConflict: another protocol on the port", async () => {
    await cluster.apply(tlsSecret({ ...place, name: "cert" }, certificate));
    await says({ ...https({ name: "cert" }), port: 80 }, conflict("ProtocolConflict"));
  });

  test("TLS material is validated and not used: an HTTPS entry is served", async () => {
    await says(https({ name: "cert" }), ALL_WELL);
    await cluster.apply(httpRoute(place, { parentRefs: [parentSet(place)] }));
    await eventually(async () => expect(await answerOf("t.example.com")).toBe("team-b"));
    await cluster.settled(set(place), (stored) => expect(listenerOf(stored, "web").attachedRoutes).toBe(1));
  });

  test("ResolvedRefs=False InvalidCertificateRef: a Secret that does not exist; its route still counts", async () => {
    await says(https({ name: "gone" }), { ResolvedRefs: "False/InvalidCertificateRef" });
    expect(listenerOf(await cluster.get(set(place)), "web").attachedRoutes).toBe(1);
    expect(await answerOf("t.example.com")).toBe(404);
  });

  test("ResolvedRefs=False RefNotPermitted: a certificate of another namespace without a grant", async () => {
    await cluster.apply(tlsSecret({ namespace: "team-a", name: "cert" }, certificate));
    await says(https({ name: "cert", namespace: "team-a" }), { ResolvedRefs: "False/RefNotPermitted" });
    await cluster.remove(set(place));
  });

  test("attachedListenerSets of the Gateway counts sets with a valid entry", async () => {
    await cluster.settled(at(EDGE), ({ status }) => expect(status?.attachedListenerSets).toBe(2));
  });
});

describe("credentials and the API", () => {
  const place: Place = { namespace: "infra", name: "second" };

  test("a token that may not edit tunnels: said on the Gateway, and shown to nobody", async () => {
    const { powerlessToken } = cloudflare.started;
    await cluster.apply(
      apiToken("second", powerlessToken),
      parameters("second", byApi("second")),
      shared(place, "second"),
      listenerSet({ namespace: "team-a", name: "second" }, place, [http("web", "second.example.com")]),
    );
    const stored = await cluster.settled(at(place), ({ status }) =>
      expect(said(status)).toEqual({ Accepted: "True/Accepted", Programmed: "False/Invalid" }),
    );
    expect(conditionOf(stored.status, "Programmed").message).toContain("Cloudflare refuses the API token");
    expect(stored.status?.addresses ?? []).toEqual([]);
    const tenant = await cluster.get(set({ namespace: "team-a", name: "second" }));
    expect(JSON.stringify(tenant.status)).not.toMatch(/token|credential/i);
    const events = await ok(cluster.bed.kubectl(["get", "events", "-A", "-o", "json"]));
    for (const text of [
      JSON.stringify(stored),
      events,
      await ok(cluster.bed.kubectl(["-n", SYSTEM, "logs", "deploy/mergeway", "--tail=-1"])),
    ])
      expect(text).not.toContain(powerlessToken);
  });

  test("mended while the API limits and fails: served as soon as it does not, with one tunnel", async () => {
    await cloudflare.faults(
      { status: 429, headers: { "retry-after": "1" } },
      { status: 503 },
      { status: 500, afterwards: true },
      { status: 0, reset: true },
    );
    await cluster.apply(apiToken("second", cloudflare.started.token));
    await programmed(place, 120);
    const all = await cloudflare.tunnels();
    expect(all.filter(({ name }) => name === "mergeway.infra.second")).toHaveLength(1);
  });

  test("a Gateway is not gone while its tunnel cannot be deleted, and says so", async () => {
    await cloudflare.fault({ status: 403, on: "^DELETE " });
    await ok(cluster.bed.kubectl(["-n", "infra", "delete", "gateway", "second", "--wait=false"]));
    await eventually(async () => {
      const { status } = await cluster.get(at(place));
      expect(conditionOf(status, "Programmed").message).toMatch(
        /not deleted yet: .*finalizer mergeway\.dev\/tunnel/,
      );
    });
    await eventually(async () => {
      const events = await ok(cluster.bed.kubectl(["-n", "infra", "get", "events", "-o", "json"]));
      expect(events).toContain("TunnelNotDeleted");
    });
    await cloudflare.fault();
    await eventually(async () => expect(await cluster.find(at(place))).toBeUndefined());
    expect(await cloudflare.named("mergeway.infra.second")).toBeUndefined();
    await eventually(async () =>
      expect(await cluster.infrastructureIn("infra")).not.toContain("deployment.apps/second-mergeway"),
    );
  });

  test("a tunnel of which there is nothing but the token, configured by somebody else", async () => {
    const given: Place = { namespace: "infra", name: "given" };
    const id = await cloudflare.add("by hand", "http://127.0.0.1:8080");
    const token = (await cloudflare.named("by hand"))?.token ?? "";
    const before = (await cloudflare.requests()).length;
    await cluster.apply(
      secret("given", { "tunnel-token": token }),
      parameters("given", { tunnelTokenSecretRef: { name: "given" } }),
      shared(given, "given"),
      listenerSet({ namespace: "team-a", name: "given" }, given, [http("web", "given.example.com")]),
      httpRoute(
        { namespace: "team-a", name: "given" },
        { parentRefs: [parentSet({ namespace: "", name: "given" })] },
      ),
    );
    expect(await programmed(given)).toBe(id);
    await eventually(async () => {
      const { status } = await cloudflare.visit(id, { host: "given.example.com" });
      expect(status).toBe(200);
    });
    const asked = (await cloudflare.requests()).slice(before).filter((request) => request.includes(id));
    expect(asked).toEqual([]);
    await cluster.remove(at(given), set({ namespace: "team-a", name: "given" }));
    expect((await cloudflare.named("by hand"))?.id).toBe(id);
  });
});

test.skipIf(REAL === undefined)(
  "real cloudflared in the connector's place (skipped where CLOUDFLARED names none)",
  async () => {
    await loadImage(
      cluster.bed.cluster,
      await cloudflaredImage("cloudflared:test", cloudflare.started, REAL ?? ""),
    );
    await cluster.apply(parameters("edge", byApi("cloudflare"), "cloudflared:test"));
    await ok(
      cluster.bed.kubectl(["-n", "infra", "rollout", "status", "deploy/edge-mergeway", "--timeout=120s"]),
    );
    await eventually(async () => expect(await answerOf("a.example.com")).toBe("team-a"));
  },
);

test("a Gateway that is deleted takes its tunnel, its pods and its token with it", async () => {
  await cluster.remove(at(EDGE));
  expect((await cloudflare.tunnels()).find(({ id }) => id === tunnel)).toMatchObject({ deleted: true });
  await eventually(async () => {
    expect(await cluster.infrastructureIn("infra")).toEqual([]);
    expect(await cluster.find(secret("edge-mergeway-tunnel", {}))).toBeUndefined();
  });
});
