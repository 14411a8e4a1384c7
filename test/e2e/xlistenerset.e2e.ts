/**
 * The experimental XListenerSet (GEP-1713 (experimental), whose sections the titles name) in a
 * cluster whose CRD for it comes after the controller has started, and goes again. The CRD is that
 * of v1.4, the last release that has it. Tests stand on one another's world, in their order.
 */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ok } from "../../tools/cluster/bed.ts";
import { applyCrds } from "../../tools/cluster/conformance.ts";
import { selfSigned } from "../dataplanes/support/certificates.ts";
import { nextSecond } from "../support/eventually.ts";
import {
  ACCEPTED,
  ALL_WELL,
  eventually,
  gateway,
  http,
  httpRoute,
  listenerOf,
  listenerSet,
  type Place,
  ServedCluster,
  SYSTEM,
  said,
  tlsSecret,
  xListenerSet,
} from "./support/served-cluster.ts";

const X_CRD = "crd/xlistenersets.gateway.networking.x-k8s.io";
const SHARED: Place = { namespace: "infra", name: "shared" };
const TEAM: Place = { namespace: "team-a", name: "own" };
const certificate = selfSigned(["safe.example.com"]);

const SHARED_GATEWAY = gateway(SHARED, {
  allowedListeners: { namespaces: { from: "All" } },
  listeners: [http("front", "front.example.com")],
});

const https = (port?: number): object => ({
  name: "safe",
  hostname: "safe.example.com",
  protocol: "HTTPS",
  tls: { certificateRefs: [{ name: "safe" }] },
  ...(port === undefined ? {} : { port }),
});

const { port: _, ...portless } = http("assigned", "assigned.example.com") as { port: number };

const OWN_SET = xListenerSet(TEAM, SHARED, [http("named", "named.example.com"), portless, https(0)]);

/** To the whole set: every entry of it and none of the Gateway's. */
const OWN_ROUTE = httpRoute(TEAM, {
  parentRefs: [{ group: "gateway.networking.x-k8s.io", kind: "XListenerSet", name: "own" }],
});

let cluster: ServedCluster;
let address: string;
let ports: { readonly assigned: number; readonly safe: number };

async function installXListenerSets(): Promise<void> {
  expect(await applyCrds(cluster.bed.cluster, "xlistenerset")).toBe(0);
}

function portsIn(stored: Parameters<typeof listenerOf>[0]): typeof ports {
  return {
    assigned: listenerOf(stored, "assigned").port ?? 0,
    safe: listenerOf(stored, "safe").port ?? 0,
  };
}

async function everyEntryAnswers(): Promise<void> {
  await cluster.answers({ url: "http://named.example.com/", address });
  await cluster.answers({ url: `http://assigned.example.com:${ports.assigned}/`, address });
  const safe = `https://safe.example.com:${ports.safe}/`;
  await cluster.answers({ url: safe, address, authority: certificate.cert });
}

beforeAll(async () => {
  cluster = await ServedCluster.up("e2e-x");
  await cluster.namespaceWithBackend("infra");
  await cluster.namespaceWithBackend("team-a");
  await cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "team-b" } });
  await cluster.apply(
    tlsSecret({ namespace: "team-a", name: "safe" }, certificate),
    SHARED_GATEWAY,
    httpRoute(SHARED, { parentRefs: [{ name: "shared" }] }),
  );
  address = await cluster.addressOf(SHARED_GATEWAY);
});

afterAll(async () => {
  await cluster?.down();
});

