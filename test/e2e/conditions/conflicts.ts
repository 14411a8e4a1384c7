import { describe, expect, test } from "vitest";
import type { Condition } from "../../../src/api/metadata.ts";
import { nextSecond } from "../../support/eventually.ts";
import {
  ACCEPTED,
  ALL_WELL,
  conditionOf,
  http,
  httpRoute,
  listenerOf,
  type Stored,
  said,
} from "../support/served-cluster.ts";
import { MAX_LISTENERS, NOT_VALID, type Scene, set, shared } from "./scene.ts";

export function conflicts(scene: () => Scene): void {
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
      "an entry has a $kind with a $against, other entries valid: $spare (GEP-1713, Conformance Details)",
      async ({ kind, against, spare }) => {
        const port = against === "Gateway" ? 8080 : 9090;
        const hostname = against === "Gateway" ? "gw.example.com" : "wanted.example.com";
        const holder = set("team-b", "holder", http("held", "wanted.example.com", 9090));
        if (against === "ListenerSet") {
          await scene().cluster.apply(holder);
          await scene().says(holder, ACCEPTED);
          await nextSecond();
        }
        const wanted =
          kind === "HostnameConflict"
            ? { ...http("ls", hostname, port) }
            : { name: "ls", port, protocol: "TCP", allowedRoutes: { kinds: [{ kind: "TCPRoute" }] } };
        const loser = set("team-a", "loser", wanted, ...(spare ? [http("spare", "spare.example.com")] : []));
        const counted = httpRoute(
          { namespace: "team-a", name: "counted" },
          {
            parentRefs: [{ kind: "ListenerSet", name: "loser", ...(spare ? { sectionName: "spare" } : {}) }],
          },
        );
        await scene().cluster.apply(loser, counted);
        const stored = await scene().says(loser, spare ? ACCEPTED : NOT_VALID);
        expect(said(listenerOf(stored, "ls"))).toMatchObject({
          Accepted: `False/${kind}`,
          Programmed: `False/${kind}`,
          Conflicted: `True/${kind}`,
        });
        expect(JSON.stringify(stored.status)).not.toMatch(/team-b|holder/);
        if (spare) await scene().entrySays(loser, "spare", ALL_WELL);
        if (against === "ListenerSet") await scene().entrySays(holder, "held", ALL_WELL);
        await scene().counts((against === "ListenerSet" ? 1 : 0) + (spare ? 1 : 0));
        const { status } = await scene().cluster.get(shared);
        expect(said(status)).toEqual(ACCEPTED);
        for (const listener of status?.listeners ?? []) expect(said(listener)).toEqual(ALL_WELL);
        expect(status?.listeners?.map(({ name }) => name)).toEqual(["gw-80", "gw-8080"]);
      },
    );

    test("when the holder goes, Conflicted turns False and the route that waited is served (GEP-1713, Listener and ListenerSet Conflicts)", async () => {
      const holder = set("team-b", "holder", http("held", "wanted.example.com"));
      const next = set("team-a", "next", http("web", "wanted.example.com"));
      const waiting = httpRoute(
        { namespace: "team-a", name: "waiting" },
        { parentRefs: [{ kind: "ListenerSet", name: "next" }] },
      );
      await scene().cluster.apply(holder);
      await scene().says(holder, ACCEPTED);
      await nextSecond();
      await scene().cluster.apply(next, waiting);
      await scene().says(next, NOT_VALID);
      // A route of a conflicted entry is counted (ListenerEntryStatus.attachedRoutes).
      await scene().cluster.settled(next, (stored) =>
        expect(listenerOf(stored, "web").attachedRoutes).toBe(1),
      );
      const conflicted = (stored: Stored): Condition => conditionOf(listenerOf(stored, "web"), "Conflicted");
      await scene().turns(next, conflicted, "False/NoConflicts", () => scene().cluster.remove(holder));
      await scene().says(next, ACCEPTED);
      await scene().cluster.answers({ url: "http://wanted.example.com/", address: scene().address });
    });

    test("entries beyond the limit are refused with TooManyListeners (GEP-1713, ListenerConditions Within a ListenerSet)", async () => {
      const entries = Array.from({ length: MAX_LISTENERS }, (_, at) =>
        http(`l-${at}`, `l-${at}.example.com`),
      );
      const many = set("team-a", "many", ...entries);
      await scene().cluster.apply(many);
      const stored = await scene().says(many, ACCEPTED);
      const refused = (stored.status?.listeners ?? []).filter(
        (listener) => said(listener)["Accepted"] === "False/TooManyListeners",
      );
      // Two of the Gateway's own come first.
      expect(refused.map(({ name }) => name)).toEqual(["l-10", "l-11"]);
    });
  });
}
