/**
 * The condition tables of cloudflare-tunnel-gateway-controller (its page "ListenerSet"), line by
 * line, through the tunnel data plane: engine, API, edge, connector and proxy are all there. Where
 * that controller says something untrue (a set of TCP entries alone is Accepted, Programmed without
 * connectors), the line here says what is true.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { selfSigned } from "../support/certificates.ts";
import { Bed } from "./support/bed.ts";
import { type Entry, gateway, httpRoute, listenerSet, tlsSecret } from "./support/manifests.ts";

let bed: Bed;
beforeEach(async () => {
  bed = await Bed.start({ connections: 1 });
});
afterEach(() => bed.close());

const TEAM = "ListenerSet/team/team";
const WEB: Entry = { name: "web", hostname: "team.example.com" };

/** Applied and, where the Gateway can be, programmed. */
async function settled(...documents: readonly string[]): Promise<void> {
  bed.apply(...documents);
  await bed.gatewaySays("Programmed=True Programmed");
}

async function setSays(expected: readonly string[]): Promise<void> {
  await bed.until(() => expected.every((condition) => bed.conditions(TEAM).includes(condition)));
  expect(bed.conditions(TEAM)).toEqual(expected);
}

async function entrySays(entry: string, expected: readonly string[]): Promise<void> {
  await bed.until(() => expected.every((condition) => bed.conditions(TEAM, entry).includes(condition)));
  expect(bed.conditions(TEAM, entry)).toEqual(expect.arrayContaining([...expected]));
}

describe("top-level conditions of a ListenerSet", () => {
  test("Accepted=True Accepted, Programmed=True Programmed: permitted, and an entry is valid", async () => {
    await settled(gateway(), listenerSet("team", [WEB]));
    await setSays(["Accepted=True Accepted", "Programmed=True Programmed"]);
  });

  test("Accepted=False NotAllowed, mirrored by Programmed: the Gateway's allowedListeners reject it", async () => {
    await settled(
      gateway([], { allowedListeners: { namespaces: { from: "Same" } } }),
      listenerSet("team", [WEB]),
    );
    await setSays(["Accepted=False NotAllowed", "Programmed=False NotAllowed"]);
  });

  test("Accepted=False ListenersNotValid, mirrored by Programmed: every entry is conflicted", async () => {
    await settled(gateway([WEB]), listenerSet("team", [WEB]));
    await setSays(["Accepted=False ListenersNotValid", "Programmed=False ListenersNotValid"]);
  });

  test("Accepted=False ListenersNotValid: every entry has unresolved references", async () => {
    await settled(
      gateway(),
      listenerSet("team", [
        { ...WEB, port: 443, protocol: "HTTPS", tls: { certificateRefs: [{ name: "gone" }] } },
      ]),
    );
    await setSays(["Accepted=False ListenersNotValid", "Programmed=False ListenersNotValid"]);
  });

  test("Accepted=True with one valid entry beside a conflicted one", async () => {
    await settled(
      gateway([{ name: "a", hostname: "a.example.com" }]),
      listenerSet("team", [WEB, { name: "taken", hostname: "a.example.com" }]),
    );
    await setSays(["Accepted=True Accepted", "Programmed=True Programmed"]);
  });

  test("Programmed=False Pending while no connector is connected", async () => {
    bed.apply(gateway(), listenerSet("team", [WEB]));
    await bed.until(() => bed.conditions(TEAM).length > 0);
    expect(bed.conditions(TEAM)).toEqual(["Accepted=True Accepted", "Programmed=False Pending"]);
    await setSays(["Accepted=True Accepted", "Programmed=True Programmed"]);
  });
});

