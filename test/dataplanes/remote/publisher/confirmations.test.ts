import { beforeEach, describe, expect, it } from "vitest";
import {
  Confirmations,
  type ConfirmedReplicas,
  LAG_LIMITS,
} from "../../../../src/dataplanes/remote/publisher/confirmations.ts";

const GATEWAY = "infra/shared";
const { lagMs: LAG_MS, firstMs: FIRST_MS } = LAG_LIMITS;

describe("which pods lag", () => {
  let now: number;
  let told: ConfirmedReplicas[];
  let confirmations: Confirmations;

  beforeEach(() => {
    now = 1_000;
    told = [];
    confirmations = new Confirmations({
      tell: (_gateway, confirmed) => told.push(confirmed),
      now: () => now,
    });
  });

  function pass(ms: number): void {
    now += ms;
    confirmations.look();
  }

  /** Two ready pods, connected, both with plan `1`. */
  function twoPods(): void {
    confirmations.planned(GATEWAY, "1");
    confirmations.exist(GATEWAY, [
      { name: "a", isReady: true },
      { name: "b", isReady: true },
    ]);
    for (const name of ["a", "b"]) {
      confirmations.joined(GATEWAY, name);
      confirmations.said(GATEWAY, name, "1");
    }
  }

  const NONE = { replicas: 2, lagging: [] };
  const B = { replicas: 2, lagging: ["b"] };

  it("does not report a pod within the time that a delta takes", () => {
    twoPods();
    for (let plan = 2; plan < 2_000; plan++) {
      confirmations.planned(GATEWAY, String(plan));
      pass(LAG_MS / 100);
      for (const name of ["a", "b"]) confirmations.said(GATEWAY, name, String(plan));
    }
    expect(told).toEqual([]);
  });

  it("reports a pod that has not confirmed the newest plan in time, until it does", () => {
    twoPods();
    confirmations.planned(GATEWAY, "2");
    confirmations.said(GATEWAY, "a", "2");
    pass(LAG_MS - 1);
    expect(told).toEqual([]);
    pass(1);
    expect(told).toEqual([B]);
    pass(60_000);
    expect(told).toEqual([B]);
    confirmations.said(GATEWAY, "b", "2");
    expect(told).toEqual([B, NONE]);
  });

  it("does not report a pod under a steady flow of changes that it follows", () => {
    twoPods();
    for (let plan = 2; plan < 500; plan++) {
      confirmations.planned(GATEWAY, String(plan));
      confirmations.said(GATEWAY, "a", String(plan - 1));
      confirmations.said(GATEWAY, "b", String(plan - 1));
      pass(100);
    }
    expect(told).toEqual([]);
  });

  it("reports a pod that confirms only plans of long ago", () => {
    twoPods();
    for (let plan = 2; plan < 300; plan++) {
      confirmations.planned(GATEWAY, String(plan));
      confirmations.said(GATEWAY, "a", String(plan));
      // 150 plans of 100 ms behind.
      confirmations.said(GATEWAY, "b", String(Math.max(1, plan - 150)));
      pass(100);
    }
    expect(told).toEqual([B]);
  });

  it("takes a digest that only another controller had as proof that the pod is alive", () => {
    twoPods();
    for (let step = 0; step < 200; step++) {
      confirmations.planned(GATEWAY, `here ${step}`);
      for (const name of ["a", "b"]) confirmations.said(GATEWAY, name, `there ${step}`);
      pass(1_000);
    }
    expect(told).toEqual([]);
    pass(LAG_MS);
    expect(told).toEqual([{ replicas: 2, lagging: ["a", "b"] }]);
  });

  it("does not report a pod that passes through an old plan on its way along another controller's changes", () => {
    twoPods();
    const say = (plan: string): void => {
      for (const name of ["a", "b"]) confirmations.said(GATEWAY, name, plan);
    };
    for (const plan of ["between", "2"]) {
      confirmations.planned(GATEWAY, plan);
      say(plan);
    }
    pass(10 * LAG_MS);
    // Back to 1 in one step here, by way of what was between there.
    confirmations.planned(GATEWAY, "1");
    say("between");
    pass(1_000);
    expect(told).toEqual([]);
    say("1");
    pass(10 * LAG_MS);
    expect(told).toEqual([]);
  });

  it("reports a pod that went back to an old plan", () => {
    twoPods();
    confirmations.planned(GATEWAY, "2");
    for (const name of ["a", "b"]) confirmations.said(GATEWAY, name, "2");
    pass(10 * LAG_MS);
    confirmations.said(GATEWAY, "b", "1");
    pass(LAG_MS);
    expect(told).toEqual([B]);
  });

  it("counts a pod that returns to a plan that is the newest again", () => {
    twoPods();
    confirmations.planned(GATEWAY, "2");
    pass(LAG_MS / 2);
    confirmations.planned(GATEWAY, "1");
    pass(10 * LAG_MS);
    expect(told).toEqual([]);
  });

  it("still reports a lagging pod without a stream, until it is gone from its Service", () => {
    twoPods();
    confirmations.planned(GATEWAY, "2");
    confirmations.said(GATEWAY, "a", "2");
    pass(LAG_MS);
    confirmations.left(GATEWAY, "b");
    pass(60_000);
    expect(told).toEqual([B]);
    confirmations.exist(GATEWAY, [{ name: "a", isReady: true }]);
    expect(told).toEqual([B, { replicas: 1, lagging: [] }]);
  });

  it("does not report a pod that left the stream with the newest plan", () => {
    twoPods();
    confirmations.left(GATEWAY, "b");
    pass(10 * LAG_MS);
    expect(told).toEqual([]);
  });

  it("forgets a pod that has no stream and is not in its Service", () => {
    confirmations.planned(GATEWAY, "1");
    confirmations.joined(GATEWAY, "b");
    confirmations.said(GATEWAY, "b", "1");
    confirmations.planned(GATEWAY, "2");
    pass(LAG_MS);
    confirmations.left(GATEWAY, "b");
    expect(told).toEqual([
      { replicas: 1, lagging: ["b"] },
      { replicas: 0, lagging: [] },
    ]);
  });

  it("gives a pod that was never up to date more time", () => {
    confirmations.planned(GATEWAY, "1");
    confirmations.exist(GATEWAY, [
      { name: "a", isReady: true },
      { name: "b", isReady: true },
      { name: "starting", isReady: false },
    ]);
    confirmations.joined(GATEWAY, "a");
    confirmations.said(GATEWAY, "a", "1");
    pass(FIRST_MS - 1);
    expect(told).toEqual([]);
    pass(1);
    expect(told).toEqual([{ replicas: 3, lagging: ["b"] }]);
  });

  it("gives that time also to a pod with only unknown digests: another release may have made its plan", () => {
    confirmations.planned(GATEWAY, "1");
    confirmations.joined(GATEWAY, "a");
    confirmations.said(GATEWAY, "a", "of another version");
    pass(FIRST_MS - 1);
    expect(told).toEqual([]);
    pass(1);
    expect(told).toEqual([{ replicas: 1, lagging: ["a"] }]);
  });

  it("does not report connected pods of a version that sends no digests", () => {
    confirmations.planned(GATEWAY, "1");
    confirmations.exist(GATEWAY, [{ name: "old", isReady: true }]);
    confirmations.joined(GATEWAY, "old");
    pass(10 * FIRST_MS);
    expect(told).toEqual([]);
  });

  it("keeps Gateways apart", () => {
    twoPods();
    confirmations.planned("infra/other", "9");
    pass(10 * FIRST_MS);
    expect(told).toEqual([]);
    expect(confirmations.confirmed().get(GATEWAY)).toEqual(NONE);
  });
});
