/**
 * The controller's side of tunnels: which tunnel a Gateway gets, what its owner reads, what is
 * written in the cluster and when it is deleted. The API is a double, the cluster a list.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Gateway } from "../../../src/api/gateway.ts";
import { type Key, keyOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { credentialDigest } from "../../../src/controller/tunnels/desired-tunnel.ts";
import { GatewayTunnels } from "../../../src/controller/tunnels/gateway-tunnels.ts";
import { FINALIZER, type TunnelCluster } from "../../../src/controller/tunnels/tunnel-cluster.ts";
import { ApiFailure } from "../../../src/dataplanes/tunnel/cloudflare/api-failure.ts";
import type { Credential } from "../../../src/dataplanes/tunnel/cloudflare/credential.ts";
import type { HostItem, PlanDelta } from "../../../src/plan/plan.ts";
import { ApiDouble } from "../../dataplanes/tunnel/support/api-double.ts";

const CONTROLLER = "mergeway.dev/controller";
const EDGE: Key = "Gateway/infra/edge";
const OWN = { group: "mergeway.dev", kind: "GatewayParameters", name: "own" };

class FakeCluster implements TunnelCluster {
  readonly tokens: Map<string, string> = new Map();
  readonly written: string[] = [];
  failing = false;
  onFinalizer: (gateway: Gateway, wanted: boolean) => void = () => {};

  async writeToken(gateway: Gateway, token: Credential): ReturnType<TunnelCluster["writeToken"]> {
    if (this.failing)
      throw new ApiFailure({ reason: "ClusterUnavailable", message: "no" }, { passing: true });
    this.tokens.set(gateway.metadata.name, token.reveal());
    return { secret: `${gateway.metadata.name}-tunnel`, key: "token", digest: credentialDigest(token) };
  }

  async setFinalizer(gateway: Gateway, wanted: boolean): Promise<void> {
    this.written.push(`${wanted ? "+" : "-"}finalizer ${gateway.metadata.name}`);
    this.onFinalizer(gateway, wanted);
  }

  async removePods(gateway: Gateway): Promise<void> {
    this.written.push(`-pods ${gateway.metadata.name}`);
  }
}

let api: ApiDouble;
let cluster: FakeCluster;
let tunnels: GatewayTunnels;
let resources: Map<Key, Resource>;
let stuck: string[];
let foreign: string[];
let log: string[];
let waiting: (() => void)[];

beforeEach(async () => {
  api = await ApiDouble.start();
  cluster = new FakeCluster();
  resources = new Map();
  stuck = [];
  foreign = [];
  log = [];
  waiting = [];
  tunnels = start(true);
  // As the API server would: the finalizer is there, or the Gateway is gone.
  cluster.onFinalizer = ({ metadata }, wanted) => {
    const key: Key = `Gateway/${metadata.namespace}/${metadata.name}`;
    const known = resources.get(key) as Gateway;
    const { finalizers: _, ...rest } = known.metadata;
    const kept = { ...known, metadata: wanted ? { ...rest, finalizers: [FINALIZER] } : rest };
    if (!wanted && rest.deletionTimestamp !== undefined) remove(key);
    else take(kept);
    wake();
  };
});

function start(isEnabled: boolean): GatewayTunnels {
  return new GatewayTunnels({
    controllerName: CONTROLLER,
    isEnabled,
    find: (key) => resources.get(key),
    cluster,
    onChange: wake,
    onStuck: (_gateway, reason, note) => {
      stuck.push(`${reason} ${note}`);
      wake();
    },
    onForeign: ({ metadata }, { reason, note }) => {
      foreign.push(`${metadata.name} ${reason} ${note}`);
      wake();
    },
    apiUrl: api.baseUrl,
    timing: { again: { firstDelayMs: 10, maxDelayMs: 50 }, recheckMs: 30 },
    log: (_level, message) => log.push(message),
  });
}

afterEach(async () => {
  await tunnels.lead(false);
  await api.close();
});

function take(...given: readonly Resource[]): void {
  for (const resource of given) {
    resources.set(keyOf(resource), resource);
    tunnels.notice(keyOf(resource), resource);
  }
}

function remove(key: Key): void {
  resources.delete(key);
  tunnels.notice(key, undefined);
}

function plan(upserts: readonly object[], removes: readonly string[] = []): void {
  tunnels.follow({ upserts, removes } as unknown as PlanDelta);
}

function serve(...names: readonly string[]): void {
  plan(names.map((name) => ({ type: "gateway", id: `gateway:infra/${name}`, gateway: `infra/${name}` })));
}

function wake(): void {
  for (const resolve of waiting.splice(0)) resolve();
}

/** Resolves when it holds; the test's own time limit is the bound. */
async function until(satisfied: () => boolean): Promise<void> {
  while (!satisfied()) {
    const timer = setTimeout(wake, 20);
    await new Promise<void>((resolve) => waiting.push(resolve));
    clearTimeout(timer);
  }
}