describe("a CRD that comes later", () => {
  test("is not missed before, and nothing is said of sets that cannot be", async () => {
    await cluster.answers({ url: "http://front.example.com/", address });
    const { status } = await cluster.get(SHARED_GATEWAY);
    expect(said(status)).toEqual(ACCEPTED);
    expect(status?.attachedListenerSets ?? 0).toBe(0);
  });

  test("is picked up by the controller that runs: the set attaches (ListenerSet Conditions)", async () => {
    await installXListenerSets();
    await cluster.apply(OWN_SET, OWN_ROUTE);
    const stored = await cluster.settled(OWN_SET, (object) => {
      expect(said(object.status)).toEqual(ACCEPTED);
      for (const name of ["named", "assigned", "safe"]) {
        expect(said(listenerOf(object, name)), name).toEqual(ALL_WELL);
        expect(listenerOf(object, name).attachedRoutes, name).toBe(1);
      }
    });
    ports = portsIn(stored);
    const restarts = "jsonpath={.items[*].status.containerStatuses[*].restartCount}";
    expect(await ok(cluster.bed.kubectl(["-n", SYSTEM, "get", "pods", "-o", restarts]))).toBe("0");
  });

  test("makes the Gateway count its sets, and list none of their listeners (Gateway Conditions)", async () => {
    const stored = await cluster.settled(SHARED_GATEWAY, ({ status }) => {
      expect(said(status)).toEqual({ ...ACCEPTED, AttachedListenerSets: "True/ListenersAttached" });
      expect(status?.attachedListenerSets).toBe(1);
    });
    expect(stored.status?.listeners?.map(({ name }) => name)).toEqual(["front"]);
  });
});

describe("assigned ports (Port)", () => {
  test("stand in the status, one for each entry that names none", async () => {
    const stored = await cluster.get(OWN_SET);
    expect(listenerOf(stored, "named").port).toBe(80);
    for (const port of Object.values(ports)) {
      expect(port).toBeGreaterThanOrEqual(49152);
      expect(port).toBeLessThanOrEqual(65535);
    }
    expect(ports.assigned).not.toBe(ports.safe);
  });

  test("really serve, HTTP and HTTPS", async () => {
    await everyEntryAnswers();
    // The route hangs on the set, the Gateway's own listener is not its.
    await cluster.answers({ url: `http://front.example.com:${ports.assigned}/`, address }, 404);
  });

  test("stay when the set is changed", async () => {
    const more = { name: "more", hostname: "more.example.com", protocol: "HTTP" };
    const listeners = [more, portless, https(0), http("named", "named.example.com")];
    await cluster.apply(xListenerSet(TEAM, SHARED, listeners));
    const stored = await cluster.settled(OWN_SET, (object) => {
      expect(said(listenerOf(object, "more"))).toEqual(ALL_WELL);
    });
    expect(portsIn(stored)).toEqual(ports);
    const taken = stored.status?.listeners?.map(({ port }) => port) ?? [];
    expect(new Set(taken).size).toBe(4);
    await cluster.answers({ url: `http://more.example.com:${listenerOf(stored, "more").port}/`, address });
    await cluster.apply(OWN_SET);
    await cluster.settled(OWN_SET, (object) => expect(object.status?.listeners).toHaveLength(3));
  });

  test("stay when the controller is started anew", async () => {
    await ok(cluster.bed.kubectl(["-n", SYSTEM, "rollout", "restart", "deploy/mergeway"]));
    await ok(cluster.bed.kubectl(["-n", SYSTEM, "rollout", "status", "deploy/mergeway", "--timeout=240s"]));
    // What comes after the restart has been seen by the new controller.
    const probe = xListenerSet({ namespace: "team-b", name: "probe" }, SHARED, [
      http("web", "probe.example.com"),
    ]);
    await cluster.apply(probe);
    await cluster.settled(probe, ({ status }) => expect(said(status)).toEqual(ACCEPTED));
    expect(portsIn(await cluster.get(OWN_SET))).toEqual(ports);
    await everyEntryAnswers();
    await cluster.remove(probe);
  });
});

