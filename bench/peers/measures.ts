// Every figure of the table and of the plots, by its name: what it is of one size's result.

import type { Cost, SizeResult } from "./results.ts";

export type Unit = "s" | "ms" | "MB" | "count" | "per";

export interface Measure {
  readonly title: string;
  readonly unit: Unit;
  readonly of: (result: SizeResult) => number | undefined;
  /** Ratios say nothing of figures that are 0 at their best. */
  readonly ratio?: false;
}

export interface Group {
  readonly title: string;
  readonly measures: readonly Measure[];
}

const PARTS = ["controller", "agent", "data plane", "API server"] as const;
const CHANGES: Readonly<Record<string, string>> = {
  set: "a set with certificate and route",
  route: "a route",
  certificate: "a renewed certificate",
  endpoint: "a changed endpoint",
};

function costOf(part: string, value: (cost: Cost) => number): (result: SizeResult) => number | undefined {
  return ({ growth }) => {
    const cost = growth.cost[part];
    return cost === undefined ? undefined : value(cost);
  };
}

function workingSet(part: string): Measure {
  const of = costOf(part, (cost) => cost.workingSetBytes / 1e6);
  return { title: `memory, ${part}, working set`, unit: "MB", of };
}

function writesOf(kind: string): (result: SizeResult) => number {
  return ({ growth }) => growth.writes.accepted[`${kind}/status`] ?? 0;
}

/** Where samples missed their limit, the figure is not the whole truth: the table then says so. */
export function missedOf(result: SizeResult, kind: string): number {
  return result.propagation?.[kind]?.missed ?? 0;
}

function propagation(kind: string, which: "median" | "p99"): (result: SizeResult) => number | undefined {
  return (result) => {
    const spread = result.propagation?.[kind];
    return spread === undefined || spread.count === 0 ? undefined : spread[which];
  };
}

type Restarts = NonNullable<SizeResult["restarts"]>;

function restart(value: (restarts: Restarts) => number | undefined): Measure["of"] {
  return ({ restarts }) => (restarts === undefined ? undefined : value(restarts));
}

type LeaderChanges = NonNullable<SizeResult["leaderChanges"]>;

function leaders(value: (changes: LeaderChanges) => number | undefined): Measure["of"] {
  return ({ leaderChanges }) => (leaderChanges === undefined ? undefined : value(leaderChanges));
}

/** By its title, which is unique in the table. */
export function measureTitled(title: string): Measure {
  const found = GROUPS.flatMap(({ measures }) => measures).find((each) => each.title === title);
  if (found === undefined) throw new Error(`there is no figure "${title}"`);
  return found;
}