function gatewayClass(parameters?: string): Resource {
  const parametersRef = { ...OWN, name: parameters ?? "", namespace: "infra" };
  const spec = { controllerName: CONTROLLER, ...(parameters === undefined ? {} : { parametersRef }) };
  return { apiVersion: "v1", kind: "GatewayClass", metadata: { name: "edge" }, spec } as Resource;
}

function gateway(name = "edge", more: object = {}, metadata: object = {}): Resource {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name, namespace: "infra", uid: name, ...metadata },
    spec: { gatewayClassName: "edge", listeners: [], ...more },
  } as unknown as Resource;
}

function parameters(tunnel: object, { name = "own", namespace = "infra" } = {}): Resource {
  return {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "GatewayParameters",
    metadata: { name, namespace },
    spec: { dataPlane: "tunnel", tunnel },
  } as Resource;
}

function secret(name: string, data: Readonly<Record<string, string>>, namespace = "infra"): Resource {
  const encoded = Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
  );
  return { apiVersion: "v1", kind: "Secret", metadata: { name, namespace }, data: encoded } as Resource;
}

function byApi(more: object = {}): object {
  return { accountId: api.account, credentialsSecretRef: { name: "cloudflare" }, ...more };
}

/** A Gateway with a tunnel, as the class has it. */
async function served(more: object = {}, token = api.token): Promise<void> {
  take(gatewayClass("own"), parameters(byApi(more)), secret("cloudflare", { "api-token": token }), gateway());
  serve("edge");
  await tunnels.lead(true);
}

function says(isConnected = false): string {
  const { addresses = [], problem } = tunnels.fact(EDGE, isConnected) ?? {};
  return [...addresses.map(({ value }) => value), problem?.reason, problem?.message]
    .filter((each) => each !== undefined)
    .join(" ");
}

describe("a Gateway whose parameters choose a tunnel", () => {
  test("gets a tunnel and a token for its pods, and the finalizer before both", async () => {
    await served();
    await until(() => tunnels.credentials(EDGE) !== undefined);
    const tunnel = api.named("mergeway.infra.edge");
    expect(tunnel?.config?.ingress).toEqual([{ service: "http://127.0.0.1:8080" }]);
    expect(cluster.tokens.get("edge")).toBe(tunnel && api.tokenOf(tunnel));
    expect(tunnels.credentials(EDGE)).toMatchObject({ secret: "edge-tunnel", key: "token" });
    expect(cluster.written).toEqual(["+finalizer edge"]);
    await until(() => says().includes("no connector"));
    expect(says()).toBe(`${tunnel?.id}.cfargotunnel.com Pending no connector of the tunnel is connected`);
    expect(says(true)).toBe(`${tunnel?.id}.cfargotunnel.com`);
  });

  test("has its tunnel lead to the HTTP/2 port while it has gRPC", async () => {
    await served();
    await until(() => tunnels.credentials(EDGE) !== undefined);
    const service = (): string | undefined => api.named("mergeway.infra.edge")?.config?.ingress?.[0]?.service;
    const host = { type: "host", id: "h", gateway: "infra/edge", rules: [{ origin: { kind: "GRPCRoute" } }] };
    plan([host as unknown as HostItem]);
    await until(() => service() === "https://127.0.0.1:8081");
    plan([], ["h"]);
    await until(() => service() === "http://127.0.0.1:8080");
  });

  test("keeps foreign rules of its tunnel's configuration, and reports them once", async () => {
    const rule = { hostname: "ssh.example.com", service: "ssh://10.0.0.1:22" };
    api.add("mergeway.infra.edge", { config: { ingress: [rule, { service: "http_status:404" }] } });
    await served();
    await until(() => foreign.length > 0);
    const looks = (): number => api.count("GET", /configurations/);
    const sofar = looks();
    await until(() => looks() > sofar + 2);
    expect(foreign).toEqual([expect.stringMatching(/^edge ForeignRules .*left alone.*: ssh\.example\.com$/)]);
    expect(api.named("mergeway.infra.edge")?.config?.ingress?.[0]).toEqual(rule);
  });

  test("is known on every replica, and its tunnel is managed by the leader only", async () => {
    take(
      gatewayClass("own"),
      parameters(byApi()),
      secret("cloudflare", { "api-token": api.token }),
      gateway(),
    );
    serve("edge");
    expect(says()).toBe("Pending the tunnel is being set up");
    expect(api.requests).toEqual([]);
    expect(cluster.written).toEqual([]);
  });

  test("keeps its address until a new leader has asked the API, or if it cannot", async () => {
    const status = { addresses: [{ type: "Hostname", value: "x.cfargotunnel.com" }] };
    take(gatewayClass("own"), parameters(byApi()), secret("cloudflare", { "api-token": "wrong" }));
    take({ ...gateway(), status } as Resource);
    serve("edge");
    expect(says(true)).toBe("x.cfargotunnel.com");
    await tunnels.lead(true);
    await until(() => says().includes("Invalid"));
    expect(says(true)).toBe("x.cfargotunnel.com");
  });

  test("has no tunnel facts after it changes to another data plane", async () => {
    await served();
    await until(() => tunnels.credentials(EDGE) !== undefined);
    take({ ...parameters(byApi()), spec: { dataPlane: "embedded" } } as Resource);
    expect(tunnels.fact(EDGE, false)).toBeUndefined();
    expect(api.named("mergeway.infra.edge")).toBeDefined();
  });
});