describe("conflicts", () => {
  const standard = listenerSet({ namespace: "team-b", name: "older" }, SHARED, [
    http("web", "wanted.example.com"),
  ]);
  const experimental = xListenerSet({ namespace: "team-a", name: "younger" }, SHARED, [
    http("web", "wanted.example.com"),
    http("spare", "spare.example.com"),
  ]);

  test("with an older ListenerSet: it wins, and the other is not told who it is (Conflict between two ListenerSets)", async () => {
    await cluster.apply(standard);
    await cluster.settled(standard, ({ status }) => expect(said(status)).toEqual(ACCEPTED));
    await nextSecond();
    await cluster.apply(
      experimental,
      httpRoute(
        { namespace: "team-a", name: "younger" },
        { parentRefs: [{ group: "gateway.networking.x-k8s.io", kind: "XListenerSet", name: "younger" }] },
      ),
    );
    const stored = await cluster.settled(experimental, (object) => {
      expect(said(object.status)).toEqual(ACCEPTED);
      expect(said(listenerOf(object, "web"))).toEqual({
        Accepted: "False/HostnameConflict",
        Conflicted: "True/HostnameConflict",
        ResolvedRefs: "True/ResolvedRefs",
        Programmed: "False/HostnameConflict",
      });
      expect(said(listenerOf(object, "spare"))).toEqual(ALL_WELL);
    });
    expect(JSON.stringify(stored.status)).not.toMatch(/team-b|older/);
    expect(said(listenerOf(await cluster.get(standard), "web"))).toEqual(ALL_WELL);
    await cluster.answers({ url: "http://wanted.example.com/", address }, 404);
    await cluster.answers({ url: "http://spare.example.com/", address });
  });

  test("end with the older: the hostname is the next one's, and is served", async () => {
    await cluster.remove(standard);
    await cluster.settled(experimental, (object) =>
      expect(said(listenerOf(object, "web"))).toEqual(ALL_WELL),
    );
    await cluster.answers({ url: "http://wanted.example.com/", address });
    await cluster.remove(experimental);
  });

  test("with the Gateway itself: the set has no valid entry left (Conflict between ListenerSet and parent Gateway)", async () => {
    const set = xListenerSet({ namespace: "team-a", name: "greedy" }, SHARED, [
      http("web", "front.example.com"),
    ]);
    await cluster.apply(set);
    await cluster.settled(set, (object) => {
      expect(said(object.status)).toEqual({
        Accepted: "False/ListenersNotValid",
        Programmed: "False/ListenersNotValid",
      });
      expect(said(listenerOf(object, "web"))).toMatchObject({
        Accepted: "False/HostnameConflict",
        Conflicted: "True/HostnameConflict",
      });
    });
    expect(said(listenerOf(await cluster.get(SHARED_GATEWAY), "front"))).toEqual(ALL_WELL);
    await cluster.remove(set);
  });
});

