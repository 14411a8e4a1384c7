import { expect, test, vi } from "vitest";
import type { Resource } from "../../src/api/resource.ts";
import { takeSnapshot } from "../../src/status/metrics/state-snapshot.ts";
import { stateText } from "../../src/status/metrics/state-text.ts";
import { expectedSamples } from "../status/metrics/expected-samples.ts";
import { readExposition, sampleText } from "../status/metrics/exposition-reader.ts";
import { CLASSES, Cluster, GATEWAYS, ROUTES, SETS } from "./cluster.ts";
import { EDITS } from "./edits.ts";
import { World, within } from "./world.ts";

vi.mock("node:timers/promises", () => import("./timers-promises.ts"));

const KINDS: readonly (readonly [string, string])[] = [
  [CLASSES, "GatewayClass"],
  [GATEWAYS, "Gateway"],
  [SETS, "ListenerSet"],
  [ROUTES, "HTTPRoute"],
];

test.each([1, 2, 3, 4, 5])(
  "metrics of the leader are the statuses that it has written, in history %i",
  async (seed) => {
    const { told, written } = await within(new World(seed), async (world) => {
      const cluster = new Cluster(world, { controllers: 2, pods: 2, isUneven: false });
      for (let count = 0; count < 6; count++)
        world.outside(1_000 * count, () => world.random.pick(EDITS)(cluster));
      await world.runUntil(60_000);
      const view = cluster.aliveControllers.find(({ isLeading }) => isLeading)?.state;
      if (view === undefined) throw new Error("nobody leads");
      const text: string[] = [];
      for await (const piece of stateText(takeSnapshot(view))) text.push(piece);
      const objects = KINDS.flatMap(([collection, kind]) =>
        cluster.server.objects(collection).flatMap((object) => {
          const isWritten = object["status"] !== undefined;
          return isWritten
            ? expectedSamples({ ...object, kind } as unknown as Resource, object["status"])
            : [];
        }),
      );
      cluster.discard();
      return { told: readExposition(text.join("")), written: objects };
    });
    const state = told.filter(({ name }) => name.startsWith("gatewayapi_"));
    expect(state.length).toBeGreaterThan(20);
    expect(state.map(sampleText).sort()).toEqual(written.map(sampleText).sort());
  },
);
