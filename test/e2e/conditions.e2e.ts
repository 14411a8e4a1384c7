/**
 * Every condition of seeds 000 and 004 as the API server holds it, written by the controller that users install; seed 003's are in xlistenerset.e2e.ts. A title
 * names the clause that it is about. `settled` of the cluster checks on the way that every condition speaks of the object's newest generation.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Condition } from "../../src/api/metadata.ts";
import { selfSigned } from "../dataplanes/certificates.ts";
import { ok } from "./bed.ts";
import {
  ACCEPTED,
  ALL_WELL,
  CONTROLLER,
  conditionOf,
  eventually,
  GATEWAY_API,
  gateway,
  http,
  httpRoute,
  listenerOf,
  listenerSet,
  type Named,
  type ParentStatus,
  type Place,
  ServedCluster,
  type Stored,
  said,
  tlsSecret,
} from "./served-cluster.ts";

const SHARED: Place = { namespace: "infra", name: "shared" };
const MAX_LISTENERS = 12;
const NOT_ALLOWED = { Accepted: "False/NotAllowed", Programmed: "False/NotAllowed" };
const NOT_VALID = { Accepted: "False/ListenersNotValid", Programmed: "False/ListenersNotValid" };
const certificate = selfSigned(["*.example.com"]);

const sharedWith = (spec: object): Named =>
  gateway(SHARED, {
    allowedListeners: { namespaces: { from: "Selector", selector: { matchLabels: { listeners: "yes" } } } },
    listeners: [http("gw-80", "gw.example.com"), http("gw-8080", "gw.example.com", 8080)],
    ...spec,
  });
const shared = sharedWith({});

const tls = (hostname: string, port: number, reference: object): object => ({
  name: "safe",
  hostname,
  port,
  protocol: "HTTPS",
  tls: { certificateRefs: [reference] },
});

let cluster: ServedCluster;
let address: string;

beforeAll(async () => {
  cluster = await ServedCluster.up("e2e-conditions", [
    `--set=controller.maxListenersPerGateway=${MAX_LISTENERS}`,
  ]);
  await cluster.namespaceWithBackend("infra");
  await cluster.namespaceWithBackend("team-a", { listeners: "yes" });
  for (const name of ["team-b", "certs"]) await cluster.apply(namespace(name, "yes"));
  await cluster.apply(shared, tlsSecret({ namespace: "certs", name: "wild" }, certificate));
  address = await cluster.addressOf(shared);
});

afterAll(async () => {
  await cluster?.down();
});

/** Every test leaves the shared Gateway alone with itself. */
afterEach(async () => {
  const kinds = "listenersets,httproutes,grpcroutes,referencegrants";
  await ok(cluster.bed.kubectl(["delete", kinds, "--all", "--all-namespaces"]));
  await counts(0);
});

function namespace(name: string, listeners: string): Named {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels: { listeners } } } as Named;
}

const set = (home: string, name: string, ...listeners: readonly object[]): Named =>
  listenerSet({ namespace: home, name }, SHARED, listeners);

async function says(object: Named, conditions: Readonly<Record<string, string>>): Promise<Stored> {
  return cluster.settled(object, ({ status }) => expect(said(status)).toEqual(conditions));
}

async function entrySays(
  object: Named,
  name: string,
  conditions: Readonly<Record<string, string>>,
): Promise<Stored> {
  return cluster.settled(object, (stored) =>
    expect(said(listenerOf(stored, name)), name).toMatchObject(conditions),
  );
}

async function counts(sets: number): Promise<void> {
  await cluster.settled(shared, ({ status }) => expect(status?.attachedListenerSets ?? 0).toBe(sets));
}

async function parentsOf(route: Named): Promise<readonly ParentStatus[]> {
  return (await cluster.get(route)).status?.parents ?? [];
}

async function accepts(route: Named, ...expected: readonly string[]): Promise<void> {
  await eventually(async () => {
    const parents = await parentsOf(route);
    expect(parents.map((parent) => said(parent)["Accepted"])).toEqual(expected);
  });
}

