import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DataPlane } from "../../../src/dataplanes/dataplane.ts";
import { encodeItem } from "../../../src/dataplanes/remote/protocol/protocol.ts";
import { runPlanClient } from "../../../src/dataplanes/remote/subscriber/plan-client.ts";
import { PlanJournal } from "../../../src/dataplanes/remote/subscriber/plan-journal.ts";
import { PrivateKey } from "../../../src/plan/certificate.ts";
import type { ItemReport } from "../../../src/plan/item-report.ts";
import type { PlanDelta, PlanItem } from "../../../src/plan/plan.ts";
import { selfSigned } from "../support/certificates.ts";
import { PublishingServer } from "./publishing-server.ts";

const GATEWAY = "infra/shared";
const PATIENT = { timeout: 20_000, interval: 20 };

function listener(name: string, gateway = GATEWAY): PlanItem {
  return {
    type: "listener",
    id: `listener:${name}`,
    gateway,
    port: "port",
    owner: { kind: "ListenerSet", namespace: "team", name },
    section: "http",
    hostname: `${name}.example.com`,
    protocol: "HTTP",
  };
}

/** Records what reaches it and reports every listener as programmed. */
class RecordingDataPlane implements DataPlane {
  readonly features: ReadonlySet<string> = new Set();
  readonly items: Map<string, PlanItem> = new Map();
  readonly deltas: PlanDelta[] = [];
  #handler: (reports: readonly ItemReport[]) => void = () => {};

  apply(delta: PlanDelta): void {
    this.deltas.push(delta);
    for (const item of delta.upserts) this.items.set(item.id, item);
    for (const id of delta.removes) this.items.delete(id);
    this.#handler(
      delta.upserts.filter(({ type }) => type === "listener").map(({ id }) => ({ id, state: "programmed" })),
    );
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#handler = handler;
  }

  async close(): Promise<void> {}
}

interface Pod {
  readonly dataPlane: RecordingDataPlane;
  stop(): Promise<void>;
}

