/** Logic that loses reports: one that must be found out, and two that must not matter. */
import { vi } from "vitest";
import { ReplicaReports } from "../../src/dataplanes/remote/publisher/replica-reports.ts";
import { SimulatedPlane } from "./simulated-pod.ts";
import { theWorld } from "./world.ts";

/**
 * The logic of before, in which the simulation must find the defect that it was made for: a report
 * of an item that the controller does not have is dropped, speaks of no version, and is neither
 * kept nor asked for again; and nobody concludes from a pod that serves the whole plan that it
 * serves each item. Until the mocks are restored.
 */
export function forgetEarlyReports(): void {
  const known = new WeakMap<ReplicaReports, Set<string>>();
  const itemsOf = (reports: ReplicaReports): Set<string> => {
    const items = known.get(reports) ?? new Set();
    known.set(reports, items);
    return items;
  };
  const { take, planned, removed } = ReplicaReports.prototype;
  vi.spyOn(ReplicaReports.prototype, "planned").mockImplementation(function (
    this: ReplicaReports,
    gateway,
    items,
  ) {
    for (const { id } of items) itemsOf(this).add(id);
    planned.call(this, gateway, items);
  });
  vi.spyOn(ReplicaReports.prototype, "removed").mockImplementation(function (
    this: ReplicaReports,
    gateway,
    ids,
  ) {
    for (const id of ids) itemsOf(this).delete(id);
    removed.call(this, gateway, ids);
  });
  vi.spyOn(ReplicaReports.prototype, "take").mockImplementation(function (
    this: ReplicaReports,
    replica,
    { reports },
  ) {
    const items = itemsOf(this);
    const kept = reports.filter(({ id }) => items.has(id)).map(({ of: _, ...report }) => report);
    take.call(this, replica, { type: "report", reports: kept });
    return true;
  });
  vi.spyOn(ReplicaReports.prototype, "look").mockImplementation(() => {});
}

/** A controller that loses every fourth message with reports: it must ask for them again. */
export function loseReportsAtControllers(): void {
  const { take } = ReplicaReports.prototype;
  vi.spyOn(ReplicaReports.prototype, "take").mockImplementation(function (
    this: ReplicaReports,
    replica,
    message,
  ) {
    const isLost = message.reports.length > 0 && theWorld().random.chance(0.25);
    return take.call(this, replica, isLost ? { ...message, reports: [], forgets: [] } : message);
  });
}

/**
 * A data plane that does not say of every third item that it serves it: that it serves the whole
 * plan must be enough. What it rejects, it says.
 */
export function loseReportsAtPlanes(): void {
  const { onReport } = SimulatedPlane.prototype;
  vi.spyOn(SimulatedPlane.prototype, "onReport").mockImplementation(function (this: SimulatedPlane, handler) {
    const rejected = new Set<string>();
    onReport.call(this, (reports) => {
      const kept = reports.filter(({ id, state }) => {
        if (state === "rejected") rejected.add(id);
        return rejected.has(id) || !theWorld().random.chance(0.3);
      });
      if (kept.length > 0) handler(kept);
    });
  });
}