/** Makes a change and waits until the condition says something else; its time must move, and only then. */
async function turns(
  object: Named,
  find: (stored: Stored) => Condition,
  expected: string,
  change: () => Promise<void>,
): Promise<void> {
  const before = find(await cluster.get(object));
  // Times have whole seconds.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  await change();
  const stored = await cluster.settled(object, (newest) => {
    const { status, reason } = find(newest);
    expect(`${status}/${reason}`).toBe(expected);
  });
  const moved = (find(stored).lastTransitionTime ?? "") > (before.lastTransitionTime ?? "");
  expect(moved, `lastTransitionTime after ${before.status} → ${expected}`).toBe(
    find(stored).status !== before.status,
  );
}

describe("GatewayClass", () => {
  const other = (name: string, spec: object): Named =>
    ({ apiVersion: GATEWAY_API, kind: "GatewayClass", metadata: { name }, spec }) as Named;

  test("of ours: accepted, its version supported, its features told in order", async () => {
    const { status } = await says(other("mergeway", {}), {
      Accepted: "True/Accepted",
      SupportedVersion: "True/SupportedVersion",
    });
    const names = status?.supportedFeatures?.map(({ name }) => name) ?? [];
    expect(names).toContain("ListenerSet");
    expect(names).toEqual([...names].sort());
  });

  test("of others: as the CRD has made it", async () => {
    const foreign = other("foreign", { controllerName: "example.com/other" });
    const broken = other("broken", {
      controllerName: CONTROLLER,
      parametersRef: { group: "mergeway.dev", kind: "GatewayParameters", name: "later", namespace: "infra" },
    });
    await cluster.apply(foreign, broken);
    await turns(
      broken,
      ({ status }) => conditionOf(status, "Accepted"),
      "False/InvalidParameters",
      async () => {},
    );
    const accepted = ({ status }: Stored): Condition => conditionOf(status, "Accepted");
    await turns(broken, accepted, "True/Accepted", () => cluster.apply(parameters("later")));
    await turns(broken, accepted, "False/InvalidParameters", () => cluster.remove(parameters("later")));
    expect(said((await cluster.get(foreign)).status)).toEqual({ Accepted: "Unknown/Pending" });
    await cluster.remove(foreign, broken);
  });
});

function parameters(name: string): Named {
  const metadata = { name, namespace: "infra" };
  return { apiVersion: "mergeway.dev/v1alpha1", kind: "GatewayParameters", metadata, spec: {} } as Named;
}