export const GROUPS: readonly Group[] = [
  {
    title: "creation",
    measures: [
      { title: "objects created in", unit: "s", of: ({ growth }) => growth.creationSeconds },
      {
        title: "all statuses true, from the first creation",
        unit: "s",
        of: ({ growth }) => (growth.allTrue ? growth.trueSeconds : undefined),
      },
      {
        title: "sets not programmed at the end",
        unit: "count",
        ratio: false,
        of: ({ growth: { tally } }) => tally.sets - tally.setsProgrammed,
      },
      {
        title: "lies: programmed, not answering",
        unit: "count",
        ratio: false,
        of: ({ growth }) => growth.lies.programmedNotAnswering,
      },
      {
        title: "lies: answering, not programmed",
        unit: "count",
        ratio: false,
        of: ({ growth }) => growth.lies.answeringNotProgrammed,
      },
      { title: "longest lie", unit: "s", ratio: false, of: ({ growth }) => growth.lies.longestMs / 1000 },
      {
        title: "requests that failed when all was to be true",
        unit: "count",
        ratio: false,
        of: ({ growth }) => growth.sweep.failed,
      },
      {
        title: "other tenants meanwhile: failed requests",
        unit: "count",
        ratio: false,
        of: ({ growth }) => growth.others.failed,
      },
      {
        title: "other tenants meanwhile: p99",
        unit: "ms",
        of: ({ growth }) => growth.others.times.p99,
      },
      {
        title: "other tenants meanwhile: slowest",
        unit: "ms",
        of: ({ growth }) => growth.others.times.longest,
      },
    ],
  },
  {
    title: "status writes while the sets came",
    measures: [
      {
        title: "per ListenerSet",
        unit: "per",
        of: (result) => writesOf("listenersets")(result) / result.growth.setsAdded,
      },
      {
        title: "per HTTPRoute",
        unit: "per",
        of: (result) => writesOf("httproutes")(result) / (result.growth.setsAdded * 16),
      },
      { title: "of the Gateway", unit: "count", of: writesOf("gateways") },
      {
        title: "of the Gateway, per minute",
        unit: "per",
        of: (result) => (writesOf("gateways")(result) * 60) / Math.max(60, result.growth.trueSeconds),
      },
    ],
  },
  {
    title: "CPU while the sets came",
    measures: PARTS.map((part) => ({
      title: `CPU, ${part}`,
      unit: "s",
      of: costOf(part, (cost) => cost.cpuSeconds),
    })),
  },
  {
    title: "resident memory at the end and at its highest, and the working set",
    measures: PARTS.flatMap((part): readonly Measure[] => [
      { title: `memory, ${part}`, unit: "MB", of: costOf(part, (cost) => cost.residentBytes / 1e6) },
      { title: `memory, ${part}, highest`, unit: "MB", of: costOf(part, (cost) => cost.peakBytes / 1e6) },
      ...(part === "API server" ? [] : [workingSet(part)]),
    ]),
  },
  {
    title: "from acceptance by the API server to the first right answer",
    measures: [
      ...Object.entries(CHANGES).flatMap(([kind, title]): readonly Measure[] => [
        { title: `${title}, median`, unit: "ms", of: propagation(kind, "median") },
        { title: `${title}, p99`, unit: "ms", of: propagation(kind, "p99") },
      ]),
      {
        title: "changes that took longer than their limit",
        unit: "count",
        ratio: false,
        of: (result) => Object.keys(CHANGES).reduce((sum, kind) => sum + missedOf(result, kind), 0),
      },
    ],
  },
  {
    title: "hand-over of a hostname",
    measures: [
      {
        title: "median",
        unit: "ms",
        of: ({ handOver: { times } }) => (times.count === 0 ? undefined : times.median),
      },
      {
        title: "longest",
        unit: "ms",
        of: ({ handOver: { times } }) => (times.count === 0 ? undefined : times.longest),
      },
      { title: "failed requests", unit: "count", ratio: false, of: ({ handOver }) => handOver.failed },
    ],
  },
  {
    title: "the leader told to end, each time in a burst of 50 new sets",
    measures: [
      { title: "changes of leader", unit: "count", ratio: false, of: leaders(({ runs }) => runs) },
      {
        title: "lies in all of them",
        unit: "count",
        ratio: false,
        of: leaders(({ lies }) => lies.programmedNotAnswering + lies.answeringNotProgrammed),
      },
      {
        title: "longest lie in all of them",
        unit: "s",
        ratio: false,
        of: leaders(({ lies }) => lies.longestMs / 1000),
      },
      {
        title: "all statuses true after the last creation, median",
        unit: "ms",
        of: leaders(({ true: times }) => (times.count === 0 ? undefined : times.median)),
      },
      {
        title: "all statuses true after the last creation, longest",
        unit: "ms",
        of: leaders(({ true: times }) => (times.missed > 0 ? undefined : times.longest)),
      },
      {
        title: "failed requests of other tenants",
        unit: "count",
        ratio: false,
        of: leaders(({ others }) => others.failed),
      },
    ],
  },
  {
    title: "restart, nothing changed",
    measures: [
      { title: "controller: ready after", unit: "s", of: restart(({ controller }) => ready(controller)) },
      {
        title: "controller: a change is served after",
        unit: "s",
        of: restart(({ controllerChange }) =>
          controllerChange.problem === undefined ? controllerChange.servedSeconds : undefined,
        ),
      },
      {
        title: "controller: status writes",
        unit: "count",
        ratio: false,
        of: restart(({ controller }) => controller.statusWrites),
      },
      {
        title: "controller: failed requests",
        unit: "count",
        ratio: false,
        of: restart(
          ({ controller, controllerChange }) => controller.others.failed + controllerChange.others.failed,
        ),
      },
      {
        title: "data plane, rolled out: ready after",
        unit: "s",
        of: restart(({ dataPlaneRollout }) => ready(dataPlaneRollout)),
      },
      {
        title: "data plane, rolled out: failed requests",
        unit: "count",
        ratio: false,
        of: restart(({ dataPlaneRollout }) => dataPlaneRollout.others.failed),
      },
      {
        title: "data plane, only pod lost: no answers for",
        unit: "s",
        of: restart(({ dataPlaneLoss }) => dataPlaneLoss.others.outageMs / 1000),
      },
      {
        title: "data plane, rolled out: status writes",
        unit: "count",
        ratio: false,
        of: restart(({ dataPlaneRollout }) => dataPlaneRollout.statusWrites),
      },
      {
        title: "data plane, only pod lost: status writes",
        unit: "count",
        ratio: false,
        of: restart(({ dataPlaneLoss }) => dataPlaneLoss.statusWrites),
      },
    ],
  },
];

function ready({
  problem,
  readySeconds,
}: {
  readonly problem?: string;
  readonly readySeconds: number;
}): number | undefined {
  return problem === undefined ? readySeconds : undefined;
}

export function shown(value: number | undefined, unit: Unit): string {
  if (value === undefined || !Number.isFinite(value)) return "–";
  if (unit === "count") return value.toLocaleString("en");
  if (unit === "per") return value.toFixed(2);
  if (unit === "MB") return `${value.toFixed(0)} MB`;
  if (unit === "ms" && value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  return `${value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${unit}`;
}
