/** What Envoy cannot confine: certificates that a listener without a hostname asks for. */
import { afterEach, expect, test } from "vitest";
import { authority, issue } from "../support/certificates.ts";
import { createEnvoy } from "../support/envoy-plane.ts";
import { ask, Backends } from "../support/http-peers.ts";
import { backend, certificate, forwardTo, host, port, rule, secure } from "../support/plan-builder.ts";
import { PlaneUnderTest } from "../support/plane-under-test.ts";

const ca = authority();
const clients = authority("clients");
const alice = issue(clients, ["alice.example"]);
const tls = port(443, "tls");
const shown = certificate("shown", issue(ca, ["a.example", "b.example"]), ["a.example", "b.example"]);

const releases: (() => unknown)[] = [];
afterEach(async () => {
  for (const release of releases.splice(0)) await release();
});

test("a listener without a hostname lets nobody in, says so, and asks no client of others", async () => {
  const backends = new Backends();
  releases.push(() => backends.release());
  const all = secure("all", tls, "", [shown]);
  const clientValidation = { mode: "AllowValidOnly" as const, authorities: [clients.cert] };
  const closed = { ...all, tls: { mode: "Terminate" as const, certificates: [shown.id], clientValidation } };
  const b = secure("b", tls, "b.example", [shown]);
  const plane = await PlaneUnderTest.start(
    (options) => createEnvoy(options),
    [
      tls,
      shown,
      closed,
      b,
      host(closed, "", [rule({ action: forwardTo("to-all") })]),
      host(b, "b.example", [rule({ action: forwardTo("to-b") })]),
      backend("to-all", [await backends.echo("all")]),
      backend("to-b", [await backends.echo("b")]),
    ],
  );
  releases.push(() => plane.close());
  const reach = async (name: string, as = {}): Promise<number> =>
    (await ask(plane.at(443), { host: name, tls: { ca: ca.cert, servername: name, ...as } })).status;
  expect(plane.report("all")).toMatchObject({ state: "rejected", reason: "Refused" });
  expect(plane.report("all")?.message).toMatch(/without a hostname/);
  expect([await reach("a.example"), await reach("a.example", alice)]).toEqual([421, 421]);
  expect([await reach("b.example"), plane.report("b")?.state]).toEqual([200, "programmed"]);
  await plane.apply({ upserts: [all], removes: [] });
  await plane.until(() => plane.report("all")?.state === "programmed");
  expect(await reach("a.example")).toBe(200);
});
