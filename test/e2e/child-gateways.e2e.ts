/**
 * Child Gateways (GEP-1713 (provisional)): by annotations, which the released CRD takes, and by the
 * fields `attachTo` and `allowedChildren`, which need a CRD that has them: the released one with
 * both fields laid over it. Every test names the section of that GEP that it is about.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withChildGateways } from "../../src/api/admission/child-gateways.ts";
import type { Schema } from "../../src/api/admission/schema/schema.ts";
import { ok } from "../../tools/cluster/bed.ts";
import { parseManifests } from "../../tools/cluster/chart.ts";
import { builtFile } from "../../tools/programs/build.ts";
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
  type Stored,
  said,
} from "./support/served-cluster.ts";

const PARENT: Place = { namespace: "infra", name: "parent" };
const CHILD: Place = { namespace: "infra", name: "child" };

/**
 * How a parent takes children and a child names its parent: the one thing in which both generations
 * differ.
 */
interface Words {
  parent(from: "Same" | "All" | undefined, spec?: object): Named;
  child(place: Place, listeners: readonly object[], spec?: object): Named;
}

const FRONT = [http("front", "front.example.com")];

const byAnnotation: Words = {
  parent: (from, spec = {}) =>
    gateway(
      PARENT,
      { listeners: FRONT, ...spec },
      from === undefined ? {} : { "mergeway.dev/allowed-children": from },
    ),
  child: (place, listeners, spec = {}) =>
    gateway(place, { listeners, ...spec }, { "mergeway.dev/attach-to": "infra/parent" }),
};

const byField: Words = {
  parent: (from, spec = {}) => {
    const infrastructure = from === undefined ? {} : { allowedChildren: { namespaces: { from } } };
    return gateway(PARENT, { listeners: FRONT, infrastructure, ...spec });
  },
  child: (place, listeners, spec = {}) => {
    const attachTo = { group: "gateway.networking.k8s.io", kind: "Gateway", ...PARENT };
    return gateway(place, { listeners, infrastructure: { attachTo }, ...spec });
  },
};

let cluster: ServedCluster;

beforeAll(async () => {
  cluster = await ServedCluster.up("e2e-child");
  await cluster.namespaceWithBackend("infra");
  await cluster.namespaceWithBackend("team-a");
});

afterAll(async () => {
  await cluster?.down();
});

/** The released CRD with the two fields. */
async function installFields(): Promise<void> {
  const file = builtFile("crds", "standard/gateway.networking.k8s.io_gateways.yaml");
  const [crd] = parseManifests(readFileSync(file, "utf8")) as unknown as readonly (Named & {
    readonly spec: { readonly versions: readonly Version[] };
  })[];
  if (crd === undefined) throw new Error("there is no CRD of Gateways");
  const versions = crd.spec.versions.map(({ schema, ...version }) => ({
    ...version,
    schema: { openAPIV3Schema: withChildGateways(schema.openAPIV3Schema) },
  }));
  const patched = JSON.stringify({ ...crd, spec: { ...crd.spec, versions } });
  await ok(cluster.bed.kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], patched));
}

interface Version {
  readonly schema: { readonly openAPIV3Schema: Schema };
}

const GENERATIONS: readonly (readonly [string, Words, () => Promise<void>])[] = [
  ["by annotations", byAnnotation, async () => {}],
  ["by fields", byField, installFields],
];