describe("handshake", () => {
  test.each([
    ["is not specified", {}, NOT_ALLOWED, NOT_ALLOWED],
    ["from None", { allowedListeners: { namespaces: { from: "None" } } }, NOT_ALLOWED, NOT_ALLOWED],
    ["from Same", { allowedListeners: { namespaces: { from: "Same" } } }, ACCEPTED, NOT_ALLOWED],
    ["from All", { allowedListeners: { namespaces: { from: "All" } } }, ACCEPTED, ACCEPTED],
  ])("allowedListeners %s (seed 000, Gateway & ListenerSet Handshake)", async (_title, spec, near, far) => {
    const { allowedListeners: _, ...closed } = (shared as unknown as { spec: Record<string, unknown> }).spec;
    const changed = { ...shared, spec: { ...closed, ...spec } } as Named;
    await ok(cluster.bed.kubectl(["replace", "-f", "-"], JSON.stringify(changed)));
    const [own, distant] = [
      set("infra", "own", http("web", "a.example.com")),
      set("team-a", "far", http("web", "b.example.com")),
    ];
    await cluster.apply(own, distant);
    await says(own, near);
    await says(distant, far);
    await counts([near, far].filter((each) => each === ACCEPTED).length);
    await cluster.apply(shared);
  });

  test("a namespace whose label comes and goes: True, False, True, and its time each time (seed 000, Selector)", async () => {
    const own = set("team-b", "own", http("web", "a.example.com"));
    await cluster.apply(own);
    await says(own, ACCEPTED);
    await counts(1);
    const accepted = ({ status }: Stored): Condition => conditionOf(status, "Accepted");
    await turns(own, accepted, "False/NotAllowed", () => cluster.apply(namespace("team-b", "no")));
    await says(own, NOT_ALLOWED);
    await counts(0);
    await turns(own, accepted, "True/Accepted", () => cluster.apply(namespace("team-b", "yes")));
    await counts(1);
  });

  test("a spec that changes and a condition that does not: its generation moves, its time does not", async () => {
    const own = set("team-a", "own", http("web", "a.example.com"));
    await cluster.apply(own);
    await says(own, ACCEPTED);
    for (const find of [
      ({ status }: Stored): Condition => conditionOf(status, "Accepted"),
      (stored: Stored): Condition => conditionOf(listenerOf(stored, "web"), "Conflicted"),
    ]) {
      const hostname = `${Math.random().toString(36).slice(2)}.example.com`;
      const before = find(await cluster.get(own));
      await turns(own, find, `${before.status}/${before.reason}`, () =>
        cluster.apply(set("team-a", "own", http("web", hostname))),
      );
      const after = find(await cluster.get(own));
      expect(after.observedGeneration).toBe((before.observedGeneration ?? 0) + 1);
    }
  });

  test("a Gateway that is not accepted: its sets say ParentNotAccepted, its addresses go and come (seed 000, ListenerSet Conditions)", async () => {
    const own = set("team-a", "own", http("web", "a.example.com"));
    await cluster.apply(own);
    await says(own, ACCEPTED);
    const reference = { group: "mergeway.dev", kind: "GatewayParameters", name: "missing" };
    await cluster.apply(sharedWith({ infrastructure: { parametersRef: reference } }));
    await says(own, { Accepted: "False/ParentNotAccepted", Programmed: "False/ParentNotAccepted" });
    await cluster.settled(shared, ({ status }) => {
      expect(said(status)).toEqual({ Accepted: "False/InvalidParameters", Programmed: "False/Invalid" });
      expect(status?.addresses ?? []).toEqual([]);
      expect(status?.attachedListenerSets ?? 0).toBe(0);
    });
    await cluster.apply(parameters("missing"));
    await says(own, ACCEPTED);
    address = await cluster.addressOf(shared);
    await cluster.patch(shared, { spec: { infrastructure: null } });
    await cluster.remove(parameters("missing"));
    await says(shared, ACCEPTED);
  });

  test("a set that goes to another Gateway: the one counts it no more and stops serving it, the other begins", async () => {
    const second: Place = { namespace: "infra", name: "second" };
    const other = gateway(second, {
      allowedListeners: { namespaces: { from: "All" } },
      listeners: [http("web", "second.example.com")],
    });
    const route = httpRoute(
      { namespace: "team-a", name: "mover" },
      { parentRefs: [{ kind: "ListenerSet", name: "mover" }] },
    );
    const mover = (parent: Place): Named =>
      listenerSet({ namespace: "team-a", name: "mover" }, parent, [http("web", "mover.example.com")]);
    await cluster.apply(other, mover(SHARED), route);
    const elsewhere = await cluster.addressOf(other);
    await cluster.answers({ url: "http://mover.example.com/", address });
    await counts(1);
    await cluster.apply(mover(second));
    await cluster.answers({ url: "http://mover.example.com/", address: elsewhere });
    await cluster.answers({ url: "http://mover.example.com/", address }, 404);
    await says(mover(second), ACCEPTED);
    await counts(0);
    await cluster.settled(other, ({ status }) => expect(status?.attachedListenerSets).toBe(1));
    await cluster.remove(other);
    await says(mover(second), { Accepted: "False/ParentNotAccepted", Programmed: "False/ParentNotAccepted" });
  });
});