describe("conditions of an entry", () => {
  test("Accepted, Programmed, ResolvedRefs True and Conflicted=False NoConflicts", async () => {
    await settled(gateway(), listenerSet("team", [WEB]));
    await entrySays("web", [
      "Accepted=True Accepted",
      "Programmed=True Programmed",
      "Conflicted=False NoConflicts",
      "ResolvedRefs=True ResolvedRefs",
    ]);
  });

  test("HostnameConflict: the same port and hostname of a listener that comes first", async () => {
    await settled(gateway([WEB]), listenerSet("team", [WEB]));
    await entrySays("web", ["Accepted=False HostnameConflict", "Conflicted=True HostnameConflict"]);
  });

  test("ProtocolConflict: another protocol on the port", async () => {
    const { cert, key } = selfSigned(["team.example.com"]);
    await settled(
      gateway(),
      listenerSet("team", [{ ...WEB, protocol: "HTTPS", tls: { certificateRefs: [{ name: "cert" }] } }]),
      tlsSecret("team", "cert", { cert, key }),
    );
    await entrySays("web", ["Accepted=False ProtocolConflict", "Conflicted=True ProtocolConflict"]);
  });

  test("RefNotPermitted: a certificate of another namespace without a grant", async () => {
    const { cert, key } = selfSigned(["team.example.com"]);
    await settled(
      gateway(),
      listenerSet("team", [
        {
          ...WEB,
          port: 443,
          protocol: "HTTPS",
          tls: { certificateRefs: [{ name: "cert", namespace: "certs" }] },
        },
      ]),
      tlsSecret("certs", "cert", { cert, key }),
    );
    await entrySays("web", ["ResolvedRefs=False RefNotPermitted"]);
  });

  test("InvalidCertificateRef: a Secret that does not exist", async () => {
    await settled(
      gateway(),
      listenerSet("team", [
        { ...WEB, port: 443, protocol: "HTTPS", tls: { certificateRefs: [{ name: "gone" }] } },
      ]),
    );
    await entrySays("web", ["ResolvedRefs=False InvalidCertificateRef"]);
  });

  const HTTPS: Entry = { ...WEB, port: 443, protocol: "HTTPS", tls: { certificateRefs: [{ name: "cert" }] } };
  const PAIR = selfSigned(["team.example.com"]);

  const SECRET = tlsSecret("team", "cert", PAIR);

  test.each([
    ["of another type", SECRET.replace("kubernetes.io/tls", "example.com/other")],
    ["without its key", SECRET.replace("kubernetes.io/tls", "Opaque").replace("tls.key:", "other:")],
    ["with what is no certificate", tlsSecret("team", "cert", { ...PAIR, cert: "nothing" })],
  ])("InvalidCertificateRef: a Secret %s", async (_what, secret) => {
    await settled(gateway(), listenerSet("team", [HTTPS]), secret);
    await entrySays("web", ["ResolvedRefs=False InvalidCertificateRef"]);
  });

  test("a grant for Gateways is not inherited by a set, one for ListenerSets counts", async () => {
    const elsewhere = { ...HTTPS, tls: { certificateRefs: [{ name: "cert", namespace: "certs" }] } };
    const grant = (kind: string, namespace: string): string =>
      stringify({
        apiVersion: "gateway.networking.k8s.io/v1beta1",
        kind: "ReferenceGrant",
        metadata: { name: "certs", namespace: "certs" },
        spec: {
          from: [{ group: "gateway.networking.k8s.io", kind, namespace }],
          to: [{ group: "", kind: "Secret" }],
        },
      });
    const others = [gateway(), listenerSet("team", [elsewhere]), tlsSecret("certs", "cert", PAIR)];
    await settled(...others, grant("Gateway", "infra"));
    await entrySays("web", ["ResolvedRefs=False RefNotPermitted"]);
    await settled(...others, grant("ListenerSet", "team"));
    await entrySays("web", ["ResolvedRefs=True ResolvedRefs", "Programmed=True Programmed"]);
  });

  test("HostnameConflict between two sets: the older one, then the first by name, has it", async () => {
    const older = listenerSet("older", [WEB], "2026-01-01T00:00:00Z");
    await settled(gateway(), listenerSet("team", [WEB], "2026-01-02T00:00:00Z"), older);
    await entrySays("web", ["Accepted=False HostnameConflict", "Conflicted=True HostnameConflict"]);
    const sameAge = listenerSet("zebra", [WEB], "2026-01-02T00:00:00Z");
    await settled(gateway(), listenerSet("team", [WEB], "2026-01-02T00:00:00Z"), sameAge);
    await entrySays("web", ["Accepted=True Accepted", "Conflicted=False NoConflicts"]);
  });

  test("TLS material that is there is validated and not used: an HTTPS entry is served", async () => {
    const { cert, key } = selfSigned(["team.example.com"]);
    await settled(
      gateway(),
      listenerSet("team", [
        { ...WEB, port: 443, protocol: "HTTPS", tls: { certificateRefs: [{ name: "cert" }] } },
      ]),
      tlsSecret("team", "cert", { cert, key }),
      httpRoute("team", { rules: [{ backend: "app" }] }),
      await bed.backend("team", "app"),
    );
    await entrySays("web", ["Programmed=True Programmed"]);
    const { id } = bed.tunnel();
    await bed.edge.until(() => bed.edge.applied.length > 0);
    expect((await bed.edge.fetch(id, { host: "team.example.com" })).status).toBe(200);
  });

  for (const protocol of ["TCP", "UDP", "TLS"]) {
    test(`${protocol} is refused for the entry, and for a set that has nothing else`, async () => {
      const own = protocol === "TLS" ? { hostname: "team.example.com", tls: { mode: "Passthrough" } } : {};
      await settled(gateway(), listenerSet("team", [{ name: "stream", port: 5432, protocol, ...own }]));
      await entrySays("stream", ["Accepted=False UnsupportedProtocol"]);
      await setSays(["Accepted=False ListenersNotValid", "Programmed=False ListenersNotValid"]);
    });
  }
});

describe("routes", () => {
  test("a route without hostnames inherits the listener's, and is served under it alone", async () => {
    await settled(
      gateway(),
      listenerSet("team", [WEB]),
      httpRoute("team", { rules: [{ backend: "app" }] }),
      await bed.backend("team", "app"),
    );
    expect(bed.routeConditions("HTTPRoute/team/web")).toEqual([
      "Accepted=True Accepted",
      "ResolvedRefs=True ResolvedRefs",
    ]);
    const { id } = bed.tunnel();
    await bed.edge.until(() => bed.edge.applied.length > 0);
    expect((await bed.edge.fetch(id, { host: "team.example.com" })).status).toBe(200);
    expect((await bed.edge.fetch(id, { host: "other.example.com" })).status).toBe(404);
  });

  test("attachedRoutes counts at a conflicted entry, and is 0 in a set that is not allowed", async () => {
    const route = httpRoute("team", { rules: [{ backend: "app" }] });
    await settled(gateway([WEB]), listenerSet("team", [WEB]), route);
    expect(attachedRoutes()).toBe(1);
    bed.apply(
      gateway([WEB], { allowedListeners: { namespaces: { from: "None" } } }),
      listenerSet("team", [WEB]),
      route,
    );
    expect(attachedRoutes()).toBe(0);
  });

  test("attachedListenerSets counts sets with a valid entry", async () => {
    await settled(
      gateway([WEB]),
      listenerSet("team", [WEB]),
      listenerSet("other", [{ name: "o", hostname: "o.example.com" }]),
    );
    expect(bed.status("Gateway/infra/edge")["attachedListenerSets"]).toBe(1);
  });
});

function attachedRoutes(): number | undefined {
  const { listeners } = bed.status(TEAM) as { listeners?: readonly { attachedRoutes: number }[] };
  return listeners?.[0]?.attachedRoutes;
}
