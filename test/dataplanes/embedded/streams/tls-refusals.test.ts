import { expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../../src/dataplanes/embedded/embedded-data-plane.ts";
import { authority, issue } from "../../support/certificates.ts";
import { ask } from "../../support/http-peers.ts";
import { backend, certificate, forwardTo, host, port, rule, secure } from "../../support/plan-builder.ts";
import { PlaneUnderTest } from "../../support/plane-under-test.ts";

const tls = port(443, "tls");
const ca = authority();
const forA = certificate("c-a", issue(ca, ["a.example"]));
const a = { ...secure("a", tls, "a.example", [forA]), protocol: "TLS" as const };

test("a terminated TLS stream without a backend is reset, and does not end the process", async () => {
  for (const backends of [[], [backend("s", [], { protocol: "tcp" })]]) {
    const plane = await PlaneUnderTest.start(
      (options) => createEmbeddedDataPlane({ ...options, workers: 0 }),
      [tls, a, forA, host(a, "a.example", [rule({ action: forwardTo("s"), kind: "TLSRoute" })]), ...backends],
    );
    for (let round = 0; round < 10; round++) {
      const answer = ask(plane.at(443), {
        host: "a.example",
        tls: { servername: "a.example", ca: ca.cert },
      });
      await expect(answer).rejects.toThrow();
    }
    await plane.close();
  }
});