describe("the stream between controller and pods", () => {
  let directory: string;
  let certificate: { certificate: string; key: string };
  const stops: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "mergeway-remote-"));
    const made = selfSigned(["localhost"]);
    certificate = { certificate: made.cert, key: made.key };
  });

  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
    await rm(directory, { recursive: true, force: true });
  });

  async function controller(
    port = 0,
    reports: ItemReport[] = [],
  ): Promise<{ server: PublishingServer; port: number }> {
    const server = new PublishingServer({
      features: new Set(),
      ...certificate,
      address: "127.0.0.1",
      port,
      authorize: async (token, { gateway }) => token === `token of ${gateway}`,
    });
    server.onReport((changed) => reports.push(...changed));
    stops.push(() => server.close());
    return { server, port: await server.listen() };
  }

  async function pod(
    port: number,
    { gateway = GATEWAY, token = `token of ${GATEWAY}`, name = "pod" } = {},
  ): Promise<Pod> {
    const dataPlane = new RecordingDataPlane();
    const stopping = new AbortController();
    const journal = await PlanJournal.open(join(directory, name));
    const running = runPlanClient(
      {
        controller: `localhost:${port}`,
        authority: certificate.certificate,
        gateway,
        pod: name,
        token: async () => token,
        journal,
        dataPlane,
      },
      stopping.signal,
    );
    const stop = async (): Promise<void> => {
      stopping.abort();
      await running;
    };
    stops.push(stop);
    return { dataPlane, stop };
  }

  it("gives a pod the items of its own Gateway, and reports come back", async () => {
    const reports: ItemReport[] = [];
    const { server, port } = await controller(0, reports);
    server.apply({ upserts: [listener("a"), listener("foreign", "other/gateway")], removes: [] });
    const { dataPlane } = await pod(port);
    await expect.poll(() => [...dataPlane.items.keys()], PATIENT).toEqual(["listener:a"]);
    await expect.poll(() => reports, PATIENT).toEqual([{ id: "listener:a", state: "programmed" }]);
    server.apply({ upserts: [listener("b")], removes: ["listener:a"] });
    await expect.poll(() => [...dataPlane.items.keys()], PATIENT).toEqual(["listener:b"]);
  });

  it("reports on an item again that was removed and added", async () => {
    const reports: ItemReport[] = [];
    const { server, port } = await controller(0, reports);
    server.apply({ upserts: [listener("a")], removes: [] });
    await pod(port);
    await expect.poll(() => reports.length, PATIENT).toBe(1);
    server.apply({ upserts: [], removes: ["listener:a"] });
    server.apply({ upserts: [listener("a")], removes: [] });
    await expect.poll(() => reports.length, PATIENT).toBe(2);
  });

  it("refuses a pod whose token is not its Gateway's", async () => {
    const { server, port } = await controller();
    server.apply({ upserts: [listener("a")], removes: [] });
    const unauthorised = await pod(port, { token: "token of other/gateway", name: "unauthorised" });
    const honest = await pod(port, { name: "honest" });
    await expect.poll(() => honest.dataPlane.items.size, PATIENT).toBe(1);
    expect(unauthorised.dataPlane.items.size).toBe(0);
  });

  it("keeps serving without a controller, also after its own restart, and is then sent only what differs", async () => {
    const first = await controller();
    const key = new PrivateKey("secret pem");
    const secret: PlanItem = {
      type: "certificate",
      id: "certificate:c",
      gateway: GATEWAY,
      chain: "chain",
      key,
      names: [],
    };
    first.server.apply({ upserts: [listener("a"), listener("b"), secret], removes: [] });
    const before = await pod(first.port);
    await expect.poll(() => before.dataPlane.items.size, PATIENT).toBe(3);
    await first.server.close();
    await before.stop();

    const after = await pod(first.port);
    expect([...after.dataPlane.items.keys()].sort()).toEqual(["certificate:c", "listener:a", "listener:b"]);
    const restored = after.dataPlane.items.get("certificate:c");
    expect(restored?.type === "certificate" && restored.key.equals(key)).toBe(true);

    const second = await controller(first.port);
    second.server.apply({ upserts: [listener("a"), secret, listener("new")], removes: [] });
    await expect
      .poll(() => [...after.dataPlane.items.keys()].sort(), PATIENT)
      .toEqual(["certificate:c", "listener:a", "listener:new"]);
    const sent = after.dataPlane.deltas.slice(1).flatMap(({ upserts }) => upserts.map(({ id }) => id));
    expect(sent).toEqual(["listener:new"]);
  });

  it("starts from the complete lines of a journal that was cut", async () => {
    const { server, port } = await controller();
    server.apply({ upserts: [listener("a"), listener("b")], removes: [] });
    const before = await pod(port);
    await expect.poll(() => before.dataPlane.items.size, PATIENT).toBe(2);
    await before.stop();
    const file = join(directory, "pod", "plan.ndjson");
    const text = await readFile(file, "utf8");
    await writeFile(file, text.slice(0, -20));
    const cut = await PlanJournal.open(join(directory, "pod"));
    expect([...cut.digests.keys()]).toEqual(["listener:a"]);
    // What is written after the cut is not cut off with it.
    cut.record(new Map([["listener:c", encodeItem(listener("c"))]]), []);
    await cut.flushed();
    const again = await PlanJournal.open(join(directory, "pod"));
    expect([...again.digests.keys()]).toEqual(["listener:a", "listener:c"]);
    expect(again.digest).toBe(cut.digest);
  });

  it("keeps the journal small, and loses no item when it is rewritten", async () => {
    const kept = await PlanJournal.open(join(directory, "rewritten"));
    for (let count = 0; count < 500; count++) {
      const names = [`a${count % 7}`, "b"];
      kept.record(
        new Map(
          names.map((name) => [`listener:${name}`, `${encodeItem(listener(name))} `.repeat(1 + (count % 3))]),
        ),
        [`listener:a${(count + 3) % 7}`],
      );
    }
    await kept.flushed();
    const again = await PlanJournal.open(join(directory, "rewritten"));
    expect(again.digest).toBe(kept.digest);
    expect(new Map(again.digests)).toEqual(new Map(kept.digests));
    expect(
      (await readFile(join(directory, "rewritten", "plan.ndjson"), "utf8")).split("\n").length,
    ).toBeLessThan(300);
  });
});
