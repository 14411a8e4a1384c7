import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ServingCertificate } from "../../../src/controller/pod-stream/serving-certificate.ts";
import { runPlanClient } from "../../../src/dataplanes/remote/subscriber/plan-client.ts";
import { PlanJournal } from "../../../src/dataplanes/remote/subscriber/plan-journal.ts";
import { KeyPair } from "../../../src/infra/authority.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { authority } from "../support/certificates.ts";
import { PublishingServer } from "./publishing-server.ts";

const DAY = 24 * 60 * 60 * 1000;
const PATIENT = { timeout: 10_000, interval: 20 };
const made = authority();
const own = new KeyPair(made.cert, made.key);

describe("the certificate of the plan stream", () => {
  let directory: string;
  const stops: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "mergeway-renewal-"));
  });

  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
    await rm(directory, { recursive: true, force: true });
  });

  /** What a peer that comes now is shown, and accepts. */
  async function shown(port: number): Promise<string> {
    const socket = connect({ host: "127.0.0.1", port, ca: made.cert, servername: "localhost" });
    await once(socket, "secureConnect");
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  }

  it("is renewed while streams stay open, and is used for new connections", async () => {
    let now = Date.now();
    const serving = new ServingCertificate(own, "localhost:1", () => new Date(now));
    const server = new PublishingServer({
      features: new Set(),
      ...pairOf(await serving.issue()),
      address: "127.0.0.1",
      port: 0,
      authorize: async () => true,
    });
    stops.push(() => server.close());
    const port = await server.listen();
    const states: string[] = [];
    const items = new Set<string>();
    const stopping = new AbortController();
    const running = runPlanClient(
      {
        controller: `localhost:${port}`,
        authority: made.cert,
        gateway: "infra/shared",
        pod: "pod",
        token: async () => "token",
        journal: await PlanJournal.open(directory),
        dataPlane: {
          features: new Set(),
          apply: ({ upserts }) => {
            for (const { id } of upserts) items.add(id);
          },
          onReport: () => {},
          close: async () => {},
        },
        onState: (state) => states.push(state),
      },
      stopping.signal,
    );
    stops.push(async () => {
      stopping.abort();
      await running;
    });
    server.apply({ upserts: [gatewayItem("before")], removes: [] });
    await expect.poll(() => [...items], PATIENT).toEqual(["before"]);
    const first = await shown(port);

    expect(await serving.renewed()).toBeUndefined();
    now += 61 * DAY;
    const renewed = await serving.renewed();
    expect(renewed).toBeDefined();
    expect(await serving.renewed()).toBeUndefined();
    // The new one as it would be today: a client of this test has no other clock.
    now = Date.now();
    server.renew(pairOf(await serving.issue()));

    expect(await shown(port)).not.toBe(first);
    server.apply({ upserts: [gatewayItem("after")], removes: [] });
    await expect.poll(() => [...items], PATIENT).toEqual(["before", "after"]);
    expect(states).toEqual(["connected", "synced"]);
  });
});

function pairOf({ certificate, key }: KeyPair): { readonly certificate: string; readonly key: string } {
  return { certificate, key };
}

function gatewayItem(id: string): PlanItem {
  return { type: "gateway", id, gateway: "infra/shared" };
}