describe("conflicts", () => {
  interface Case {
    readonly kind: "HostnameConflict" | "ProtocolConflict";
    readonly against: "Gateway" | "ListenerSet";
    readonly spare: boolean;
  }
  const cases: readonly Case[] = (["ProtocolConflict", "HostnameConflict"] as const).flatMap((kind) =>
    (["Gateway", "ListenerSet"] as const).flatMap((against) =>
      [false, true].map((spare) => ({ kind, against, spare })),
    ),
  );

  test.each(cases)(
    "$kind with a $against, other entries valid: $spare (seed 000, Conformance Details; seed 004, Per-entry conditions)",
    async ({ kind, against, spare }) => {
      const port = against === "Gateway" ? 8080 : 9090;
      const hostname = against === "Gateway" ? "gw.example.com" : "wanted.example.com";
      const holder = set("team-b", "holder", http("held", "wanted.example.com", 9090));
      if (against === "ListenerSet") {
        await cluster.apply(holder);
        await says(holder, ACCEPTED);
        // Creation times have whole seconds.
        await new Promise((resolve) => setTimeout(resolve, 1_100));
      }
      const wanted =
        kind === "HostnameConflict"
          ? { ...http("ls", hostname, port) }
          : { name: "ls", port, protocol: "TCP", allowedRoutes: { kinds: [{ kind: "TCPRoute" }] } };
      const loser = set("team-a", "loser", wanted, ...(spare ? [http("spare", "spare.example.com")] : []));
      const counted = httpRoute(
        { namespace: "team-a", name: "counted" },
        { parentRefs: [{ kind: "ListenerSet", name: "loser", ...(spare ? { sectionName: "spare" } : {}) }] },
      );
      await cluster.apply(loser, counted);
      const stored = await says(loser, spare ? ACCEPTED : NOT_VALID);
      expect(said(listenerOf(stored, "ls"))).toMatchObject({
        Accepted: `False/${kind}`,
        Programmed: `False/${kind}`,
        Conflicted: `True/${kind}`,
      });
      expect(JSON.stringify(stored.status)).not.toMatch(/team-b|holder/);
      if (spare) await entrySays(loser, "spare", ALL_WELL);
      if (against === "ListenerSet") await entrySays(holder, "held", ALL_WELL);
      await counts((against === "ListenerSet" ? 1 : 0) + (spare ? 1 : 0));
      const { status } = await cluster.get(shared);
      expect(said(status)).toEqual(ACCEPTED);
      for (const listener of status?.listeners ?? []) expect(said(listener)).toEqual(ALL_WELL);
      expect(status?.listeners?.map(({ name }) => name)).toEqual(["gw-80", "gw-8080"]);
    },
  );

  test("the holder goes: Conflicted turns False, and the route that waited is served (seed 000, Listener and ListenerSet Conflicts)", async () => {
    const holder = set("team-b", "holder", http("held", "wanted.example.com"));
    const next = set("team-a", "next", http("web", "wanted.example.com"));
    const waiting = httpRoute(
      { namespace: "team-a", name: "waiting" },
      { parentRefs: [{ kind: "ListenerSet", name: "next" }] },
    );
    await cluster.apply(holder);
    await says(holder, ACCEPTED);
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await cluster.apply(next, waiting);
    await says(next, NOT_VALID);
    // A route of a conflicted entry is counted (seed 004, AttachedRoutes).
    await cluster.settled(next, (stored) => expect(listenerOf(stored, "web").attachedRoutes).toBe(1));
    const conflicted = (stored: Stored): Condition => conditionOf(listenerOf(stored, "web"), "Conflicted");
    await turns(next, conflicted, "False/NoConflicts", () => cluster.remove(holder));
    await says(next, ACCEPTED);
    await cluster.answers({ url: "http://wanted.example.com/", address });
  });

  test("entries beyond the limit are refused with TooManyListeners (seed 000, ListenerConditions Within a ListenerSet)", async () => {
    const entries = Array.from({ length: MAX_LISTENERS }, (_, at) => http(`l-${at}`, `l-${at}.example.com`));
    const many = set("team-a", "many", ...entries);
    await cluster.apply(many);
    const stored = await says(many, ACCEPTED);
    const refused = (stored.status?.listeners ?? []).filter(
      (listener) => said(listener)["Accepted"] === "False/TooManyListeners",
    );
    // Two of the Gateway's own come first.
    expect(refused.map(({ name }) => name)).toEqual(["l-10", "l-11"]);
  });
});

