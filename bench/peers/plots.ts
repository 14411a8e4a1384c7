// Plots of a run as SVG: a panel for each figure, in it a group of bars for each size, in it a bar
// for each contestant. Scales of times and memory are logarithmic, since contestants differ by
// orders of magnitude; the figure stands on each bar, so that nothing has to be read off an axis.

import { type Measure, measureTitled, shown } from "./measures.ts";
import type { ContestantResult, PeersRun } from "./results.ts";

export interface Plot {
  readonly file: string;
  readonly title: string;
  readonly svg: string;
}

interface Panel {
  readonly title: string;
  readonly measure: Measure;
}

const COLORS = ["#1b6ca8", "#6fb1de", "#d9822b"] as const;
const PANEL = { width: 400, height: 250, left: 16, top: 52, bottom: 34 } as const;
const LEGEND = 34;

const PLOTS: readonly {
  readonly file: string;
  readonly title: string;
  readonly figures: readonly string[];
}[] = [
  {
    file: "propagation",
    title: "From acceptance by the API server to the first right answer",
    figures: [
      "a set with certificate and route, median",
      "a route, median",
      "a renewed certificate, median",
      "a changed endpoint, median",
    ],
  },
  {
    file: "memory",
    title: "Memory at each size",
    figures: ["memory, controller", "memory, data plane", "memory, agent", "memory, API server"],
  },
  {
    file: "creation",
    title: "While the sets came",
    figures: [
      "all statuses true, from the first creation",
      "CPU, controller",
      "CPU, data plane",
      "other tenants meanwhile: slowest",
    ],
  },
];

export function plots(run: PeersRun): readonly Plot[] {
  return PLOTS.map(({ file, title, figures }) => {
    const panels = figures.map((figure): Panel => ({ title: figure, measure: measureTitled(figure) }));
    return { file, title, svg: svgOf(title, panels, run) };
  });
}

function svgOf(title: string, panels: readonly Panel[], run: PeersRun): string {
  const width = 2 * PANEL.width;
  const height = LEGEND + Math.ceil(panels.length / 2) * PANEL.height;
  const drawn = panels.map((panel, index) => {
    const [x, y] = [(index % 2) * PANEL.width, LEGEND + Math.floor(index / 2) * PANEL.height];
    return `<g transform="translate(${x} ${y})">${panelOf(panel, run)}</g>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="11">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    legend(run.contestants),
    `<text x="${width - PANEL.left}" y="20" text-anchor="end" fill="#666666">logarithmic scales</text>`,
    ...drawn,
    "</svg>\n",
  ].join("\n");
}

function legend(contestants: readonly ContestantResult[]): string {
  return contestants
    .map(({ title }, index) => {
      const x = PANEL.left + index * 200;
      return `<rect x="${x}" y="10" width="12" height="12" fill="${colorOf(index)}"/><text x="${x + 18}" y="20" fill="#222222">${escaped(title)}</text>`;
    })
    .join("");
}

function panelOf({ title, measure }: Panel, { contestants, sizes }: PeersRun): string {
  const values = sizes.map((size) =>
    contestants.map(({ sizes: done }) => {
      const result = done.find((each) => each.size === size);
      return result === undefined ? undefined : measure.of(result);
    }),
  );
  const heightOf = logScale(values.flat());
  const group = (PANEL.width - 2 * PANEL.left) / sizes.length;
  const bar = Math.min(44, (group - 14) / Math.max(1, contestants.length));
  const base = PANEL.height - PANEL.bottom;
  const bars = values.flatMap((row, at) => {
    const start = PANEL.left + at * group + (group - bar * row.length) / 2;
    const label = `<text x="${PANEL.left + (at + 0.5) * group}" y="${base + 16}" text-anchor="middle" fill="#444444">${(sizes[at] ?? 0).toLocaleString("en")} sets</text>`;
    return [
      label,
      ...row.map((value, index) => barOf({ value, measure, x: start + index * bar, bar, index }, heightOf)),
    ];
  });
  return [
    `<text x="${PANEL.left}" y="20" font-weight="600" fill="#222222">${escaped(title)}</text>`,
    `<line x1="${PANEL.left}" y1="${base}" x2="${PANEL.width - PANEL.left}" y2="${base}" stroke="#999999"/>`,
    ...bars,
  ].join("");
}

interface BarPlace {
  readonly value: number | undefined;
  readonly measure: Measure;
  readonly x: number;
  readonly bar: number;
  readonly index: number;
}

function barOf({ value, measure, x, bar, index }: BarPlace, heightOf: (value: number) => number): string {
  const base = PANEL.height - PANEL.bottom;
  const height = value === undefined ? 0 : heightOf(value);
  const text = `<text x="${(x + bar / 2).toFixed(1)}" y="${(base - height - 4).toFixed(1)}" text-anchor="middle" font-size="9" fill="#222222">${shown(value, measure.unit)}</text>`;
  if (value === undefined) return text;
  return `<rect x="${(x + 1).toFixed(1)}" y="${(base - height).toFixed(1)}" width="${(bar - 2).toFixed(1)}" height="${height.toFixed(1)}" fill="${colorOf(index)}"/>${text}`;
}

/** From half a decade below the least to the greatest, so that the least is a bar as well. */
function logScale(values: readonly (number | undefined)[]): (value: number) => number {
  const positive = values.filter((value): value is number => value !== undefined && value > 0);
  if (positive.length === 0) return () => 0;
  const low = Math.log10(Math.min(...positive)) - 0.5;
  const high = Math.max(Math.log10(Math.max(...positive)), low + 1);
  const room = PANEL.height - PANEL.bottom - PANEL.top;
  return (value) => (value <= 0 ? 0 : ((Math.log10(value) - low) / (high - low)) * room);
}

function colorOf(index: number): string {
  return COLORS[index % COLORS.length] ?? COLORS[0];
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
