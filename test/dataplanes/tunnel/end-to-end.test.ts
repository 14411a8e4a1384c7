/** A request's whole way: edge → tunnel → listener of a ListenerSet → backend. */
import { afterEach, expect, test } from "vitest";
import { Bed } from "./support/bed.ts";
import { gateway, httpRoute, listenerSet } from "./support/manifests.ts";
import { REAL_CLOUDFLARED } from "./support/real-cloudflared.ts";

let bed: Bed | undefined;
afterEach(async () => {
  await bed?.close();
  bed = undefined;
});

const TENANTS = [
  gateway(),
  listenerSet("team-a", [{ name: "web", hostname: "a.example.com" }]),
  listenerSet("team-b", [{ name: "web", hostname: "b.example.com" }]),
  httpRoute("team-a", { rules: [{ backend: "app" }] }),
  httpRoute("team-b", { hostnames: ["b.example.com"], rules: [{ backend: "app" }] }),
];

async function serveTenants(started: Bed): Promise<void> {
  const backends = [await started.backend("team-a", "app"), await started.backend("team-b", "app")];
  started.apply(...TENANTS, ...backends);
  await started.gatewaySays("Programmed=True Programmed");
  const { id } = started.tunnel();
  await started.edge.until(() => started.edge.connectionsOf(id) > 0 && started.edge.applied.length > 0);
}

test("two tenants are served behind one tunnel, with the connector double in cloudflared's place", async () => {
  bed = await Bed.start();
  await serveTenants(bed);
  const { id } = bed.tunnel();
  for (const team of ["a", "b"]) {
    const answer = await bed.edge.fetch(id, { host: `${team}.example.com`, path: "/hello?x=1" });
    expect(answer).toMatchObject({ status: 200, source: "origin" });
    expect(JSON.parse(answer.body)).toMatchObject({ backend: `team-${team}/app`, url: "/hello?x=1" });
  }
  expect((await bed.edge.fetch(id, { host: "c.example.com" })).status).toBe(404);
  expect(bed.status("Gateway/infra/edge")["addresses"]).toEqual([
    { type: "Hostname", value: `${id}.cfargotunnel.com` },
  ]);
});

test.skipIf(REAL_CLOUDFLARED === undefined)(
  "two tenants behind one tunnel, with real cloudflared (skipped where CLOUDFLARED names none)",
  async () => {
    bed = await Bed.start({ cloudflared: REAL_CLOUDFLARED ?? [], connections: 1 });
    await serveTenants(bed);
    const { id } = bed.tunnel();
    const answer = await bed.edge.fetch(id, { host: "a.example.com", path: "/hello" });
    expect(answer).toMatchObject({ status: 200, source: "origin" });
    expect(JSON.parse(answer.body)).toMatchObject({ backend: "team-a/app" });
  },
);