describe("the tunnel of a Gateway", () => {
  test("has the name that the parameters give", async () => {
    await served({ name: "shared-edge" });
    await until(() => tunnels.credentials(EDGE) !== undefined);
    expect(api.named("shared-edge")).toBeDefined();
  });

  test("is found by its id and configured, and the Gateway has no finalizer", async () => {
    const { id } = api.add("made by hand");
    await served({ tunnelId: id });
    await until(() => tunnels.credentials(EDGE) !== undefined);
    expect(api.tunnels.get(id)?.config?.ingress).toEqual([{ service: "http://127.0.0.1:8080" }]);
    expect(cluster.written).toEqual([]);
    expect(api.count("POST", /./)).toBe(0);
  });

  test("is an error if there is no tunnel with its id", async () => {
    await served({ tunnelId: "8a4dc4a0-3c29-4f2c-9c3c-1f0d7b0f0a11" });
    await until(() => says().includes("Invalid"));
    expect(says()).toContain("no such account or tunnel");
    expect(says()).not.toContain("cfargotunnel.com");
  });

  test("is used by its token alone, without the API", async () => {
    const tunnel = api.add("made by hand");
    const token = api.tokenOf(tunnel);
    take(gatewayClass("own"), parameters({ tunnelTokenSecretRef: { name: "t" } }), gateway());
    take(secret("t", { "tunnel-token": `${token}\n` }));
    serve("edge");
    await tunnels.lead(true);
    await until(() => tunnels.credentials(EDGE) !== undefined);
    expect(cluster.tokens.get("edge")).toBe(token);
    expect(says(true)).toBe(`${tunnel.id}.cfargotunnel.com`);
    expect(api.requests).toEqual([]);
  });

  test("is an error if its token is not valid, and the message does not quote the token", async () => {
    take(gatewayClass("own"), parameters({ tunnelTokenSecretRef: { name: "t" } }), gateway());
    take(secret("t", { "tunnel-token": "hunter2" }));
    serve("edge");
    await tunnels.lead(true);
    await until(() => says().includes("Invalid"));
    expect(`${says()} ${log.join(" ")}`).not.toContain("hunter2");
  });

  test("is created again after somebody deleted it, with a new token for the pods", async () => {
    await served();
    await until(() => tunnels.credentials(EDGE) !== undefined);
    const first = api.named("mergeway.infra.edge");
    const before = tunnels.credentials(EDGE)?.digest;
    if (first !== undefined) first.deleted = true;
    await until(() => tunnels.credentials(EDGE)?.digest !== before);
    const second = api.named("mergeway.infra.edge");
    expect(second?.id).not.toBe(first?.id);
    expect(says(true)).toBe(`${second?.id}.cfargotunnel.com`);
  });

  test("is not taken over while another cluster uses it", async () => {
    const tunnel = api.add("mergeway.infra.edge");
    tunnel.connections.set("c", { connector: "c", location: "x" });
    await served();
    await until(() => says().includes("Invalid"));
    expect(says()).toBe(
      "Invalid the tunnel mergeway.infra.edge is in use elsewhere; give the Gateway a tunnel of its own name",
    );
    expect(tunnel.version).toBe(0);
    expect(cluster.tokens.size).toBe(0);
  });

  test("stays its own if it is in the Gateway's status, also while it is in use", async () => {
    const tunnel = api.add("mergeway.infra.edge");
    tunnel.connections.set("c", { connector: "c", location: "x" });
    const status = { addresses: [{ type: "Hostname", value: `${tunnel.id}.cfargotunnel.com` }] };
    take(gatewayClass("own"), parameters(byApi()), secret("cloudflare", { "api-token": api.token }));
    take({ ...gateway(), status } as Resource);
    serve("edge");
    await tunnels.lead(true);
    await until(() => tunnels.credentials(EDGE) !== undefined);
  });

  test("belongs to the older of two Gateways that ask for the same one", async () => {
    take(gatewayClass("own"), parameters(byApi({ name: "shared" })));
    take(secret("cloudflare", { "api-token": api.token }));
    take(gateway("edge", {}, { creationTimestamp: "2026-01-02T00:00:00Z" }));
    take(gateway("older", {}, { creationTimestamp: "2026-01-01T00:00:00Z" }));
    serve("edge", "older");
    await tunnels.lead(true);
    await until(() => tunnels.credentials("Gateway/infra/older") !== undefined);
    expect(says()).toContain("Invalid another Gateway has this tunnel already");
    remove("Gateway/infra/older");
    plan([], ["gateway:infra/older"]);
    await until(() => tunnels.credentials(EDGE) !== undefined);
  });
});

