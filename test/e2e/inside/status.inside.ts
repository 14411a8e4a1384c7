import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Condition } from "../../../src/api/metadata.ts";
import { selfSigned } from "../../dataplanes/support/certificates.ts";
import { nextSecond } from "../../support/eventually.ts";
import { Cluster, connect, eventually, GATEWAY_API, installCrds, type Name, unique } from "./cluster.ts";
import { startController, type TestController } from "./controller.ts";

const PLATFORM = unique("e2e-platform");
const TEAM_A = unique("e2e-team-a");
const TEAM_B = unique("e2e-team-b");
const CLASS = unique("e2e-mergeway");
const OTHER_CLASS = unique("e2e-other");

function named(kind: string, namespace: string | undefined, name: string): Name {
  return { apiVersion: GATEWAY_API, kind, metadata: { name, namespace } };
}

const gatewayClass = named("GatewayClass", undefined, CLASS);
const gateway = named("Gateway", PLATFORM, "shared");

function gatewayWith(listeners: readonly unknown[], name = "shared"): Name & Record<string, unknown> {
  return {
    ...named("Gateway", PLATFORM, name),
    spec: { gatewayClassName: CLASS, listeners, allowedListeners: { namespaces: { from: "All" } } },
  };
}

function set(namespace: string, name: string, listeners: readonly unknown[]): Name & Record<string, unknown> {
  const parentRef = { name: "shared", namespace: PLATFORM };
  return { ...named("ListenerSet", namespace, name), spec: { parentRef, listeners } };
}

const http = (name: string, hostname: string): unknown => ({ name, hostname, port: 80, protocol: "HTTP" });

interface Entry {
  readonly name?: string;
  readonly controllerName?: string;
  readonly conditions: readonly Condition[];
}

function conditionOf(holder: unknown, type: string): Condition | undefined {
  return ((holder as Entry | undefined)?.conditions ?? []).find((condition) => condition.type === type);
}

function listener(status: Readonly<Record<string, unknown>>, name: string): Entry | undefined {
  return (status["listeners"] as readonly Entry[] | undefined)?.find((each) => each.name === name);
}

let cluster: Cluster;
let controller: TestController;
let resign: () => Promise<void>;