describe.each(GENERATIONS)("%s", (_title, words, prepare) => {
  const own = words.child(CHILD, [http("web", "child.example.com"), http("high", "child.example.com", 8080)]);
  const ownRoute = httpRoute(CHILD, { parentRefs: [{ name: "child" }] });
  const parent = words.parent("Same");
  let address: string;

  beforeAll(async () => {
    await prepare();
    await cluster.apply(
      parent,
      httpRoute(PARENT, { parentRefs: [{ name: "parent" }], hostnames: ["front.example.com"] }),
    );
    address = await cluster.addressOf(parent);
  });

  afterAll(async () => {
    const gateways = ["delete", "gateways,httproutes,listenersets", "--all", "-n"];
    for (const namespace of ["infra", "team-a"]) await ok(cluster.bed.kubectl([...gateways, namespace]));
    await eventually(async () => expect(await cluster.infrastructureIn("infra")).toEqual([]));
  });

  test("a child's listeners are merged into the parent's and served at its address (Listeners; Route Attaching)", async () => {
    await cluster.apply(own, ownRoute);
    await cluster.settled(own, (child) => {
      expect(said(child.status)).toEqual(ACCEPTED);
      expect(said(listenerOf(child, "web"))).toEqual(ALL_WELL);
      expect(said(listenerOf(child, "high"))).toEqual(ALL_WELL);
      expect(listenerOf(child, "high").attachedRoutes).toBe(1);
    });
    await cluster.answers({ url: "http://child.example.com/", address });
    await cluster.answers({ url: "http://child.example.com:8080/", address });
    await cluster.answers({ url: "http://front.example.com/", address });
    await cluster.answers({ url: "http://front.example.com:8080/", address }, 404);
  });

  test("the child's addresses are the parent's (Addresses)", async () => {
    const both = await Promise.all([cluster.get(own), cluster.get(parent)]);
    expect(both[0].status?.addresses).toEqual([{ type: "IPAddress", value: address }]);
    expect(both[0].status?.addresses).toEqual(both[1].status?.addresses);
  });

  test("each lists its own listeners alone (Listener Conditions)", async () => {
    const names = (stored: Stored): readonly string[] =>
      (stored.status?.listeners ?? []).map(({ name }) => name);
    expect(names(await cluster.get(own))).toEqual(["web", "high"]);
    expect(names(await cluster.get(parent))).toEqual(["front"]);
  });

  test("a child has no infrastructure of its own (Validation)", async () => {
    expect(await cluster.infrastructureIn("infra")).toEqual([
      "deployment.apps/parent-mergeway",
      "service/parent-mergeway",
      "serviceaccount/parent-mergeway",
    ]);
  });

  test("a route to the child cannot name a listener of the parent (Route Attaching)", async () => {
    const route = httpRoute(
      { namespace: "infra", name: "beyond" },
      { parentRefs: [{ name: "child", sectionName: "front" }] },
    );
    await cluster.apply(route);
    await eventually(async () => {
      const [entry] = (await cluster.get(route)).status?.parents ?? [];
      expect(said(entry)["Accepted"]).toBe("False/NoMatchingParent");
      expect(entry?.parentRef).toMatchObject({ name: "child", sectionName: "front" });
    });
    await cluster.remove(route);
  });

  test("a listener of one child is not valid: parent and child say so, the sibling does not (Gateway Conditions)", async () => {
    const sibling = words.child({ namespace: "infra", name: "sibling" }, [
      http("web", "sibling.example.com"),
      http("taken", "child.example.com"),
    ]);
    await cluster.apply(sibling);
    await cluster.settled(sibling, (stored) => {
      expect(said(stored.status)["Accepted"]).toBe("True/ListenersNotValid");
      expect(said(listenerOf(stored, "web"))).toEqual(ALL_WELL);
      expect(said(listenerOf(stored, "taken"))).toMatchObject({
        Accepted: "False/HostnameConflict",
        Conflicted: "True/HostnameConflict",
      });
    });
    const told = await cluster.settled(parent, ({ status }) =>
      expect(said(status)["Accepted"]).toBe("True/ListenersNotValid"),
    );
    expect(said(told.status)["Programmed"]).toBe("True/Programmed");
    expect(said((await cluster.get(own)).status)).toEqual(ACCEPTED);
    await cluster.remove(sibling);
    await cluster.settled(parent, ({ status }) => expect(said(status)).toEqual(ACCEPTED));
  });

  test("a child of another namespace is not allowed, until the parent says so (Validation)", async () => {
    const foreign = words.child({ namespace: "team-a", name: "foreign" }, [
      http("web", "foreign.example.com"),
    ]);
    const route = httpRoute({ namespace: "team-a", name: "foreign" }, { parentRefs: [{ name: "foreign" }] });
    await cluster.apply(foreign, route);
    await cluster.settled(foreign, (stored) => {
      expect(said(stored.status)).toEqual({ Accepted: "False/NotAllowed", Programmed: "False/Invalid" });
      expect(stored.status?.addresses ?? []).toEqual([]);
      expect(listenerOf(stored, "web").attachedRoutes).toBe(0);
    });
    await cluster.answers({ url: "http://foreign.example.com/", address }, 404);
    await cluster.apply(words.parent("All"));
    await cluster.settled(foreign, (stored) => {
      expect(said(stored.status)).toEqual(ACCEPTED);
      expect(stored.status?.addresses).toEqual([{ type: "IPAddress", value: address }]);
    });
    await cluster.answers({ url: "http://foreign.example.com/", address });
    await cluster.apply(words.parent("Same"));
    await cluster.settled(foreign, (stored) => {
      expect(said(stored.status)["Accepted"]).toBe("False/NotAllowed");
      expect(stored.status?.addresses ?? []).toEqual([]);
    });
    await cluster.answers({ url: "http://foreign.example.com/", address }, 404);
    expect(await cluster.infrastructureIn("team-a")).toEqual([]);
    await cluster.remove(foreign, route);
  });

  test("a child cannot ask for addresses or have another class (Validation)", async () => {
    const child = (spec: object): Named =>
      words.child({ namespace: "infra", name: "odd" }, [http("web", "odd.example.com")], spec);
    const refused = async (why: RegExp): Promise<void> => {
      await cluster.settled(child({}), (stored) => {
        expect(said(stored.status)).toEqual({ Accepted: "False/Invalid", Programmed: "False/Invalid" });
        expect(conditionOf(stored.status, "Accepted").message).toMatch(why);
      });
    };
    await cluster.apply(child({ addresses: [{ type: "IPAddress", value: "192.0.2.1" }] }));
    await refused(/spec\.addresses/);
    await cluster.remove(child({}));
    const other = { apiVersion: "gateway.networking.k8s.io/v1", kind: "GatewayClass" };
    const spec = { controllerName: "mergeway.dev/controller" };
    await cluster.apply(
      { ...other, metadata: { name: "second" }, spec },
      child({ gatewayClassName: "second" }),
    );
    await refused(/same gatewayClassName/);
    await cluster.remove(child({}));
  });

  test("a child takes neither children nor sets of its own (Validation: one tier)", async () => {
    const set = listenerSet({ namespace: "infra", name: "below" }, CHILD, [http("web", "below.example.com")]);
    await cluster.apply(set);
    await cluster.settled(set, ({ status }) => expect(said(status)["Accepted"]).toBe("False/NotAllowed"));
    await cluster.remove(set);
  });

  test("the parent goes, and with it what its child was given; it comes again, and so does that", async () => {
    await cluster.remove(parent);
    await cluster.settled(own, (stored) => {
      expect(said(stored.status)).toEqual({
        Accepted: "False/ParentNotAccepted",
        Programmed: "False/Invalid",
      });
      expect(stored.status?.addresses ?? []).toEqual([]);
      expect(said(listenerOf(stored, "web"))["Programmed"]).toMatch(/^False\//);
    });
    await eventually(async () => expect(await cluster.infrastructureIn("infra")).toEqual([]));
    await cluster.apply(parent);
    address = await cluster.addressOf(parent);
    await cluster.settled(own, (stored) => {
      expect(said(stored.status)).toEqual(ACCEPTED);
      expect(stored.status?.addresses).toEqual([{ type: "IPAddress", value: address }]);
    });
    await cluster.answers({ url: "http://child.example.com:8080/", address });
  });

  test("a child that is let go is a Gateway like any other, with infrastructure of its own; attached again, without", async () => {
    const free = gateway(CHILD, { listeners: [http("web", "child.example.com")] });
    await ok(cluster.bed.kubectl(["replace", "-f", "-"], JSON.stringify(free)));
    const alone = await cluster.addressOf(free);
    expect(alone).not.toBe(address);
    await cluster.answers({ url: "http://child.example.com/", address: alone });
    await cluster.answers({ url: "http://child.example.com/", address }, 404);
    await ok(cluster.bed.kubectl(["replace", "-f", "-"], JSON.stringify(own)));
    await cluster.settled(own, (stored) => {
      expect(said(stored.status)).toEqual(ACCEPTED);
      expect(stored.status?.addresses).toEqual([{ type: "IPAddress", value: address }]);
    });
    await eventually(async () =>
      expect(await cluster.infrastructureIn("infra")).not.toContain("deployment.apps/child-mergeway"),
    );
    await cluster.answers({ url: "http://child.example.com/", address });
  });
});

describe("what only fields can say", () => {
  beforeAll(async () => {
    await installFields();
  });

  test("a parent may leave its listeners empty (API)", async () => {
    const parent = byField.parent("Same", { listeners: [] });
    const child = byField.child(CHILD, [http("web", "child.example.com")]);
    await cluster.apply(parent, child, httpRoute(CHILD, { parentRefs: [{ name: "child" }] }));
    await cluster.settled(child, ({ status }) => expect(said(status)).toEqual(ACCEPTED));
    const stored = await cluster.settled(parent, ({ status }) => expect(said(status)).toEqual(ACCEPTED));
    expect(stored.status?.listeners ?? []).toEqual([]);
    await cluster.answers({ url: "http://child.example.com/", address: await cluster.addressOf(parent) });
  });

  test("a child cannot bring infrastructure (Validation)", async () => {
    const attachTo = { group: "gateway.networking.k8s.io", kind: "Gateway", ...PARENT };
    const labels = { "example.com/own": "yes" };
    const child = gateway(
      { namespace: "infra", name: "odd" },
      { listeners: [http("web", "odd.example.com")], infrastructure: { attachTo, labels } },
    );
    await cluster.apply(child);
    await cluster.settled(child, ({ status }) => {
      expect(said(status)["Accepted"]).toBe("False/Invalid");
      expect(conditionOf(status, "Accepted").message).toContain("spec.infrastructure.labels");
    });
  });
});
