// The report: a table for each size with what each contestant did beside the others, the bars, and
// the conditions of the run.

import { wrapProse } from "../../src/view/wrap-prose.ts";
import { GROUPS, type Measure, measureTitled, shown } from "./measures.ts";
import type { ContestantResult, PeersRun, SizeResult } from "./results.ts";

export interface Picture {
  readonly file: string;
  readonly title: string;
}

export function report(run: PeersRun, pictures: readonly Picture[]): string {
  const bars = barLines(run);
  return [
    "# Mergeway beside Envoy Gateway",
    conditions(run),
    ...(bars.length === 0
      ? []
      : [bars.map(({ met, text }) => `- ${met ? "met" : "MISSED"}: ${text}`).join("\n")]),
    ...pictures.map(({ file, title }) => `![${title}](${file})`),
    ...run.sizes.map((size) => table(run, size)),
    ...problems(run),
    "",
  ].join("\n\n");
}

function conditions({ date, commit, machine, routesPerSet, sizes }: PeersRun): string {
  const worlds = sizes.map((size) => size.toLocaleString("en")).join(", ");
  const text = [
    `${worlds} ListenerSets, each with its own certificate, hostname, Service and ${routesPerSet} HTTPRoutes, on one Gateway; one cluster for`,
    "each contestant, installed by its own chart with its own defaults. A size is reached from the one before it. Ratios are to the first column. A dash means",
    "that the contestant did not get there in its time. [README.md](README.md) says how each figure is taken.",
    `Measured on ${date} at commit ${commit}, ${machine}, with clients, backends and the cluster on the same machine.`,
  ].join(" ");
  return wrapProse(text).join("\n");
}

function table({ contestants }: PeersRun, size: number): string {
  const reference = contestants[0];
  const others = contestants.slice(1);
  const head = [
    `${size.toLocaleString("en")} sets`,
    ...contestants.map(({ title }) => title),
    ...others.map(({ title }) => `${title} : ${reference?.title}`),
  ];
  const rows = GROUPS.flatMap(({ title, measures }) => [
    `| **${title}** |${" |".repeat(head.length - 1)}`,
    ...measures.map((measure) => row(measure, contestants, size)),
  ]);
  return [`| ${head.join(" | ")} |`, `|---|${"---:|".repeat(head.length - 1)}`, ...rows].join("\n");
}

function row(measure: Measure, contestants: readonly ContestantResult[], size: number): string {
  const values = contestants.map((contestant) => figureOf(measure, contestant, size));
  const [first] = values;
  const ratios = values.slice(1).map((value) => ratioOf(measure, value, first));
  return `| ${[measure.title, ...values.map((value) => shown(value, measure.unit)), ...ratios].join(" | ")} |`;
}

function ratioOf({ ratio }: Measure, value: number | undefined, first: number | undefined): string {
  if (ratio === false || value === undefined || first === undefined || first === 0) return "";
  const share = value / first;
  return share >= 10 ? share.toFixed(0) : share.toFixed(share < 0.1 ? 2 : 1);
}

function figureOf(measure: Measure, contestant: ContestantResult, size: number): number | undefined {
  const found = contestant.sizes.find((each) => each.size === size);
  return found === undefined ? undefined : measure.of(found);
}

function problems({ contestants, sizes }: PeersRun): readonly string[] {
  const lines = contestants.flatMap(({ title, problem, sizes: done }) => [
    ...(problem === undefined ? [] : [`- ${title}: ${problem}`]),
    ...done.flatMap((result) => complaints(title, result)),
    ...sizes
      .filter((size) => done.every((result) => result.size !== size))
      .map((size) => `- ${title} did not get to ${size.toLocaleString("en")} sets.`),
  ]);
  return lines.length === 0 ? [] : [lines.join("\n")];
}

function complaints(title: string, { size, growth, restarts, leaderChanges }: SizeResult): readonly string[] {
  const at = `${title}, ${size.toLocaleString("en")} sets`;
  const { setsProgrammed, sets, routesTrue, routes } = growth.tally;
  const restarted = Object.entries(growth.cost).filter(([, cost]) => cost.restarts > 0);
  return [
    ...(growth.allTrue
      ? []
      : [
          `- ${at}: in its time ${setsProgrammed} of ${sets} sets and ${routesTrue} of ${routes} routes became true.`,
        ]),
    ...reasons(`${at}: other tenants`, growth.others.reasons),
    ...reasons(`${at}: all asked at the end`, growth.sweep.reasons),
    ...restarted.map(([part, cost]) => `- ${at}: ${part} was restarted ${cost.restarts} times by itself.`),
    ...Object.entries(restarts ?? {}).flatMap(([what, { problem }]) =>
      problem === undefined ? [] : [`- ${at}: restart of ${what}: ${problem}`],
    ),
    ...(leaderChanges?.problem === undefined ? [] : [`- ${at}: changes of leader: ${leaderChanges.problem}`]),
  ];
}

function reasons(what: string, counted: Readonly<Record<string, number>>): readonly string[] {
  const parts = Object.entries(counted).map(([reason, count]) => `${reason} (${count})`);
  return parts.length === 0 ? [] : [`- ${what}: ${parts.join(", ")}.`];
}

interface Bar {
  readonly met: boolean;
  readonly text: string;
}

const BAR_SIZE = 2_500;
const LEADER_CHANGES = 10;

/**
 * What Mergeway promises at 2,500 sets with its chart's defaults. A run that has not measured that
 * size misses them, unless it was meant to be short.
 */
export function barLines({ contestants, short }: PeersRun): readonly Bar[] {
  const result = contestants
    .find(({ id }) => id === "mergeway-envoy")
    ?.sizes.find(({ size }) => size === BAR_SIZE);
  if (result === undefined)
    return short === true ? [] : [{ met: false, text: "2,500 sets were not measured: no bar was checked" }];
  const { growth, restarts, leaderChanges } = result;
  const lies = growth.lies.programmedNotAnswering + growth.lies.answeringNotProgrammed;
  const figure = (title: string): number => measureTitled(title).of(result) ?? Number.POSITIVE_INFINITY;
  const most = (what: string, value: number, limit: number, unit: Measure["unit"]): Bar => ({
    met: value <= limit,
    text: `${what}: ${shown(value, unit)} (at most ${shown(limit, unit)})`,
  });
  return [
    { met: growth.allTrue, text: "all statuses became true" },
    most("statuses that were false for more than 2 s", lies, 0, "count"),
    most(
      "statuses that were false for more than 2 s in 10 changes of leader",
      leaderChanges?.runs === LEADER_CHANGES ? figure("lies in all of them") : Number.POSITIVE_INFINITY,
      0,
      "count",
    ),
    most("failed requests of other tenants during creation", growth.others.failed, 0, "count"),
    most("a route is served after, median", figure("a route, median"), 25, "ms"),
    most(
      "a set with route is served after, median",
      figure("a set with certificate and route, median"),
      50,
      "ms",
    ),
    most("controller's memory, highest", figure("memory, controller, highest"), 500, "MB"),
    most("agent's memory, highest", figure("memory, agent, highest"), 200, "MB"),
    most("Envoy's memory, highest", figure("memory, data plane, highest"), 300, "MB"),
    most("status writes per set", figure("per ListenerSet"), 1.5, "per"),
    most("status writes of the Gateway per minute", figure("of the Gateway, per minute"), 60, "per"),
    most("controller ready after a restart", figure("controller: ready after"), 15, "s"),
    most(
      "status writes after that restart",
      restarts?.controller.statusWrites ?? Number.POSITIVE_INFINITY,
      0,
      "count",
    ),
  ];
}
