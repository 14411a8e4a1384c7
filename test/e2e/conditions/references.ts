import { describe, test } from "vitest";
import type { Condition } from "../../../src/api/metadata.ts";
import {
  ACCEPTED,
  ALL_WELL,
  conditionOf,
  http,
  httpRoute,
  listenerOf,
  type Named,
  type Place,
  type Stored,
  tlsSecret,
} from "../support/served-cluster.ts";
import { certificate, NOT_VALID, type Scene, set } from "./scene.ts";

export function references(scene: () => Scene): void {
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

    test("ResolvedRefs follows a grant that is missing, given, and taken away (GEP-1713, ReferenceGrant Semantics)", async () => {
      const own = set("team-a", "own", tls("a.example.com", 8443, { name: "wild", namespace: "certs" }));
      await scene().cluster.apply(own);
      await scene().entrySays(own, "safe", {
        ResolvedRefs: "False/RefNotPermitted",
        Conflicted: "False/NoConflicts",
      });
      await scene().says(own, NOT_VALID);
      await scene().counts(0);
      // What the Gateway may read is not its sets' to read.
      await scene().cluster.apply(grant("Gateway", "infra"), grant("Gateway", "team-a"));
      await scene().entrySays(own, "safe", { ResolvedRefs: "False/RefNotPermitted" });
      await scene().turns(own, resolved, "True/ResolvedRefs", () =>
        scene().cluster.apply(grant("ListenerSet", "team-a")),
      );
      await scene().says(own, ACCEPTED);
      await scene().entrySays(own, "safe", ALL_WELL);
      await scene().counts(1);
      await scene().turns(own, resolved, "False/RefNotPermitted", () =>
        scene().cluster.remove(grant("", "")),
      );
      await scene().says(own, NOT_VALID);
      await scene().counts(0);
    });

    test("ResolvedRefs and HTTPS follow a certificate that is missing, broken, and good (cloudflare-tunnel-gateway-controller, ListenerSet, Per-entry conditions)", async () => {
      const place: Place = { namespace: "team-a", name: "own" };
      const own = set(
        "team-a",
        "own",
        tls("a.example.com", 8443, { name: "own" }),
        http("plain", "a.example.com"),
      );
      const route = httpRoute(place, { parentRefs: [{ kind: "ListenerSet", name: "own" }] });
      await scene().cluster.apply(own, route);
      await scene().entrySays(own, "safe", {
        ResolvedRefs: "False/InvalidCertificateRef",
        Programmed: "False/Invalid",
      });
      // One bad entry of two takes down itself alone.
      await scene().says(own, ACCEPTED);
      const opaque = { apiVersion: "v1", kind: "Secret", metadata: place } as Named;
      await scene().cluster.apply({ ...opaque, stringData: { "tls.crt": "nonsense" } });
      await scene().entrySays(own, "safe", { ResolvedRefs: "False/InvalidCertificateRef" });
      await scene().cluster.remove(opaque);
      await scene().turns(own, resolved, "True/ResolvedRefs", () =>
        scene().cluster.apply(tlsSecret(place, certificate)),
      );
      await scene().entrySays(own, "safe", ALL_WELL);
      await scene().cluster.answers({
        url: "https://a.example.com:8443/",
        address: scene().address,
        authority: certificate.cert,
      });
      await scene().turns(own, resolved, "False/InvalidCertificateRef", () => scene().cluster.remove(opaque));
      await scene().entrySays(own, "plain", ALL_WELL);
    });
  });
}

function tls(hostname: string, port: number, reference: object): object {
  return { name: "safe", hostname, port, protocol: "HTTPS", tls: { certificateRefs: [reference] } };
}
