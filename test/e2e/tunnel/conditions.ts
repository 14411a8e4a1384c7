import { describe, expect, test } from "vitest";
import { selfSigned } from "../../dataplanes/support/certificates.ts";
import {
  ACCEPTED,
  ALL_WELL,
  conditionOf,
  eventually,
  http,
  httpRoute,
  listenerOf,
  listenerSet,
  type Place,
  said,
  tlsSecret,
} from "../support/served-cluster.ts";
import { at, EDGE, parentSet, set, type TunnelScene } from "./scene.ts";

export function conditionTables(scene: () => TunnelScene): void {
  /**
   * The condition tables of cloudflare-tunnel-gateway-controller (its page "ListenerSet"), line by
   * line. Where they leave something untrue, the line here says what is true.
   */
  describe("top-level conditions of a ListenerSet", () => {
    const place: Place = { namespace: "team-a", name: "table" };
    const refused = { Accepted: "False/ListenersNotValid", Programmed: "False/ListenersNotValid" };
    const gone = {
      ...http("web", "t.example.com", 443),
      protocol: "HTTPS",
      tls: { certificateRefs: [{ name: "gone" }] },
    };

    async function says(listeners: readonly object[], expected: object): Promise<void> {
      await scene().cluster.apply(listenerSet(place, EDGE, listeners));
      await scene().cluster.settled(set(place), ({ status }) => expect(said(status)).toEqual(expected));
    }

    test("Accepted=True Accepted and Programmed=True Programmed: permitted, and an entry is valid", async () => {
      await says([http("web", "t.example.com")], ACCEPTED);
    });

    test("Accepted=False ListenersNotValid, mirrored: every entry is conflicted", async () => {
      await says([http("web", "platform.example.com")], refused);
    });

    test("Accepted=False ListenersNotValid, mirrored: every entry has unresolved references", async () => {
      await says([gone], refused);
    });

    test("Accepted=True with one valid entry beside a conflicted one", async () => {
      await says([http("web", "t.example.com"), http("taken", "platform.example.com")], ACCEPTED);
    });

    test.each(["TCP", "UDP", "TLS"])(
      "%s is refused for the entry, and for a set that has nothing else",
      async (protocol) => {
        const own = protocol === "TLS" ? { hostname: "t.example.com", tls: { mode: "Passthrough" } } : {};
        await says([{ name: "stream", port: 5432, protocol, ...own }], refused);
        const { Accepted } = said(listenerOf(await scene().cluster.get(set(place)), "stream"));
        expect(Accepted).toBe("False/UnsupportedProtocol");
      },
    );

    test("Accepted=False NotAllowed, mirrored: the Gateway's allowedListeners reject it", async () => {
      await scene().cluster.patch(at(EDGE), { spec: { allowedListeners: { namespaces: { from: "Same" } } } });
      await says([http("web", "t.example.com")], {
        Accepted: "False/NotAllowed",
        Programmed: "False/NotAllowed",
      });
      await scene().cluster.patch(at(EDGE), { spec: { allowedListeners: { namespaces: { from: "All" } } } });
      await says([http("web", "t.example.com")], ACCEPTED);
    });

    test("Programmed=False Pending while no connector is connected; the address stays", async () => {
      await scene().cloudflare.accept(false);
      try {
        await scene().cluster.settled(set(place), ({ status }) =>
          expect(said(status)).toEqual({ Accepted: "True/Accepted", Programmed: "False/Pending" }),
        );
        const { status } = await scene().cluster.get(at(EDGE));
        expect(conditionOf(status, "Programmed")).toMatchObject({
          reason: "Pending",
          message: "no connector of the tunnel is connected",
        });
        expect(status?.addresses?.[0]?.value).toBe(`${scene().tunnel}.cfargotunnel.com`);
      } finally {
        await scene().cloudflare.accept(true);
      }
      await scene().programmed(EDGE);
      await scene().cluster.settled(set(place), ({ status: now }) => expect(said(now)).toEqual(ACCEPTED));
      await scene().cluster.remove(set(place));
    });
  });

  describe("conditions of an entry", () => {
    const place: Place = { namespace: "team-b", name: "table" };
    const conflict = (reason: string): object => ({
      Accepted: `False/${reason}`,
      Conflicted: `True/${reason}`,
      ResolvedRefs: "True/ResolvedRefs",
      Programmed: `False/${reason}`,
    });
    const https = (reference: object): object => ({
      ...http("web", "t.example.com", 443),
      protocol: "HTTPS",
      tls: { certificateRefs: [reference] },
    });
    const certificate = selfSigned(["t.example.com"]);

    async function says(listener: object, expected: object): Promise<void> {
      await scene().cluster.apply(listenerSet(place, EDGE, [listener]));
      await scene().cluster.settled(set(place), (stored) =>
        expect(said(listenerOf(stored, "web"))).toEqual(expect.objectContaining(expected)),
      );
    }

    test("Accepted, Programmed, ResolvedRefs True and Conflicted=False NoConflicts", async () => {
      await says(http("web", "t.example.com"), ALL_WELL);
    });

    test("HostnameConflict: the same port and hostname of a listener that comes first", async () => {
      await says(http("web", "a.example.com"), conflict("HostnameConflict"));
    });

    test("ProtocolConflict: another protocol on the port", async () => {
      await scene().cluster.apply(tlsSecret({ ...place, name: "cert" }, certificate));
      await says({ ...https({ name: "cert" }), port: 80 }, conflict("ProtocolConflict"));
    });

    test("TLS material is validated and not used: an HTTPS entry is served", async () => {
      await says(https({ name: "cert" }), ALL_WELL);
      await scene().cluster.apply(httpRoute(place, { parentRefs: [parentSet(place)] }));
      await eventually(async () => expect(await scene().answerOf("t.example.com")).toBe("team-b"));
      await scene().cluster.settled(set(place), (stored) =>
        expect(listenerOf(stored, "web").attachedRoutes).toBe(1),
      );
    });

    test("ResolvedRefs=False InvalidCertificateRef: a Secret that does not exist; its route still counts", async () => {
      await says(https({ name: "gone" }), { ResolvedRefs: "False/InvalidCertificateRef" });
      expect(listenerOf(await scene().cluster.get(set(place)), "web").attachedRoutes).toBe(1);
      await eventually(async () => expect(await scene().answerOf("t.example.com")).toBe(404));
    });

    test("ResolvedRefs=False RefNotPermitted: a certificate of another namespace without a grant", async () => {
      await scene().cluster.apply(tlsSecret({ namespace: "team-a", name: "cert" }, certificate));
      await says(https({ name: "cert", namespace: "team-a" }), { ResolvedRefs: "False/RefNotPermitted" });
      await scene().cluster.remove(set(place));
    });

    test("attachedListenerSets of the Gateway counts sets with a valid entry", async () => {
      await scene().cluster.settled(at(EDGE), ({ status }) => expect(status?.attachedListenerSets).toBe(2));
    });
  });
}
