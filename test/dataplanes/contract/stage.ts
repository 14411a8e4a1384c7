import { afterEach, beforeEach } from "vitest";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { Backends } from "../support/http-peers.ts";
import { type CreateDataPlane, type PlaneOptions, PlaneUnderTest } from "../support/plane-under-test.ts";
import { Sockets } from "../support/sockets.ts";

/** What the tests of one part of the contract share; everything is closed after each test. */
export interface Stage {
  readonly backends: Backends;
  readonly sockets: Sockets;
  start(items: readonly PlanItem[], options?: Partial<PlaneOptions>): Promise<PlaneUnderTest>;
  /** Something else to be closed. */
  onRelease(release: () => unknown): void;
}

export function setStage(create: CreateDataPlane): Stage {
  const releases: (() => unknown)[] = [];
  let backends: Backends;
  let sockets: Sockets;
  beforeEach(() => {
    backends = new Backends();
    sockets = new Sockets();
  });
  afterEach(async () => {
    await Promise.all(releases.splice(0).map((release) => release()));
    await sockets.release();
    await backends.release();
  });
  return {
    get backends() {
      return backends;
    },
    get sockets() {
      return sockets;
    },
    async start(items, options = {}) {
      const plane = await PlaneUnderTest.start(create, items, options);
      releases.push(() => plane.close());
      return plane;
    },
    onRelease(release) {
      releases.push(release);
    },
  };
}
