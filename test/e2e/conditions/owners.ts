import { describe, expect, test } from "vitest";
import type { Condition } from "../../../src/api/metadata.ts";
import { ok } from "../../../tools/cluster/bed.ts";
import {
  ACCEPTED,
  CONTROLLER,
  conditionOf,
  GATEWAY_API,
  gateway,
  http,
  httpRoute,
  listenerOf,
  listenerSet,
  type Named,
  type Place,
  type Stored,
  said,
} from "../support/served-cluster.ts";
import { NOT_ALLOWED, NOT_VALID, namespace, type Scene, SHARED, set, shared, sharedWith } from "./scene.ts";

export function classesAndHandshake(scene: () => Scene): void {
  describe("GatewayClass", () => {
    const other = (name: string, spec: object): Named =>
      ({ apiVersion: GATEWAY_API, kind: "GatewayClass", metadata: { name }, spec }) as Named;

    test("a class of ours is accepted, its version supported, its features listed in order", async () => {
      const { status } = await scene().says(other("mergeway", {}), {
        Accepted: "True/Accepted",
        SupportedVersion: "True/SupportedVersion",
      });
      const names = status?.supportedFeatures?.map(({ name }) => name) ?? [];
      expect(names).toContain("ListenerSet");
      expect(names).toEqual([...names].sort());
    });

    test("a class of another controller stays as the CRD has made it", async () => {
      const foreign = other("foreign", { controllerName: "example.com/other" });
      const broken = other("broken", {
        controllerName: CONTROLLER,
        parametersRef: {
          group: "mergeway.dev",
          kind: "GatewayParameters",
          name: "later",
          namespace: "infra",
        },
      });
      await scene().cluster.apply(foreign, broken);
      await scene().turns(
        broken,
        ({ status }) => conditionOf(status, "Accepted"),
        "False/InvalidParameters",
        async () => {},
      );
      const accepted = ({ status }: Stored): Condition => conditionOf(status, "Accepted");
      await scene().turns(broken, accepted, "True/Accepted", () =>
        scene().cluster.apply(parameters("later")),
      );
      await scene().turns(broken, accepted, "False/InvalidParameters", () =>
        scene().cluster.remove(parameters("later")),
      );
      expect(said((await scene().cluster.get(foreign)).status)).toEqual({ Accepted: "Unknown/Pending" });
      await scene().cluster.remove(foreign, broken);
    });
  });

  describe("handshake", () => {
    test.each([
      ["that are absent", {}, NOT_ALLOWED, NOT_ALLOWED],
      ["from None", { allowedListeners: { namespaces: { from: "None" } } }, NOT_ALLOWED, NOT_ALLOWED],
      ["from Same", { allowedListeners: { namespaces: { from: "Same" } } }, ACCEPTED, NOT_ALLOWED],
      ["from All", { allowedListeners: { namespaces: { from: "All" } } }, ACCEPTED, ACCEPTED],
    ])(
      "allowedListeners %s decide which sets are accepted (GEP-1713, Gateway & ListenerSet Handshake)",
      async (_title, spec, near, far) => {
        const { allowedListeners: _, ...closed } = (shared as unknown as { spec: Record<string, unknown> })
          .spec;
        const changed = { ...shared, spec: { ...closed, ...spec } } as Named;
        await ok(scene().cluster.bed.kubectl(["replace", "-f", "-"], JSON.stringify(changed)));
        const [own, distant] = [
          set("infra", "own", http("web", "a.example.com")),
          set("team-a", "far", http("web", "b.example.com")),
        ];
        await scene().cluster.apply(own, distant);
        await scene().says(own, near);
        await scene().says(distant, far);
        await scene().counts([near, far].filter((each) => each === ACCEPTED).length);
        await scene().cluster.apply(shared);
      },
    );

    test("a namespace whose label comes and goes turns Accepted True, False, True, each with a new time (GEP-1713, Gateway & ListenerSet Handshake)", async () => {
      const own = set("team-b", "own", http("web", "a.example.com"));
      await scene().cluster.apply(own);
      await scene().says(own, ACCEPTED);
      await scene().counts(1);
      const accepted = ({ status }: Stored): Condition => conditionOf(status, "Accepted");
      await scene().turns(own, accepted, "False/NotAllowed", () =>
        scene().cluster.apply(namespace("team-b", "no")),
      );
      await scene().says(own, NOT_ALLOWED);
      await scene().counts(0);
      await scene().turns(own, accepted, "True/Accepted", () =>
        scene().cluster.apply(namespace("team-b", "yes")),
      );
      await scene().counts(1);
    });

    test("when a spec changes and a condition does not, its generation moves and its time does not", async () => {
      const own = set("team-a", "own", http("web", "a.example.com"));
      await scene().cluster.apply(own);
      await scene().says(own, ACCEPTED);
      for (const find of [
        ({ status }: Stored): Condition => conditionOf(status, "Accepted"),
        (stored: Stored): Condition => conditionOf(listenerOf(stored, "web"), "Conflicted"),
      ]) {
        const hostname = `${Math.random().toString(36).slice(2)}.example.com`;
        const before = find(await scene().cluster.get(own));
        await scene().turns(own, find, `${before.status}/${before.reason}`, () =>
          scene().cluster.apply(set("team-a", "own", http("web", hostname))),
        );
        const after = find(await scene().cluster.get(own));
        expect(after.observedGeneration).toBe((before.observedGeneration ?? 0) + 1);
      }
    });

    test("while a Gateway is not accepted, its sets say ParentNotAccepted and it has no addresses (GEP-1713, ListenerSet Conditions)", async () => {
      const own = set("team-a", "own", http("web", "a.example.com"));
      await scene().cluster.apply(own);
      await scene().says(own, ACCEPTED);
      const reference = { group: "mergeway.dev", kind: "GatewayParameters", name: "missing" };
      await scene().cluster.apply(sharedWith({ infrastructure: { parametersRef: reference } }));
      await scene().says(own, { Accepted: "False/ParentNotAccepted", Programmed: "False/ParentNotAccepted" });
      await scene().cluster.settled(shared, ({ status }) => {
        expect(said(status)).toEqual({ Accepted: "False/InvalidParameters", Programmed: "False/Invalid" });
        expect(status?.addresses ?? []).toEqual([]);
        expect(status?.attachedListenerSets ?? 0).toBe(0);
      });
      await scene().cluster.apply(parameters("missing"));
      await scene().says(own, ACCEPTED);
      scene().address = await scene().cluster.addressOf(shared);
      await scene().cluster.patch(shared, { spec: { infrastructure: null } });
      await scene().cluster.remove(parameters("missing"));
      await scene().says(shared, ACCEPTED);
    });

    test("a Gateway none of whose own listeners is valid is accepted while a set brings one (GEP-1713, Gateway Conditions)", async () => {
      const broken = { ...http("gw-80", "gw.example.com"), protocol: "example.com/unknown" };
      const own = set("team-a", "own", http("web", "a.example.com"));
      const other = set("team-b", "other", {
        ...http("web", "b.example.com"),
        protocol: "example.com/unknown",
      });
      await scene().cluster.apply(own, other);
      await scene().says(own, ACCEPTED);
      await scene().cluster.apply(sharedWith({ listeners: [broken] }));
      await scene().says(shared, { Accepted: "True/ListenersNotValid", Programmed: "True/Programmed" });
      await scene().says(own, ACCEPTED);
      await scene().says(other, NOT_VALID);
      await scene().cluster.remove(own);
      await scene().says(shared, { Accepted: "False/ListenersNotValid", Programmed: "False/Invalid" });
      await scene().says(other, {
        Accepted: "False/ParentNotAccepted",
        Programmed: "False/ParentNotAccepted",
      });
      await scene().cluster.apply(shared);
      await scene().says(shared, ACCEPTED);
      scene().address = await scene().cluster.addressOf(shared);
      await scene().says(other, NOT_VALID);
    });

    test("when a set goes to another Gateway, the first no longer counts and serves it, and the second does", async () => {
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
      await scene().cluster.apply(other, mover(SHARED), route);
      const elsewhere = await scene().cluster.addressOf(other);
      await scene().cluster.answers({ url: "http://mover.example.com/", address: scene().address });
      await scene().counts(1);
      await scene().cluster.apply(mover(second));
      await scene().cluster.answers({ url: "http://mover.example.com/", address: elsewhere });
      await scene().cluster.answers({ url: "http://mover.example.com/", address: scene().address }, 404);
      await scene().says(mover(second), ACCEPTED);
      await scene().counts(0);
      await scene().cluster.settled(other, ({ status }) => expect(status?.attachedListenerSets).toBe(1));
      await scene().cluster.remove(other);
      await scene().says(mover(second), {
        Accepted: "False/ParentNotAccepted",
        Programmed: "False/ParentNotAccepted",
      });
    });
  });
}

function parameters(name: string): Named {
  const metadata = { name, namespace: "infra" };
  return { apiVersion: "mergeway.dev/v1alpha1", kind: "GatewayParameters", metadata, spec: {} } as Named;
}
