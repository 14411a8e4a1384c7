import { parseArgs } from "node:util";
import { CONTESTANTS, type Contestant } from "./contestants.ts";
import { type Suite, SuiteFailure } from "./suite.ts";

export interface Wanted {
  readonly suites: readonly Suite[];
  readonly contestants: readonly Contestant[];
  readonly short: boolean;
  readonly keep: boolean;
}

/** What to run, or a text to print instead. */
export function parseCommandLine(args: readonly string[], suites: readonly Suite[]): Wanted | string {
  const { values } = parse(args);
  if (values.help) return help(suites);
  const short = values.short ?? false;
  return {
    suites: chosenSuites(values.only ?? [], suites, short),
    contestants: chosenContestants(values["data-plane"] ?? [], short),
    short,
    keep: values.keep ?? false,
  };
}

function parse(args: readonly string[]): ReturnType<typeof parseArgs<typeof CONFIG>> {
  try {
    return parseArgs({ ...CONFIG, args: [...args] });
  } catch (error) {
    throw new SuiteFailure(`${(error as Error).message}; try --help`);
  }
}

const CONFIG = {
  options: {
    help: { type: "boolean", short: "h" },
    short: { type: "boolean" },
    keep: { type: "boolean" },
    only: { type: "string", multiple: true },
    "data-plane": { type: "string", multiple: true },
  },
} as const;

function chosenSuites(names: readonly string[], suites: readonly Suite[], short: boolean): readonly Suite[] {
  const unknown = names.find((name) => !suites.some((suite) => suite.name === name));
  if (unknown !== undefined) {
    const all = suites.map((suite) => suite.name).join(", ");
    throw new SuiteFailure(`there is no suite "${unknown}"; there are ${all}`);
  }
  if (names.length > 0) return suites.filter((suite) => names.includes(suite.name));
  return short ? suites.filter((suite) => suite.short) : suites;
}

const BY_FLAG: Readonly<Record<string, Contestant>> = {
  embedded: "embedded",
  envoy: "envoy",
  none: "direct",
};

function chosenContestants(flags: readonly string[], short: boolean): readonly Contestant[] {
  if (flags.length === 0) return short ? ["embedded", "envoy"] : CONTESTANTS;
  const chosen = flags.map((flag) => {
    const contestant = BY_FLAG[flag];
    if (contestant === undefined) {
      throw new SuiteFailure(`--data-plane is embedded, envoy or none (without a gateway), not "${flag}"`);
    }
    return contestant;
  });
  return CONTESTANTS.filter((contestant) => chosen.includes(contestant));
}

function help(suites: readonly Suite[]): string {
  const width = Math.max(...suites.map(({ name }) => name.length));
  const list = suites.map(
    ({ name, short, source }) => `  ${name.padEnd(width)}  ${short ? "short" : "     "}  ${source}`,
  );
  return `npm run suites: test suites of others, through both data planes and without a gateway

Usage  npm run suites -- [FLAGS]

Gets each suite's programs from their registries (Go, PyPI, npm, Debian) and keeps them in the test bed's cache, outside the
checkout. Whole runs of a suite are written to docs/reference/suites.md and suites.json.

Suites (those marked belong to the short form)
${list.join("\n")}

Flags
  --only SUITE                        this suite; may be given several times
  --data-plane embedded|envoy|none    through this data plane, or without a gateway; may be given several times
  --short                             the most telling cases in a few minutes, through both data planes; writes no page
  --keep                              leave manifests and logs where they are, and say where
  -h, --help                          this text

Examples
  npm run suites
  npm run suites -- --short
  npm run suites -- --only h2spec --data-plane embedded --keep

Exit codes
  0  every case passed, or is a known difference
  1  a case failed that is no known difference, or a known difference passes by now
  2  could not run`;
}
