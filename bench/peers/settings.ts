// The forms of a run, and what its flags mean.

import { parseArgs } from "node:util";
import { type Contestant, contestantsNamed } from "./contestants.ts";

export const ROUTES = 16;

export const HELP = `npm run bench:peers -- [--short] [--sizes 50,500,2500] [--only ID,…] [--name NAME] [--output DIR]

  --short        50 and 500 sets, fewer samples: about ten minutes
  --sizes N,…    ListenerSets with 16 HTTPRoutes each, in growing order
  --only ID,…    contestants: mergeway (both data planes), mergeway-envoy, mergeway-embedded, envoy-gateway
  --name NAME    what the files are called: peers, or peers-short, or peers-custom for other sizes and contestants
  --output DIR   where they go: docs/benchmarks
`;

export interface Settings {
  readonly short: boolean;
  readonly contestants: readonly Contestant[];
  readonly sizes: readonly number[];
  readonly restartSizes: readonly number[];
  readonly samples: number;
  readonly handOvers: number;
  readonly leaderChanges: number;
  readonly kindSeconds: number;
  readonly sampleSeconds: number;
  readonly name: string;
  readonly output: string;
}

const FULL = [50, 500, 2_500];
const SHORT = [50, 500];

export function settingsOf(args: readonly string[]): Settings | undefined {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      short: { type: "boolean" },
      help: { type: "boolean" },
      sizes: text,
      only: text,
      name: text,
      output: text,
    },
  });
  if (values.help === true) return undefined;
  const short = values.short === true;
  const sizes = values.sizes === undefined ? (short ? SHORT : FULL) : sizesOf(values.sizes);
  const isWhole = values.sizes === undefined && values.only === undefined;
  return {
    short,
    contestants: contestantsNamed(values.only?.split(",") ?? []),
    sizes,
    restartSizes: short ? sizes.slice(-1) : sizes,
    samples: short ? 30 : 100,
    handOvers: short ? 4 : 10,
    leaderChanges: short ? 2 : 10,
    kindSeconds: short ? 10 : 120,
    sampleSeconds: short ? 10 : 120,
    name: values.name ?? (isWhole ? (short ? "peers-short" : "peers") : "peers-custom"),
    output: values.output ?? "docs/benchmarks",
  };
}

function sizesOf(text: string): readonly number[] {
  const sizes = text.split(",").map(Number);
  const isGrowing = sizes.every((size, index) => size > (sizes[index - 1] ?? 0));
  if (!sizes.every(Number.isInteger) || !isGrowing) {
    throw new Error(`"${text}" are no sizes: write whole numbers in growing order, as in 50,500`);
  }
  return sizes;
}

/**
 * Seconds from the last creation until all statuses are true, after which a contestant goes no
 * further.
 */
export function limitOf(size: number): number {
  return Math.max(120, Math.ceil(size * 0.36));
}
