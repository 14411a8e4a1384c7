import { expect, test } from "vitest";
import { plots } from "../../bench/peers/plots.ts";
import type { Bystanders, Cost, PeersRun, Restart, SizeResult, Spread } from "../../bench/peers/results.ts";
import { barLines, report } from "../../bench/peers/table.ts";

const spread = (median: number): Spread => ({
  count: 10,
  median,
  p99: median * 2,
  longest: median * 3,
  missed: 0,
});
const others: Bystanders = { requests: 100, failed: 0, reasons: {}, times: spread(1), outageMs: 0 };
const cost = (bytes: number): Cost => ({
  cpuSeconds: 1,
  residentBytes: bytes,
  peakBytes: bytes,
  workingSetBytes: bytes,
  sumBytes: bytes,
  containers: 1,
  restarts: 0,
});
const restart: Restart = {
  readySeconds: 3,
  writes: { accepted: {}, refused: {} },
  statusWrites: 0,
  others,
  servedSeconds: 4,
};

function sizeResult(size: number, factor: number): SizeResult {
  return {
    size,
    growth: {
      setsAdded: size,
      objects: size * 20,
      creationSeconds: 10,
      trueSeconds: 12 * factor,
      trueAfterSeconds: 2,
      allTrue: true,
      tally: {
        sets: size,
        setsProgrammed: size,
        setsCounted: size,
        routes: size * 16,
        routesTrue: size * 16,
      },
      lies: { programmedNotAnswering: 0, answeringNotProgrammed: 0, longestMs: 0, lasting: 0, probes: 9 },
      others,
      writes: {
        accepted: { "listenersets/status": size, "httproutes/status": size * 16, "gateways/status": 5 },
        refused: {},
      },
      cost: { controller: cost(4e8), agent: cost(1e8), "data plane": cost(2e8), "API server": cost(9e8) },
      sweep: { requests: size * 16, failed: 0, reasons: {}, complete: true },
      driverCpuSeconds: 1,
    },
    propagation: {
      set: spread(40 * factor),
      route: spread(20 * factor),
      certificate: spread(9),
      endpoint: spread(8),
    },
    handOver: { times: spread(30), requests: 50, failed: 0, reasons: {} },
    restarts: {
      controller: restart,
      controllerChange: restart,
      dataPlaneRollout: restart,
      dataPlaneLoss: restart,
    },
    leaderChanges: {
      runs: 10,
      lies: { programmedNotAnswering: 0, answeringNotProgrammed: 0, longestMs: 0, lasting: 0, probes: 9 },
      true: spread(900),
      others,
    },
  };
}

function runOf(own: SizeResult, peer: readonly SizeResult[]): PeersRun {
  return {
    date: "2026-01-01",
    commit: "abc",
    machine: "2 × CPU",
    routesPerSet: 16,
    sizes: [2_500],
    contestants: [
      { id: "mergeway-envoy", title: "Mergeway, Envoy", sizes: [own] },
      { id: "envoy-gateway", title: "Envoy Gateway", sizes: peer },
    ],
  };
}

test("the table has the figure of each contestant and its ratio to the first", () => {
  const text = report(runOf(sizeResult(2_500, 1), [sizeResult(2_500, 30)]), []);
  expect(text).toContain("| a route, median | 20.0 ms | 600 ms | 30 |");
  expect(text).toContain("| per ListenerSet | 1.00 | 1.00 | 1.0 |");
});

test("a contestant that did not reach a size has dashes there, and the page says so", () => {
  const text = report(runOf(sizeResult(2_500, 1), []), []);
  expect(text).toContain("| a route, median | 20.0 ms | – |  |");
  expect(text).toContain("Envoy Gateway did not get to 2,500 sets.");
});

test("a run within all bars meets all of them", () => {
  const bars = barLines(runOf(sizeResult(2_500, 1), []));
  expect(bars.length).toBeGreaterThan(10);
  expect(bars.filter(({ met }) => !met)).toEqual([]);
});

test("fewer than ten changes of leader prove nothing", () => {
  const own = sizeResult(2_500, 1);
  const changes = own.leaderChanges;
  if (changes === undefined) throw new Error("no changes of leader");
  const missed = barLines(runOf({ ...own, leaderChanges: { ...changes, runs: 9 } }, [])).filter(
    ({ met }) => !met,
  );
  expect(missed.map(({ text }) => text)).toEqual([
    "statuses that were false for more than 2 s in 10 changes of leader: – (at most 0)",
  ]);
});

test("a run that has not reached 2,500 sets misses the bars, unless it is a short one", () => {
  const run = runOf(sizeResult(500, 1), []);
  expect(barLines(run)).toEqual([{ met: false, text: "2,500 sets were not measured: no bar was checked" }]);
  expect(report(run, [])).toContain("- MISSED: 2,500 sets were not measured");
  expect(barLines({ ...run, short: true })).toEqual([]);
});

test("memory is held against its bar at its highest", () => {
  const own = sizeResult(2_500, 1);
  const agent = { ...cost(1e8), peakBytes: 3e8 };
  const growth = { ...own.growth, cost: { ...own.growth.cost, agent } };
  const missed = barLines(runOf({ ...own, growth }, [])).filter(({ met }) => !met);
  expect(missed.map(({ text }) => text)).toEqual(["agent's memory, highest: 300 MB (at most 200 MB)"]);
});

test("a route that takes longer than its bar misses it", () => {
  const missed = barLines(runOf(sizeResult(2_500, 2), [])).filter(({ met }) => !met);
  expect(missed.map(({ text }) => text)).toEqual([
    "a route is served after, median: 40.0 ms (at most 25.0 ms)",
    "a set with route is served after, median: 80.0 ms (at most 50.0 ms)",
  ]);
});

test("a false status and a failed request of another tenant miss their bars", () => {
  const own = sizeResult(2_500, 1);
  const growth = {
    ...own.growth,
    lies: { ...own.growth.lies, answeringNotProgrammed: 1 },
    others: { ...others, failed: 1 },
  };
  const missed = barLines(runOf({ ...own, growth }, [])).filter(({ met }) => !met);
  expect(missed.map(({ text }) => text)).toEqual([
    "statuses that were false for more than 2 s: 1 (at most 0)",
    "failed requests of other tenants during creation: 1 (at most 0)",
  ]);
});

test("restarts that were not measured do not meet their bars", () => {
  const { restarts: _, ...own } = sizeResult(2_500, 1);
  const missed = barLines(runOf(own, [])).filter(({ met }) => !met);
  expect(missed).toHaveLength(2);
});

test("a greater figure is a higher bar in the plot", () => {
  const [propagation] = plots(runOf(sizeResult(2_500, 1), [sizeResult(2_500, 30)]));
  const panel = propagation?.svg.split("<g ").find((part) => part.includes(">a route, median<")) ?? "";
  const heights = [...panel.matchAll(/height="([\d.]+)" fill="#[0-9a-f]{6}"/g)].map(([, height]) =>
    Number(height),
  );
  expect(heights).toHaveLength(2);
  expect(heights[1]).toBeGreaterThan(heights[0] ?? 0);
  expect(panel).toContain(">600 ms<");
});