describe("reasons for Accepted=False and the condition AttachedListenerSets", () => {
  const closed: Place = { namespace: "infra", name: "closed" };

  test("NotAllowed where the Gateway says nothing: Unknown", async () => {
    const parent = gateway(closed, { listeners: [http("web", "closed.example.com")] });
    const set = xListenerSet({ namespace: "infra", name: "closed" }, closed, [
      http("web", "set.closed.example.com"),
    ]);
    await cluster.apply(parent, set);
    await cluster.settled(set, (object) => {
      expect(said(object.status)).toEqual({ Accepted: "False/NotAllowed", Programmed: "False/NotAllowed" });
      expect(listenerOf(object, "web").attachedRoutes).toBe(0);
    });
    await cluster.settled(parent, ({ status }) => {
      expect(said(status)["AttachedListenerSets"]).toBe("Unknown/NotConfigured");
      expect(status?.attachedListenerSets ?? 0).toBe(0);
    });
  });

  test("False where sets may attach and none with a valid listener does, True from the first on", async () => {
    const parent = gateway(closed, {
      allowedListeners: { namespaces: { from: "Same" } },
      listeners: [http("web", "closed.example.com")],
    });
    const set = (hostname: string): ReturnType<typeof xListenerSet> =>
      xListenerSet({ namespace: "infra", name: "closed" }, closed, [http("web", hostname)]);
    await cluster.apply(set("closed.example.com"), parent);
    const attached = (expected: string, count: number): Promise<unknown> =>
      cluster.settled(parent, ({ status }) => {
        expect(said(status)["AttachedListenerSets"]).toBe(expected);
        expect(status?.attachedListenerSets ?? 0).toBe(count);
      });
    await attached("False/NoListenersAttached", 0);
    await cluster.apply(set("set.closed.example.com"));
    await attached("True/ListenersAttached", 1);
    await cluster.apply(set("closed.example.com"));
    await attached("False/NoListenersAttached", 0);
    await cluster.remove(set(""));
    // Nobody uses the experimental kind with this Gateway any more.
    await cluster.settled(parent, ({ status }) =>
      expect(Object.keys(said(status)).sort()).toEqual(["Accepted", "Programmed"]),
    );
    await cluster.remove(parent);
  });

  test("ParentNotAccepted where the Gateway asks for what cannot be", async () => {
    const place: Place = { namespace: "infra", name: "odd" };
    const parent = gateway(place, {
      allowedListeners: { namespaces: { from: "Same" } },
      addresses: [{ type: "example.com/odd", value: "x" }],
      listeners: [http("web", "odd.example.com")],
    });
    const set = xListenerSet(place, place, [http("web", "set.odd.example.com")]);
    await cluster.apply(parent, set);
    await cluster.settled(set, ({ status }) =>
      expect(said(status)).toEqual({
        Accepted: "False/ParentNotAccepted",
        Programmed: "False/ParentNotAccepted",
      }),
    );
    await cluster.remove(set, parent);
  });

  test("a grant to the kind ListenerSet is none to XListenerSet (ReferenceGrant Semantics)", async () => {
    const grantTo = (group: string, kind: string): object => ({
      apiVersion: GRANT_API,
      kind: "ReferenceGrant",
      metadata: { name: "certificates", namespace: "team-a" },
      spec: { from: [{ group, kind, namespace: "team-b" }], to: [{ group: "", kind: "Secret" }] },
    });
    const tls = { certificateRefs: [{ name: "safe", namespace: "team-a" }] };
    const set = xListenerSet({ namespace: "team-b", name: "borrower" }, SHARED, [
      { name: "web", hostname: "borrowed.example.com", port: 8443, protocol: "HTTPS", tls },
    ]);
    const resolved = (expected: string): Promise<unknown> =>
      cluster.settled(set, (object) =>
        expect(said(listenerOf(object, "web"))["ResolvedRefs"]).toBe(expected),
      );
    await cluster.apply(grantTo("gateway.networking.k8s.io", "ListenerSet"), set);
    await resolved("False/RefNotPermitted");
    await cluster.apply(grantTo("gateway.networking.x-k8s.io", "XListenerSet"));
    await resolved("True/ResolvedRefs");
    await cluster.remove(set);
  });
});

const GRANT_API = "gateway.networking.k8s.io/v1beta1";

describe("a CRD that goes", () => {
  test("takes its sets along, and nothing else", async () => {
    await everyEntryAnswers();
    await ok(cluster.bed.kubectl(["delete", X_CRD]));
    await cluster.settled(SHARED_GATEWAY, ({ status }) => {
      expect(said(status)).toEqual(ACCEPTED);
      expect(status?.attachedListenerSets ?? 0).toBe(0);
    });
    await cluster.answers({ url: `http://assigned.example.com:${ports.assigned}/`, address }, 0);
    await cluster.answers({ url: "http://named.example.com/", address }, 404);
    await cluster.answers({ url: "http://front.example.com/", address });
    // Its parent is gone, and with it what was said about it.
    await eventually(async () => expect((await cluster.get(OWN_ROUTE)).status?.parents ?? []).toEqual([]));
    const service = await cluster.get({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "shared-mergeway", namespace: "infra" },
    });
    expect((service.spec["ports"] as { port: number }[]).map(({ port }) => port)).toEqual([80]);
  });

  test("may come again", async () => {
    await installXListenerSets();
    await cluster.apply(OWN_SET);
    const stored = await cluster.settled(OWN_SET, (object) =>
      expect(said(listenerOf(object, "safe"))).toEqual(ALL_WELL),
    );
    ports = portsIn(stored);
    await everyEntryAnswers();
    expect(await cluster.complaints("error")).toEqual([]);
  });
});