describe("references", () => {
  const grant = (kind: string, from: string): Named =>
    ({
      apiVersion: "gateway.networking.k8s.io/v1beta1",
      kind: "ReferenceGrant",
      metadata: { name: "certificates", namespace: "certs" },
      spec: {
        from: [{ group: "gateway.networking.k8s.io", kind, namespace: from }],
        to: [{ group: "", kind: "Secret" }],
      },
    }) as Named;
  const resolved = (stored: Stored): Condition => conditionOf(listenerOf(stored, "safe"), "ResolvedRefs");

  test("a grant that is missing, given, and taken away (seed 000, ReferenceGrant Semantics; seed 004, ReferenceGrant scoping)", async () => {
    const own = set("team-a", "own", tls("a.example.com", 8443, { name: "wild", namespace: "certs" }));
    await cluster.apply(own);
    await entrySays(own, "safe", { ResolvedRefs: "False/RefNotPermitted", Conflicted: "False/NoConflicts" });
    await says(own, NOT_VALID);
    await counts(0);
    // What the Gateway may read is not its sets' to read.
    await cluster.apply(grant("Gateway", "infra"), grant("Gateway", "team-a"));
    await entrySays(own, "safe", { ResolvedRefs: "False/RefNotPermitted" });
    await turns(own, resolved, "True/ResolvedRefs", () => cluster.apply(grant("ListenerSet", "team-a")));
    await says(own, ACCEPTED);
    await entrySays(own, "safe", ALL_WELL);
    await counts(1);
    await turns(own, resolved, "False/RefNotPermitted", () => cluster.remove(grant("", "")));
    await says(own, NOT_VALID);
    await counts(0);
  });

  test("a certificate that is missing, no certificate, and good; with its HTTPS (seed 004, InvalidCertificateRef)", async () => {
    const place: Place = { namespace: "team-a", name: "own" };
    const own = set(
      "team-a",
      "own",
      tls("a.example.com", 8443, { name: "own" }),
      http("plain", "a.example.com"),
    );
    const route = httpRoute(place, { parentRefs: [{ kind: "ListenerSet", name: "own" }] });
    await cluster.apply(own, route);
    await entrySays(own, "safe", {
      ResolvedRefs: "False/InvalidCertificateRef",
      Programmed: "False/Invalid",
    });
    // One bad entry of two takes down itself alone.
    await says(own, ACCEPTED);
    const opaque = { apiVersion: "v1", kind: "Secret", metadata: place } as Named;
    await cluster.apply({ ...opaque, stringData: { "tls.crt": "nonsense" } });
    await entrySays(own, "safe", { ResolvedRefs: "False/InvalidCertificateRef" });
    await cluster.remove(opaque);
    await turns(own, resolved, "True/ResolvedRefs", () => cluster.apply(tlsSecret(place, certificate)));
    await entrySays(own, "safe", ALL_WELL);
    await cluster.answers({ url: "https://a.example.com:8443/", address, authority: certificate.cert });
    await turns(own, resolved, "False/InvalidCertificateRef", () => cluster.remove(opaque));
    await entrySays(own, "plain", ALL_WELL);
  });
});