async function clean(): Promise<void> {
  await cluster.delete(gatewayClass);
  await cluster.delete(named("GatewayClass", undefined, OTHER_CLASS));
  for (const name of [PLATFORM, TEAM_A, TEAM_B]) {
    await cluster.delete({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
}

beforeAll(async () => {
  cluster = new Cluster(await connect());
  await installCrds("standard");
  for (const name of [PLATFORM, TEAM_A, TEAM_B]) {
    await cluster.create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  controller = startController({ client: await connect() });
  await controller.synced;
  resign = controller.lead();
  await cluster.create({ ...gatewayClass, spec: { controllerName: "mergeway.dev/controller" } });
  await cluster.create({
    ...named("GatewayClass", undefined, OTHER_CLASS),
    spec: { controllerName: "other.example/controller" },
  });
  await cluster.create(gatewayWith([http("http", "www.example.com")]));
});

afterAll(async () => {
  await resign();
  await controller.stop();
  await clean();
});

async function accepted(object: Name): Promise<Readonly<Record<string, unknown>>> {
  return eventually(async () => {
    const whole = await cluster.get(object);
    const status = (whole["status"] ?? {}) as Readonly<Record<string, unknown>>;
    expect(conditionOf(status, "Accepted")).toMatchObject({
      status: "True",
      observedGeneration: whole.metadata.generation,
    });
    return status;
  });
}

/**
 * Changes a status as another program would, which may collide with the controller's own writes.
 */
async function seed(
  object: Name,
  change: (status: Readonly<Record<string, unknown>>) => unknown,
): Promise<void> {
  await eventually(async () => {
    const { metadata, status = {} } = (await cluster.get(object)) as Awaited<ReturnType<Cluster["get"]>>;
    const changed = change(status as Readonly<Record<string, unknown>>);
    await cluster.patch(
      object,
      { metadata: { resourceVersion: metadata.resourceVersion }, status: changed },
      "status",
    );
  });
}

const FOREIGN: Condition = {
  type: "example.com/Foreign",
  status: "True",
  reason: "Seeded",
  message: "",
  observedGeneration: 1,
  lastTransitionTime: "2026-01-02T03:04:05Z",
};

describe("statuses in a cluster", () => {
  test("a class says what is supported", async () => {
    const status = await accepted(gatewayClass);
    expect(conditionOf(status, "SupportedVersion")).toMatchObject({
      status: "True",
      reason: "SupportedVersion",
    });
    expect(status["supportedFeatures"]).toEqual([
      { name: "Gateway" },
      { name: "HTTPRoute" },
      { name: "ListenerSet" },
    ]);
    expect(
      conditionOf(await cluster.statusOf(named("GatewayClass", undefined, OTHER_CLASS)), "Accepted"),
    ).toMatchObject({ status: "Unknown" });
  });

  test("foreign conditions of a Gateway and of its listeners survive our writes", async () => {
    const before = await accepted(gateway);
    expect(conditionOf(listener(before, "http"), "Conflicted")).toMatchObject({ status: "False" });
    await seed(gateway, (status) => ({
      conditions: [...(status["conditions"] as Condition[]), FOREIGN],
      listeners: (status["listeners"] as Entry[]).map((each) => ({
        ...each,
        conditions: [...each.conditions, FOREIGN],
      })),
    }));
    await cluster.patch(gateway, {
      spec: gatewayWith([http("http", "second.example.com")])["spec"],
    });
    const after = await accepted(gateway);
    expect(conditionOf(after, FOREIGN.type)).toEqual(FOREIGN);
    expect(conditionOf(listener(after, "http"), FOREIGN.type)).toEqual(FOREIGN);
    expect(conditionOf(after, "Accepted")?.lastTransitionTime).toBe(
      conditionOf(before, "Accepted")?.lastTransitionTime,
    );
  });

  test("a conflict: the later set is told without names, the Gateway's owner with both", async () => {
    const first = set(TEAM_A, "first", [http("web", "app.example.com")]);
    const second = set(TEAM_B, "second", [http("web", "app.example.com"), http("own", "b.example.com")]);
    await cluster.create(first);
    await accepted(first);
    await nextSecond();
    await cluster.create(second);
    const status = await accepted(second);
    expect(conditionOf(listener(status, "web"), "Conflicted")).toMatchObject({
      status: "True",
      reason: "HostnameConflict",
    });
    expect(JSON.stringify(status)).not.toContain(TEAM_A);
    const eventsIn = async (namespace: string): Promise<readonly { note: string; type: string }[]> => {
      const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
      return (await cluster.client.request<{ items: { note: string; type: string }[] }>({ path })).items;
    };
    await eventually(async () => {
      const notes = (await eventsIn(PLATFORM)).map(({ note }) => note);
      expect(notes).toContainEqual(
        `listener web of ListenerSet ${TEAM_B}/second wants what listener web of ListenerSet ${TEAM_A}/first holds`,
      );
      expect((await eventsIn(TEAM_B)).length).toBeGreaterThan(0);
    });
    expect(JSON.stringify(await eventsIn(TEAM_B))).not.toContain(TEAM_A);

    await cluster.delete(first);
    await eventually(async () => {
      const later = await cluster.statusOf(second);
      expect(conditionOf(listener(later, "web"), "Conflicted")).toMatchObject({ status: "False" });
      expect((await eventsIn(PLATFORM)).map(({ note }) => note)).toContainEqual(
        `listener web of ListenerSet ${TEAM_B}/second is in conflict no longer`,
      );
    });
    await eventually(async () => expect((await cluster.statusOf(gateway))["attachedListenerSets"]).toBe(1));
    await cluster.delete(second);
  });

  test("parents of other controllers stay as they are, ours come and go", async () => {
    const route = {
      ...named("HTTPRoute", PLATFORM, "shop"),
      spec: { parentRefs: [{ name: "shared" }], hostnames: ["second.example.com"] },
    };
    await cluster.create(route);
    const parentsOf = async (): Promise<readonly Entry[]> =>
      ((await cluster.statusOf(route))["parents"] ?? []) as readonly Entry[];
    await eventually(async () => expect(await parentsOf()).toHaveLength(1));
    const foreign = {
      parentRef: { group: "gateway.networking.k8s.io", kind: "Gateway", name: "elsewhere" },
      controllerName: "other.example/controller",
      conditions: [FOREIGN],
    };
    await seed(route, (status) => ({ parents: [foreign, ...(status["parents"] as unknown[])] }));
    await cluster.patch(route, { spec: { parentRefs: [{ name: "shared", sectionName: "http" }] } });
    await eventually(async () => {
      const parents = await parentsOf();
      expect(parents).toHaveLength(2);
      expect(parents[0]).toEqual(foreign);
      expect(parents[1]).toMatchObject({ parentRef: { name: "shared", sectionName: "http" } });
      expect(conditionOf(parents[1], "Accepted")).toMatchObject({ status: "True", observedGeneration: 2 });
    });
    await cluster.patch(route, { spec: { parentRefs: [{ name: "elsewhere" }] } });
    await eventually(async () => expect(await parentsOf()).toEqual([foreign]));
    await cluster.delete(route);
  });

  test("a certificate that appears later, and one that cannot be used", async () => {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "shop", namespace: TEAM_A } };
    const shop = set(TEAM_A, "tls", [
      {
        name: "https",
        hostname: "shop.example.com",
        port: 443,
        protocol: "HTTPS",
        tls: { certificateRefs: [{ name: "shop" }] },
      },
    ]);
    await cluster.create(shop);
    const resolved = async (): Promise<Condition | undefined> =>
      conditionOf(listener(await cluster.statusOf(shop), "https"), "ResolvedRefs");
    await eventually(async () =>
      expect(await resolved()).toMatchObject({ status: "False", reason: "InvalidCertificateRef" }),
    );
    const { cert, key } = selfSigned(["shop.example.com"]);
    await cluster.create({
      ...secret,
      type: "Opaque",
      stringData: { "tls.crt": cert, "tls.key": key },
    });
    await eventually(async () => expect(await resolved()).toMatchObject({ status: "True" }));
    await cluster.patch(secret, { data: { "tls.crt": Buffer.from("nonsense").toString("base64") } });
    await eventually(async () => expect(await resolved()).toMatchObject({ status: "False" }));
    await cluster.delete(shop);
    await cluster.delete(secret);
  });

  test("a set whose Gateway never existed is not written; one whose Gateway went is corrected", async () => {
    const parentRef = { name: "short-lived", namespace: PLATFORM };
    const spec = { parentRef, listeners: [http("web", "orphan.example.com")] };
    const orphan = { ...named("ListenerSet", TEAM_A, "orphan"), spec };
    await cluster.create(orphan);
    const later = set(TEAM_A, "later", [http("web", "later.example.com")]);
    await cluster.create(later);
    await accepted(later);
    expect(conditionOf(await cluster.statusOf(orphan), "Accepted")).toMatchObject({ status: "Unknown" });
    await cluster.create(gatewayWith([http("http", "g.example.com")], "short-lived"));
    await accepted(orphan);
    await cluster.delete(named("Gateway", PLATFORM, "short-lived"));
    await eventually(async () =>
      expect(conditionOf(await cluster.statusOf(orphan), "Accepted")).toMatchObject({
        status: "False",
        reason: "ParentNotAccepted",
      }),
    );
    await cluster.delete(orphan);
    await cluster.delete(later);
  });

  test("a Gateway that goes to another class: what we wrote is taken back, what others wrote is not", async () => {
    const name = named("Gateway", PLATFORM, "wanderer");
    await cluster.create(gatewayWith([http("http", "wanderer.example.com")], "wanderer"));
    await accepted(name);
    await seed(name, (status) => ({
      addresses: [{ type: "IPAddress", value: "192.0.2.7" }],
      conditions: [...(status["conditions"] as Condition[]), FOREIGN],
    }));
    await cluster.patch(name, { spec: { gatewayClassName: OTHER_CLASS } });
    await eventually(async () => {
      const status = await cluster.statusOf(name);
      expect(conditionOf(status, "Accepted")).toMatchObject({ status: "Unknown", reason: "Pending" });
      expect(status["listeners"] ?? []).toEqual([]);
      expect(conditionOf(status, FOREIGN.type)).toEqual(FOREIGN);
    });
    await cluster.delete(name);
  });

  test("many routes at once: one write each, and one a second for the Gateway that counts them", async () => {
    const names = Array.from({ length: 200 }, (_, index) => `many-${index}`);
    const spec = { parentRefs: [{ name: "shared" }], hostnames: ["second.example.com"] };
    const before = controller.writes.length;
    const began = performance.now();
    for (let at = 0; at < names.length; at += 20) {
      const some = names.slice(at, at + 20);
      await Promise.all(some.map((name) => cluster.create({ ...named("HTTPRoute", PLATFORM, name), spec })));
    }
    await eventually(async () => {
      expect(listener(await cluster.statusOf(gateway), "http")).toMatchObject({ attachedRoutes: 200 });
      const written = controller.writes.slice(before);
      expect(new Set(written).size).toBe(201);
    });
    const written = controller.writes.slice(before);
    const seconds = (performance.now() - began) / 1000;
    expect(written.filter((key) => key.startsWith("HTTPRoute/"))).toHaveLength(200);
    // Counts alone are at most one write a second: one at once, then one in each second that
    // follows.
    expect(written.filter((key) => key.startsWith("Gateway/")).length).toBeLessThanOrEqual(1 + seconds);
    for (const name of names) await cluster.delete(named("HTTPRoute", PLATFORM, name));
    await eventually(async () =>
      expect(listener(await cluster.statusOf(gateway), "http")).toMatchObject({ attachedRoutes: 0 }),
    );
  });

  test("nothing is written when nothing changes, and a new leader writes nothing", async () => {
    await accepted(gateway);
    await resign();
    const second = startController({ client: await connect() });
    await second.synced;
    const end = second.lead();
    // The new leader has looked at everything when it has written something that came after.
    const probe = set(TEAM_A, "probe", [http("web", "probe.example.com")]);
    await cluster.create(probe);
    await accepted(probe);
    await eventually(() => expect(second.writes).toContain(`ListenerSet/${TEAM_A}/probe`));
    const others = second.writes.filter(
      (key) => key !== `ListenerSet/${TEAM_A}/probe` && key !== `Gateway/${PLATFORM}/shared`,
    );
    expect(others).toEqual([]);
    await end();
    await second.stop();
    await cluster.delete(probe);
    resign = controller.lead();
  });

  test("somebody who keeps rewriting our status is answered ever more rarely, and that is reported", async () => {
    await accepted(gateway);
    const fights = (): number =>
      controller.fights.filter((key) => key === `Gateway/${PLATFORM}/shared`).length;
    let rewritten = 0;
    while (rewritten < 100 || (fights() < 3 && rewritten < 3_000)) {
      await seed(gateway, (status) => ({
        conditions: (status["conditions"] as Condition[]).map((condition) =>
          condition.type === "Accepted" ? { ...condition, status: "False", reason: "Mine" } : condition,
        ),
      }));
      rewritten++;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(fights()).toBeGreaterThanOrEqual(3);
    expect(fights()).toBeLessThan(rewritten / 4);
    await accepted(gateway);
    const path = `/apis/events.k8s.io/v1/namespaces/${PLATFORM}/events`;
    await eventually(async () => {
      const { items } = await cluster.client.request<{ items: { reason: string }[] }>({ path });
      expect(items.map(({ reason }) => reason)).toContain("StatusContested");
    });
  });
});
