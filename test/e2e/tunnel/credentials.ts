import { describe, expect, test } from "vitest";
import { ok } from "../../../tools/cluster/bed.ts";
import {
  conditionOf,
  eventually,
  http,
  httpRoute,
  listenerSet,
  type Place,
  SYSTEM,
  said,
} from "../support/served-cluster.ts";
import { apiToken, at, parameters, parentSet, secret, set, shared, type TunnelScene } from "./scene.ts";

export function credentials(scene: () => TunnelScene): void {
  describe("credentials and the API", () => {
    const place: Place = { namespace: "infra", name: "second" };

    test("a token that may not edit tunnels: said on the Gateway, and shown to nobody", async () => {
      const { powerlessToken } = scene().cloudflare.started;
      await scene().cluster.apply(
        apiToken("second", powerlessToken),
        parameters("second", scene().byApi("second")),
        shared(place, "second"),
        listenerSet({ namespace: "team-a", name: "second" }, place, [http("web", "second.example.com")]),
      );
      const stored = await scene().cluster.settled(at(place), ({ status }) =>
        expect(said(status)).toEqual({ Accepted: "True/Accepted", Programmed: "False/Invalid" }),
      );
      expect(conditionOf(stored.status, "Programmed").message).toContain("Cloudflare refuses the API token");
      expect(stored.status?.addresses ?? []).toEqual([]);
      const tenant = await scene().cluster.get(set({ namespace: "team-a", name: "second" }));
      expect(JSON.stringify(tenant.status)).not.toMatch(/token|credential/i);
      const events = await ok(scene().cluster.bed.kubectl(["get", "events", "-A", "-o", "json"]));
      for (const text of [
        JSON.stringify(stored),
        events,
        await ok(scene().cluster.bed.kubectl(["-n", SYSTEM, "logs", "deploy/mergeway", "--tail=-1"])),
      ])
        expect(text).not.toContain(powerlessToken);
    });

    test("mended while the API limits and fails: served as soon as it does not, with one tunnel", async () => {
      await scene().cloudflare.faults(
        { status: 429, headers: { "retry-after": "1" } },
        { status: 503 },
        { status: 500, afterwards: true },
        { status: 0, reset: true },
      );
      await scene().cluster.apply(apiToken("second", scene().cloudflare.started.token));
      await scene().programmed(place, 120);
      const all = await scene().cloudflare.tunnels();
      expect(all.filter(({ name }) => name === "mergeway.infra.second")).toHaveLength(1);
    });

    test("a Gateway is not gone while its tunnel cannot be deleted, and says so", async () => {
      await scene().cloudflare.fault({ status: 403, on: "^DELETE " });
      await ok(scene().cluster.bed.kubectl(["-n", "infra", "delete", "gateway", "second", "--wait=false"]));
      await eventually(async () => {
        const { status } = await scene().cluster.get(at(place));
        expect(conditionOf(status, "Programmed").message).toMatch(
          /not deleted yet: .*finalizer mergeway\.dev\/tunnel/,
        );
      });
      await eventually(async () => {
        const events = await ok(scene().cluster.bed.kubectl(["-n", "infra", "get", "events", "-o", "json"]));
        expect(events).toContain("TunnelNotDeleted");
      });
      await scene().cloudflare.fault();
      await eventually(async () => expect(await scene().cluster.find(at(place))).toBeUndefined());
      expect(await scene().cloudflare.named("mergeway.infra.second")).toBeUndefined();
      await eventually(async () =>
        expect(await scene().cluster.infrastructureIn("infra")).not.toContain(
          "deployment.apps/second-mergeway",
        ),
      );
    });

    test("a tunnel of which there is nothing but the token, configured by somebody else", async () => {
      const given: Place = { namespace: "infra", name: "given" };
      const id = await scene().cloudflare.add("by hand", { service: "http://127.0.0.1:8080" });
      const token = (await scene().cloudflare.named("by hand"))?.token ?? "";
      const before = (await scene().cloudflare.requests()).length;
      await scene().cluster.apply(
        secret("given", { "tunnel-token": token }),
        parameters("given", { tunnelTokenSecretRef: { name: "given" } }),
        shared(given, "given"),
        listenerSet({ namespace: "team-a", name: "given" }, given, [http("web", "given.example.com")]),
        httpRoute(
          { namespace: "team-a", name: "given" },
          { parentRefs: [parentSet({ namespace: "", name: "given" })] },
        ),
      );
      expect(await scene().programmed(given)).toBe(id);
      await eventually(async () => {
        const { status } = await scene().cloudflare.visit(id, { host: "given.example.com" });
        expect(status).toBe(200);
      });
      const asked = (await scene().cloudflare.requests())
        .slice(before)
        .filter((request) => request.includes(id));
      expect(asked).toEqual([]);
      await scene().cluster.remove(at(given), set({ namespace: "team-a", name: "given" }));
      expect((await scene().cloudflare.named("by hand"))?.id).toBe(id);
    });

    test("rules of somebody else in a tunnel's configuration: left alone, and told in an Event of the Gateway", async () => {
      const crowded: Place = { namespace: "infra", name: "crowded" };
      const theirs = { hostname: "ssh.example.com", service: "ssh://10.0.0.1:22" };
      const tunnelId = await scene().cloudflare.add("of others", theirs, { service: "http_status:404" });
      await scene().cluster.apply(
        parameters("crowded", scene().byApi("cloudflare", { tunnelId })),
        shared(crowded, "crowded"),
      );
      expect(await scene().programmed(crowded)).toBe(tunnelId);
      const services = (await scene().cloudflare.named("of others"))?.services;
      expect(services).toEqual([theirs.service, "http://127.0.0.1:8080"]);
      await eventually(async () => {
        const notes = ["get", "events", "--field-selector=reason=ForeignRules", "-o", "jsonpath={..message}"];
        expect(await ok(scene().cluster.bed.kubectl(["-n", "infra", ...notes]))).toContain(theirs.hostname);
      });
      await scene().cluster.remove(at(crowded));
    });
  });
}