describe("routes", () => {
  const own = set(
    "team-a",
    "own",
    http("near", "near.example.com"),
    {
      ...http("open", "open.example.com"),
      allowedRoutes: { namespaces: { from: "Selector", selector: { matchLabels: { listeners: "yes" } } } },
    },
    { ...http("grpc", "grpc.example.com"), allowedRoutes: { kinds: [{ kind: "GRPCRoute" }] } },
  );
  const to = (home: string, name: string, section: string): Named =>
    httpRoute(
      { namespace: home, name },
      { parentRefs: [{ kind: "ListenerSet", name: "own", namespace: "team-a", sectionName: section }] },
    );

  test("namespaces and kinds that a listener allows, and how many it counts (seed 000, conformance: routes)", async () => {
    const routes = [
      to("team-a", "near", "near"),
      to("team-b", "far", "near"),
      to("team-b", "open", "open"),
      to("infra", "unlabelled", "open"),
      to("team-a", "kind", "grpc"),
    ] as const;
    await cluster.apply(own, ...routes);
    await accepts(routes[0], "True/Accepted");
    await accepts(routes[1], "False/NotAllowedByListeners");
    await accepts(routes[2], "True/Accepted");
    await accepts(routes[3], "False/NotAllowedByListeners");
    await accepts(routes[4], "False/NotAllowedByListeners");
    const attached = (): Promise<readonly number[]> =>
      cluster
        .get(own)
        .then(({ status }) => (status?.listeners ?? []).map(({ attachedRoutes }) => attachedRoutes));
    await eventually(async () => expect(await attached()).toEqual([1, 1, 0]));
    const kinds = listenerOf(await cluster.get(own), "grpc").supportedKinds.map(({ kind }) => kind);
    expect(kinds).toEqual(["GRPCRoute"]);
    await cluster.remove(routes[2]);
    await eventually(async () => expect(await attached()).toEqual([1, 0, 0]));
    // A set that is refused as a whole belongs to no Gateway: nothing is attached (seed 004, AttachedRoutes).
    await cluster.apply(namespace("team-a", "no"));
    await eventually(async () => expect(await attached()).toEqual([0, 0, 0]));
    await cluster.apply(namespace("team-a", "yes"));
    await eventually(async () => expect(await attached()).toEqual([1, 0, 0]));
  });

  test("each parent is judged by itself, copied as it was given, and pruned when it is named no more (seed 000, Summary of Attachments)", async () => {
    const both = { name: "own", kind: "ListenerSet", group: "gateway.networking.k8s.io" };
    const parentRefs = [
      { ...both, sectionName: "near" },
      {
        name: "shared",
        namespace: "infra",
        kind: "Gateway",
        group: "gateway.networking.k8s.io",
        sectionName: "near",
      },
      { ...both, sectionName: "open", port: 80 },
    ];
    const place: Place = { namespace: "team-a", name: "dual" };
    await cluster.apply(own, httpRoute(place, { parentRefs }));
    const route = httpRoute(place, {});
    await accepts(route, "True/Accepted", "False/NoMatchingParent", "True/Accepted");
    expect((await parentsOf(route)).map(({ parentRef }) => parentRef)).toEqual(parentRefs);
    for (const { controllerName } of await parentsOf(route)) expect(controllerName).toBe(CONTROLLER);
    await cluster.apply(httpRoute(place, { parentRefs: parentRefs.slice(0, 1) }));
    await accepts(route, "True/Accepted");
    expect(conditionOf((await parentsOf(route))[0], "Accepted").observedGeneration).toBe(2);
    await cluster.remove(own);
    await eventually(async () => expect(await parentsOf(route)).toEqual([]));
  });

  test("what other controllers have written stays as it is, on routes, sets and Gateways (never fighting others)", async () => {
    const route = to("team-a", "near", "near");
    await cluster.apply(own, route);
    await accepts(route, "True/Accepted");
    await says(own, ACCEPTED);
    const foreign: Condition = {
      type: "example.com/Foreign",
      status: "True",
      reason: "Seeded",
      message: "",
      observedGeneration: 1,
      lastTransitionTime: "2026-01-02T03:04:05Z",
    };
    const elsewhere = {
      parentRef: { group: "gateway.networking.k8s.io", kind: "Gateway", name: "elsewhere" },
      controllerName: "example.com/other",
      conditions: [foreign],
    };
    const add = async (object: Named, status: (now: Stored) => object): Promise<void> =>
      cluster.patch(object, { status: status(await cluster.get(object)) }, "--subresource=status");
    await add(route, ({ status }) => ({ parents: [elsewhere, ...(status?.parents ?? [])] }));
    await add(own, ({ status }) => ({ conditions: [...(status?.conditions ?? []), foreign] }));
    await add(shared, ({ status }) => ({ conditions: [...(status?.conditions ?? []), foreign] }));
    await cluster.patch(route, { spec: { hostnames: ["near.example.com"] } });
    await cluster.patch(own, { spec: { listeners: [http("near", "near.example.com")] } });
    await cluster.apply(sharedWith({ listeners: [http("gw-80", "gw.example.com")] }));
    await eventually(async () => {
      const parents = await parentsOf(route);
      expect(parents).toHaveLength(2);
      expect(parents[0]).toEqual(elsewhere);
      expect(conditionOf(parents[1], "Accepted").observedGeneration).toBe(2);
    });
    const kept = async (object: Named, own: number): Promise<void> =>
      void (await eventually(async () => {
        const { status, metadata } = await cluster.get(object);
        expect(conditionOf(status, "example.com/Foreign")).toEqual(foreign);
        expect(conditionOf(status, "Accepted").observedGeneration).toBe(metadata.generation);
        expect(status?.listeners).toHaveLength(own);
      }));
    await kept(own, 1);
    await kept(shared, 1);
    await add(shared, ({ status }) => ({
      conditions: (status?.conditions ?? []).filter(({ type }) => type !== foreign.type),
    }));
    await cluster.apply(shared);
    await says(shared, ACCEPTED);
    await cluster.remove(own);
    await eventually(async () => expect(await parentsOf(route)).toEqual([elsewhere]));
  });
});
