import { describe, expect, test } from "vitest";
import type { Condition } from "../../../src/api/metadata.ts";
import {
  ACCEPTED,
  CONTROLLER,
  conditionOf,
  eventually,
  http,
  httpRoute,
  listenerOf,
  type Named,
  type Place,
  type Stored,
} from "../support/served-cluster.ts";
import { namespace, type Scene, set, shared, sharedWith } from "./scene.ts";

export function routes(scene: () => Scene): void {
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

    test("a listener takes and counts only routes of namespaces and kinds that it allows (GEP-1713, Conformance Details, scenarios 13 to 15)", async () => {
      const routes = [
        to("team-a", "near", "near"),
        to("team-b", "far", "near"),
        to("team-b", "open", "open"),
        to("infra", "unlabelled", "open"),
        to("team-a", "kind", "grpc"),
      ] as const;
      await scene().cluster.apply(own, ...routes);
      await scene().accepts(routes[0], "True/Accepted");
      await scene().accepts(routes[1], "False/NotAllowedByListeners");
      await scene().accepts(routes[2], "True/Accepted");
      await scene().accepts(routes[3], "False/NotAllowedByListeners");
      await scene().accepts(routes[4], "False/NotAllowedByListeners");
      const attached = (): Promise<readonly number[]> =>
        scene()
          .cluster.get(own)
          .then(({ status }) => (status?.listeners ?? []).map(({ attachedRoutes }) => attachedRoutes));
      await eventually(async () => expect(await attached()).toEqual([1, 1, 0]));
      const kinds = listenerOf(await scene().cluster.get(own), "grpc").supportedKinds.map(({ kind }) => kind);
      expect(kinds).toEqual(["GRPCRoute"]);
      await scene().cluster.remove(routes[2]);
      await eventually(async () => expect(await attached()).toEqual([1, 0, 0]));
      // A set that is refused as a whole belongs to no Gateway: nothing is attached
      // (cloudflare-tunnel-gateway-controller, ListenerSet, AttachedRoutes).
      await scene().cluster.apply(namespace("team-a", "no"));
      await eventually(async () => expect(await attached()).toEqual([0, 0, 0]));
      await scene().cluster.apply(namespace("team-a", "yes"));
      await eventually(async () => expect(await attached()).toEqual([1, 0, 0]));
    });

    test("each parentRef has its own status, copied as it was given, and pruned when it is named no more (GEP-1713, Summary of Attachments)", async () => {
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
      await scene().cluster.apply(own, httpRoute(place, { parentRefs }));
      const route = httpRoute(place, {});
      await scene().accepts(route, "True/Accepted", "False/NoMatchingParent", "True/Accepted");
      expect((await scene().parentsOf(route)).map(({ parentRef }) => parentRef)).toEqual(parentRefs);
      for (const { controllerName } of await scene().parentsOf(route))
        expect(controllerName).toBe(CONTROLLER);
      await scene().cluster.apply(httpRoute(place, { parentRefs: parentRefs.slice(0, 1) }));
      await scene().accepts(route, "True/Accepted");
      expect(conditionOf((await scene().parentsOf(route))[0], "Accepted").observedGeneration).toBe(2);
      await scene().cluster.remove(own);
      await eventually(async () => expect(await scene().parentsOf(route)).toEqual([]));
    });

    test("what other controllers have written stays as it is, on routes, sets and Gateways", async () => {
      const route = to("team-a", "near", "near");
      await scene().cluster.apply(own, route);
      await scene().accepts(route, "True/Accepted");
      await scene().says(own, ACCEPTED);
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
        scene().cluster.patch(
          object,
          { status: status(await scene().cluster.get(object)) },
          "--subresource=status",
        );
      await add(route, ({ status }) => ({ parents: [elsewhere, ...(status?.parents ?? [])] }));
      await add(own, ({ status }) => ({ conditions: [...(status?.conditions ?? []), foreign] }));
      await add(shared, ({ status }) => ({ conditions: [...(status?.conditions ?? []), foreign] }));
      await scene().cluster.patch(route, { spec: { hostnames: ["near.example.com"] } });
      await scene().cluster.patch(own, { spec: { listeners: [http("near", "near.example.com")] } });
      await scene().cluster.apply(sharedWith({ listeners: [http("gw-80", "gw.example.com")] }));
      await eventually(async () => {
        const parents = await scene().parentsOf(route);
        expect(parents).toHaveLength(2);
        expect(parents[0]).toEqual(elsewhere);
        expect(conditionOf(parents[1], "Accepted").observedGeneration).toBe(2);
      });
      const kept = async (object: Named, own: number): Promise<void> =>
        void (await eventually(async () => {
          const { status, metadata } = await scene().cluster.get(object);
          expect(conditionOf(status, "example.com/Foreign")).toEqual(foreign);
          expect(conditionOf(status, "Accepted").observedGeneration).toBe(metadata.generation);
          expect(status?.listeners).toHaveLength(own);
        }));
      await kept(own, 1);
      await kept(shared, 1);
      await add(shared, ({ status }) => ({
        conditions: (status?.conditions ?? []).filter(({ type }) => type !== foreign.type),
      }));
      await scene().cluster.apply(shared);
      await scene().says(shared, ACCEPTED);
      await scene().cluster.remove(own);
      await eventually(async () => expect(await scene().parentsOf(route)).toEqual([elsewhere]));
    });
  });
}
