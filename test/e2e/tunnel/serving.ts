import { describe, expect, test } from "vitest";
import { ok } from "../../../tools/cluster/bed.ts";
import {
  eventually,
  http,
  httpRoute,
  listenerSet,
  type Place,
  SYSTEM,
  said,
} from "../support/served-cluster.ts";
import { at, type Echo, EDGE, parentSet, secret, set, type TunnelScene } from "./scene.ts";

export function serving(scene: () => TunnelScene): void {
  describe("a Gateway whose parameters choose a tunnel", () => {
    test("serves: edge → tunnel → listener of a ListenerSet → backend", async () => {
      await eventually(async () => expect(await scene().answerOf("a.example.com")).toBe("team-a"));
      await eventually(async () => expect(await scene().answerOf("b.example.com")).toBe("team-b"));
      expect(await scene().answerOf("c.example.com")).toBe(404);
      expect(await scene().answerOf("platform.example.com")).toBe(404);
    });

    test("has a tunnel named after it, with one rule", async () => {
      expect(await scene().cloudflare.named("mergeway.infra.edge")).toMatchObject({
        id: scene().tunnel,
        connections: 1,
        services: ["http://127.0.0.1:8080"],
      });
    });

    test("has no Service with an address, and its token in a Secret of its own", async () => {
      expect(await scene().cluster.infrastructureIn("infra")).toEqual([
        "deployment.apps/edge-mergeway",
        "service/edge-mergeway-pods",
        "serviceaccount/edge-mergeway",
      ]);
      const stored = await scene().cluster.get({ ...secret("edge-mergeway-tunnel", {}) });
      const { uid, metadata } = {
        ...(await scene().cluster.get(at(EDGE))).metadata,
        metadata: stored.metadata,
      };
      expect(metadata).toMatchObject({ ownerReferences: [{ kind: "Gateway", name: "edge", uid }] });
    });

    test("tells backends the client's address, as the edge vouches for it", async () => {
      const visit = {
        host: "a.example.com",
        from: "203.0.113.9",
        headers: { "x-forwarded-for": "10.1.1.1" },
      };
      const { body } = await scene().cloudflare.visit(scene().tunnel, visit);
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
      expect(await scene().answerOf("a.example.com", { [header]: value })).toBe("team-a");
      expect(await scene().answerOf("nobody.example.com", { [header]: value })).toBe(404);
    });

    test("with a GRPCRoute is led to the pod's port for HTTP/2, without another pod", async () => {
      const pods = (): Promise<string> =>
        ok(scene().cluster.bed.kubectl(["-n", "infra", "get", "pods", "-o", "name"]));
      const before = await pods();
      const place: Place = { namespace: "team-a", name: "grpc" };
      const rules = [{ backendRefs: [{ name: "echo", port: 8080 }] }];
      const grpc = { ...httpRoute(place, { parentRefs: [parentSet(place)], rules }), kind: "GRPCRoute" };
      await scene().cluster.apply(listenerSet(place, EDGE, [http("grpc", "g.example.com")]), grpc);
      await eventually(async () => {
        expect((await scene().cloudflare.named("mergeway.infra.edge"))?.services).toEqual([
          "https://127.0.0.1:8081",
        ]);
      });
      await eventually(async () => expect(await scene().answerOf("a.example.com")).toBe("team-a"));
      await scene().cluster.remove(grpc, set(place));
      await eventually(async () => {
        expect((await scene().cloudflare.named("mergeway.infra.edge"))?.services).toEqual([
          "http://127.0.0.1:8080",
        ]);
      });
      await eventually(async () => expect(await scene().answerOf("a.example.com")).toBe("team-a"));
      expect(await pods()).toBe(before);
    });

    test("of a class whose parameters choose it: the class claims what a tunnel can carry, and no more", async () => {
      const gatewayClass = {
        apiVersion: "gateway.networking.k8s.io/v1",
        kind: "GatewayClass",
        metadata: { name: "tunnelled" },
        spec: {
          controllerName: "mergeway.dev/controller",
          parametersRef: {
            group: "mergeway.dev",
            kind: "GatewayParameters",
            name: "edge",
            namespace: "infra",
          },
        },
      };
      await scene().cluster.apply(gatewayClass);
      const { status } = await scene().cluster.settled(gatewayClass, ({ status: now }) =>
        expect(now?.supportedFeatures?.length).toBeGreaterThan(0),
      );
      const claimed = (status?.supportedFeatures ?? []).map(({ name }) => name);
      expect(claimed).toEqual(expect.arrayContaining(["ListenerSet", "HTTPRoute", "GRPCRoute"]));
      expect(claimed.filter((name) => /^(TCP|UDP|TLS)Route|StaticAddresses|Port8080/.test(name))).toEqual([]);
      await scene().cluster.remove(gatewayClass);
    });

    test("loses no request while its pods are replaced", async () => {
      await ok(scene().cluster.bed.kubectl(["-n", "infra", "rollout", "restart", "deploy/edge-mergeway"]));
      const answers = await scene().duringRollout("infra", "edge-mergeway", () =>
        scene().answerOf("a.example.com"),
      );
      expect(answers).toEqual(new Set(["team-a"]));
    });

    test("keeps its address and serves while the controller is replaced", async () => {
      await ok(scene().cluster.bed.kubectl(["-n", SYSTEM, "rollout", "restart", "deploy/mergeway"]));
      const seen = await scene().duringRollout(SYSTEM, "mergeway", async () => {
        const { status } = await scene().cluster.get(at(EDGE));
        return `${status?.addresses?.[0]?.value} ${said(status)["Programmed"]} ${await scene().answerOf("a.example.com")}`;
      });
      expect(seen).toEqual(new Set([`${scene().tunnel}.cfargotunnel.com True/Programmed team-a`]));
      expect(await scene().programmed(EDGE)).toBe(scene().tunnel);
    });
  });
}
