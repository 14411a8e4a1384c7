import { beforeEach, describe, expect, it } from "vitest";
import type { VersionReport } from "../../../../src/dataplanes/remote/protocol/protocol.ts";
import { ReportState } from "../../../../src/dataplanes/remote/protocol/report-state.ts";
import {
  REPORT_LIMITS,
  ReplicaReports,
  type ReportingReplica,
} from "../../../../src/dataplanes/remote/publisher/replica-reports.ts";
import type { ItemReport } from "../../../../src/plan/item-report.ts";

const GATEWAY = "infra/shared";
const A: ReportingReplica = { id: `${GATEWAY} a`, gateway: GATEWAY };
const B: ReportingReplica = { id: `${GATEWAY} b`, gateway: GATEWAY };
const { unconfirmedMs: UNCONFIRMED_MS, repairMs: REPAIR_MS } = REPORT_LIMITS;

describe("a report of a pod", () => {
  let now: number;
  let plan: Map<string, { readonly gateway: string; readonly version: string }>;
  let told: ItemReport[];
  let reports: ReplicaReports;

  beforeEach(() => {
    now = 1_000;
    plan = new Map();
    told = [];
    reports = new ReplicaReports({
      gatewayOf: (id) => plan.get(id)?.gateway,
      versionOf: (id) => plan.get(id)?.version,
      release: "1.0",
      now: () => now,
    });
    reports.onChange((changed) => told.push(...changed));
  });

  function planned(id: string, version: string, gateway = GATEWAY): void {
    plan.set(id, { gateway, version });
    reports.planned(gateway, [{ id, awaited: true }]);
  }

  function removed(id: string): void {
    plan.delete(id);
    reports.removed(GATEWAY, [id]);
  }

  function say(replica: ReportingReplica, ...given: readonly VersionReport[]): void {
    reports.take(replica, { type: "report", reports: given });
  }

  function pass(ms: number, upToDate: readonly string[] = []): void {
    now += ms;
    reports.look(() => upToDate);
  }

  const programmed = (of: string, id = "x"): VersionReport => ({ id, of, state: "programmed" });
  const PROGRAMMED: ItemReport = { id: "x", state: "programmed" };
  const PENDING: ItemReport = { id: "x", state: "pending" };

  it("counts when the item arrives later", () => {
    say(A, programmed("v1"));
    expect(told).toEqual([]);
    planned("x", "v1");
    expect(told).toEqual([PROGRAMMED]);
  });

  it("does not count for another version of the item, in either order", () => {
    say(A, programmed("v1"));
    planned("x", "v2");
    pass(10 * UNCONFIRMED_MS);
    expect(told).toEqual([]);
    say(A, programmed("v2"));
    expect(told).toEqual([PROGRAMMED]);
  });

  it("stays valid when the item changes, until the time limit without a new report", () => {
    planned("x", "v1");
    say(A, programmed("v1"));
    planned("x", "v2");
    pass(UNCONFIRMED_MS - 1);
    expect(told).toEqual([PROGRAMMED]);
    pass(1);
    pass(60_000);
    expect(told).toEqual([PROGRAMMED, PENDING]);
    say(A, programmed("v2"));
    expect(told).toEqual([PROGRAMMED, PENDING, PROGRAMMED]);
  });

  it("that rejected an item stays when its pod goes, until another pod serves the whole plan", () => {
    const rejected: ItemReport = { id: "x", state: "rejected", reason: "PortUnavailable", message: "taken" };
    planned("x", "v1");
    say(A, { ...rejected, of: "v1" });
    reports.forget(A);
    pass(60_000);
    expect(told).toEqual([rejected]);
    say(B);
    pass(REPAIR_MS, [B.id]);
    expect(told).toEqual([rejected, PROGRAMMED]);
  });

  it("is not passed on twice when a change is confirmed at once", () => {
    planned("x", "v1");
    say(A, programmed("v1"));
    planned("x", "v2");
    say(A, programmed("v2"));
    pass(60_000);
    expect(told).toEqual([PROGRAMMED]);
  });

  it("does not get a new time limit with each unconfirmed change", () => {
    planned("x", "v1");
    say(A, programmed("v1"));
    for (let version = 2; version < 6; version++) {
      planned("x", `v${version}`);
      pass(UNCONFIRMED_MS / 2);
    }
    expect(told).toEqual([PROGRAMMED, PENDING]);
  });

  it("counts for an item that is removed and added unchanged, since the pod never lost it", () => {
    planned("x", "v1");
    say(A, programmed("v1"));
    removed("x");
    planned("x", "v1");
    expect(told).toEqual([PROGRAMMED, PROGRAMMED]);
  });

  it("does not count for a new item of the same id after the pod has forgotten it", () => {
    planned("x", "v1");
    say(A, programmed("v1"));
    removed("x");
    reports.take(A, { type: "report", reports: [], forgets: ["x"] });
    planned("x", "v1");
    expect(told).toEqual([PROGRAMMED]);
  });

  it("makes the item rejected while at least one pod rejects it", () => {
    planned("x", "v1");
    say(A, programmed("v1"));
    const rejected: VersionReport = { id: "x", of: "v1", state: "rejected", reason: "PortUnavailable" };
    say(B, rejected);
    const { of: _, ...said } = rejected;
    expect(told).toEqual([PROGRAMMED, said]);
    reports.forget(B);
    expect(told).toEqual([PROGRAMMED, said, PROGRAMMED]);
  });

  it("stays valid when the pod is lost", () => {
    planned("x", "v1");
    say(A, programmed("v1"));
    reports.forget(A);
    pass(60_000);
    expect(told).toEqual([PROGRAMMED]);
  });

  it("is void after a complete list of reports without it", () => {
    planned("x", "v1");
    planned("y", "v1");
    say(A, { id: "x", of: "v1", state: "rejected" }, programmed("v1", "y"));
    reports.take(A, { type: "report", whole: true, reports: [programmed("v1")] });
    expect(told.at(-1)).toEqual(PROGRAMMED);
    reports.take(B, { type: "report", whole: true, reports: [] });
    expect(told).toHaveLength(3);
  });

  it("counts for any version when another release sent the plan: digests cannot be compared", () => {
    planned("x", "v1");
    reports.take(A, { type: "report", release: "1.1", reports: [programmed("other encoding")] });
    expect(told).toEqual([PROGRAMMED]);
  });

  it("counts without a version from pods of protocol 1, but not for an item that is added later", () => {
    say(A, { id: "x", state: "programmed" });
    planned("x", "v1");
    expect(told).toEqual([PROGRAMMED]);
    planned("x", "v2");
    pass(60_000);
    expect(told).toEqual([PROGRAMMED]);
    removed("x");
    planned("x", "v3");
    pass(60_000);
    expect(told).toEqual([PROGRAMMED]);
  });

  it("counts for the pod's own Gateway only, also when the item arrives later", () => {
    planned("foreign", "v1", "other/gateway");
    say(A, programmed("v1", "foreign"), programmed("v1", "later"));
    planned("later", "v1", "other/gateway");
    expect(told).toEqual([]);
  });

  it("is not needed when a pod serves the whole plan and rejects no item", () => {
    planned("x", "v1");
    pass(REPAIR_MS - 1, [A.id]);
    expect(told).toEqual([]);
    pass(1, [A.id]);
    expect(told).toEqual([PROGRAMMED]);
    planned("y", "v1");
    say(A, { id: "y", of: "v1", state: "rejected" });
    pass(60_000, [A.id]);
    expect(told.slice(1)).toEqual([{ id: "y", state: "rejected" }]);
  });

  describe("on an item that the controller does not have", () => {
    const many = (count: number): readonly VersionReport[] =>
      Array.from({ length: count }, (_, i) => ({
        id: `item-${i}`,
        of: "v1",
        state: "rejected",
        message: "m".repeat(1_000),
      }));

    it("is kept up to a limit, and is asked for again beyond it", () => {
      const most = Math.floor(REPORT_LIMITS.ahead / 1_100);
      expect(isAgreed(many(most - 100))).toBe(true);
      expect(isAgreed(many(most + 100))).toBe(false);
      for (const { id } of many(200)) planned(id, "v1");
      now += 10_000;
      expect(isAgreed(many(most + 100))).toBe(true);
    });

    /** Whether controller and pod agree after the pod has told all of these. */
    function isAgreed(given: readonly VersionReport[]): boolean {
      const state = new ReportState();
      for (const report of given) state.set(report);
      return reports.take(A, { type: "report", whole: true, reports: given, told: state.digest });
    }
  });
});