describe("credentials", () => {
  test("of a Gateway's own parameters are read in its own namespace only", async () => {
    take(gatewayClass(), parameters(byApi()), secret("cloudflare", { "api-token": api.token }, "other"));
    take(gateway("edge", { infrastructure: { parametersRef: OWN } }));
    serve("edge");
    await tunnels.lead(true);
    expect(says()).toBe(
      "Invalid spec.tunnel.credentialsSecretRef: there is no Secret cloudflare with a key api-token",
    );
    take(secret("cloudflare", { "api-token": api.token }));
    await until(() => tunnels.credentials(EDGE) !== undefined);
  });

  test("of the class are read beside the class's parameters", async () => {
    const spec = { parametersRef: { ...OWN, namespace: "platform" }, controllerName: CONTROLLER };
    take({ ...gatewayClass(), spec } as Resource, parameters(byApi(), { namespace: "platform" }), gateway());
    take(secret("cloudflare", { "api-token": api.token }, "platform"));
    serve("edge");
    await tunnels.lead(true);
    await until(() => tunnels.credentials(EDGE) !== undefined);
  });

  test("that are rejected give a clear message without a secret, and are tried again when they change", async () => {
    await served({}, api.powerlessToken);
    await until(() => says().includes("Invalid"));
    expect(says()).toContain("Cloudflare refuses the API token");
    expect(`${says()} ${log.join(" ")}`).not.toContain(api.powerlessToken);
    expect(tunnels.credentials(EDGE)).toBeUndefined();
    take(secret("cloudflare", { "api-token": api.token }));
    await until(() => tunnels.credentials(EDGE) !== undefined);
    expect(says(true)).toMatch(/^[0-9a-f-]{36}\.cfargotunnel\.com$/);
  });

  test("that are removed later change nothing for a Gateway with connected connectors", async () => {
    await served();
    await until(() => says().includes("no connector"));
    const address = says(true);
    api.faultFor = () => ({ status: 403 });
    await until(() => says().includes("Invalid"));
    expect(says(true)).toBe(address);
  });
});

test("rate limits and failures of the API are retried and change nothing", async () => {
  api.faults.push(
    { status: 429, headers: { "retry-after": "0" } },
    { status: 502 },
    { status: 500, afterwards: true },
  );
  await served();
  await until(() => tunnels.credentials(EDGE) !== undefined);
  expect([...api.tunnels.values()].filter(({ name }) => name === "mergeway.infra.edge")).toHaveLength(1);
});

test("a Secret that cannot be written is reported and tried again", async () => {
  cluster.failing = true;
  await served();
  await until(() => says().includes("Pending no"));
  cluster.failing = false;
  await until(() => tunnels.credentials(EDGE) !== undefined);
});

test("an address in the spec that is not the tunnel's is reported", async () => {
  take(gatewayClass("own"), parameters(byApi()), secret("cloudflare", { "api-token": api.token }));
  take(gateway("edge", { addresses: [{ type: "Hostname", value: "mine.example.com" }] }));
  serve("edge");
  await tunnels.lead(true);
  await until(() => tunnels.credentials(EDGE) !== undefined);
  expect(says(true)).toContain("AddressNotUsable cannot be assigned: mine.example.com");
});

describe("a Gateway that is deleted", () => {
  const deleting = { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [FINALIZER] };

  test("goes after its pods and its tunnel, in this order", async () => {
    await served();
    await until(() => tunnels.credentials(EDGE) !== undefined);
    const tunnel = api.named("mergeway.infra.edge");
    tunnel?.connections.set("c", { connector: "c", location: "x" });
    take(gateway("edge", {}, deleting));
    await until(() => tunnels.isEnding(EDGE));
    await until(() => cluster.written.includes("-pods edge"));
    expect(tunnel?.deleted).toBe(false);
    tunnel?.connections.clear();
    await until(() => !resources.has(EDGE));
    expect(tunnel?.deleted).toBe(true);
    expect(cluster.written).toEqual(["+finalizer edge", "-pods edge", "-finalizer edge"]);
  });

  test("is finished by the next leader if none led at the time", async () => {
    const tunnel = api.add("mergeway.infra.edge");
    const status = { addresses: [{ type: "Hostname", value: `${tunnel.id}.cfargotunnel.com` }] };
    take(gatewayClass("own"), parameters(byApi()), secret("cloudflare", { "api-token": api.token }));
    take({ ...gateway("edge", {}, deleting), status } as Resource);
    await tunnels.lead(true);
    await until(() => !resources.has(EDGE));
    expect(tunnel.deleted).toBe(true);
  });

  test("stays while the API refuses, with a reason, and goes when it does not", async () => {
    await served();
    await until(() => tunnels.credentials(EDGE) !== undefined);
    api.faultFor = () => ({ status: 403 });
    take(gateway("edge", {}, deleting));
    await until(() => stuck.length > 0);
    expect(says()).toMatch(
      /^\S+\.cfargotunnel\.com Pending the tunnel is not deleted yet: .* remove the finalizer mergeway\.dev\/tunnel$/,
    );
    expect(stuck[0]).toMatch(/^TunnelNotDeleted /);
    api.faultFor = () => undefined;
    await until(() => !resources.has(EDGE));
    expect(api.named("mergeway.infra.edge")).toBeUndefined();
  });

  test("is finished with the credentials that were deleted before it", async () => {
    await served();
    await until(() => tunnels.credentials(EDGE) !== undefined);
    remove("Secret/infra/cloudflare");
    tunnels.fact(EDGE, false);
    take(gateway("edge", {}, deleting));
    await until(() => !resources.has(EDGE));
    expect(api.named("mergeway.infra.edge")).toBeUndefined();
  });

  test("goes without any credentials; the tunnel is left behind, which is reported", async () => {
    const tunnel = api.add("mergeway.infra.edge");
    take(gatewayClass("own"), parameters(byApi()), gateway("edge", {}, deleting));
    await tunnels.lead(true);
    await until(() => !resources.has(EDGE));
    expect(tunnel.deleted).toBe(false);
    expect(stuck).toEqual([expect.stringMatching(/^TunnelLeftBehind /)]);
  });

  test("keeps its tunnel where the parameters say so", async () => {
    await served({ deletionPolicy: "Retain" });
    await until(() => tunnels.credentials(EDGE) !== undefined);
    expect(cluster.written).toEqual([]);
    take(gateway("edge", {}, deleting));
    await until(() => !resources.has(EDGE));
    expect(api.named("mergeway.infra.edge")).toBeDefined();
    expect(stuck).toEqual([]);
  });

  test("does not delete a tunnel of its name that it never had", async () => {
    const tunnel = api.add("mergeway.infra.edge");
    take(gatewayClass("own"), parameters(byApi()), secret("cloudflare", { "api-token": api.token }));
    take(gateway("edge", {}, deleting));
    await tunnels.lead(true);
    await until(() => !resources.has(EDGE));
    expect(tunnel.deleted).toBe(false);
  });

  test("is reported as stuck where tunnels are switched off now", async () => {
    tunnels = start(false);
    take(gatewayClass("own"), parameters(byApi()), secret("cloudflare", { "api-token": api.token }));
    take(gateway("edge", {}, deleting));
    await tunnels.lead(true);
    await until(() => stuck.length > 0);
    expect(stuck[0]).toMatch(
      /^TunnelNotDeleted .*dataPlane\.tunnel\.enabled.* finalizer mergeway\.dev\/tunnel$/,
    );
    expect(cluster.written).toEqual([]);
  });

  test("is ignored if its class belongs to another controller", async () => {
    take({ ...gatewayClass(), spec: { controllerName: "other.example/controller" } } as Resource);
    take(gateway("edge", {}, deleting));
    await tunnels.lead(true);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(cluster.written).toEqual([]);
  });
});
