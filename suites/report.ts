/**
 * The page of results. It is made from a JSON file that keeps each suite's last whole run, so
 * suites can be run one by one.
 */
import { wrapProse } from "../src/view/wrap-prose.ts";
import type { Contestant } from "./contestants.ts";
import { explanation, type Failure, type KnownDifference, type Row, type Verdict } from "./judge.ts";

export interface Entry {
  readonly suite: string;
  readonly source: string;
  readonly about: string;
  readonly rows: readonly Row[];
  readonly failures: readonly Failure[];
}

/** What a run of a suite adds to the page. */
export function entryOf(suite: Pick<Entry, "source" | "about">, verdict: Verdict): Entry {
  const { rows, failures } = verdict;
  return { suite: verdict.suite, source: suite.source, about: suite.about, rows, failures };
}

/** A suite as the page names it. */
interface Named {
  readonly name: string;
  readonly source: string;
}

/** `suites` are all that there are: those without a recorded run are named as such. */
export function page(
  entries: readonly Entry[],
  known: readonly KnownDifference[],
  suites: readonly Named[],
): string {
  const sections = entries.map((entry) => section(entry, known));
  return `${[INTRODUCTION, table(entries), ...unrecorded(entries, suites), ...sections].join("\n\n")}\n`;
}

function unrecorded(entries: readonly Entry[], suites: readonly Named[]): readonly string[] {
  const missing = suites.filter(({ name }) => entries.every(({ suite }) => suite !== name));
  if (missing.length === 0) return [];
  const names = missing.map(({ name, source }) => `${name} (\`${source}\`)`).join(", ");
  return [wrapProse(`No whole run is recorded of: ${names}. Nothing is claimed about them.`).join("\n")];
}

export function table(entries: readonly Entry[]): string {
  const head = ["| suite | | cases | embedded | Envoy | without a gateway |", "|---|---|--:|--:|--:|--:|"];
  const rows = entries.flatMap((entry) => entry.rows.map((row) => tableRow(entry.suite, row)));
  return [...head, ...rows].join("\n");
}

function tableRow(suite: string, row: Row): string {
  const cells = (["embedded", "envoy", "direct"] as const).map((contestant) => cell(row, contestant));
  return `| ${[suite, row.part, row.cases, ...cells].join(" | ")} |`;
}

function cell(row: Row, contestant: Contestant): string {
  const passed = row.passed[contestant];
  if (passed === undefined) return "";
  const skipped = row.skipped[contestant] ?? 0;
  return skipped === 0 ? `${passed}` : `${passed}, ${skipped} skipped`;
}

function section(entry: Entry, known: readonly KnownDifference[]): string {
  const own = known.filter(({ suite }) => suite === entry.suite);
  const about = wrapProse(`${entry.about} From \`${entry.source}\`.`).join("\n");
  const heading = `## ${entry.suite}\n\n${about}`;
  const through = entry.failures.filter(({ contestant }) => contestant !== "direct");
  const direct = entry.failures.filter(({ contestant }) => contestant === "direct");
  const parts = [
    heading,
    through.length === 0
      ? "Every case passes through both data planes."
      : failureTable(
          "through",
          through,
          (failure) => explanation(failure, own) ?? `not explained: ${failure.reason}`,
        ),
    ...(direct.length === 0
      ? []
      : ["Without a gateway, the backend itself fails:", failureTable("", direct, ({ reason }) => reason)]),
  ];
  return parts.join("\n\n");
}

const SHOWN = 40;

function failureTable(
  through: string,
  failures: readonly Failure[],
  reasonOf: (failure: Failure) => string,
): string {
  const names = { embedded: "embedded", envoy: "Envoy", direct: "" };
  const rows = failures.slice(0, SHOWN).map((failure) => {
    const first = through === "" ? [] : [names[failure.contestant]];
    return `| ${[...first, failure.part, code(failure.name), inCell(reasonOf(failure))].join(" | ")} |`;
  });
  const more = failures.length - SHOWN;
  return [
    through === ""
      ? "| | case | in its words |\n|---|---|---|"
      : "| through | | case | reason |\n|---|---|---|---|",
    ...rows,
    ...(more > 0 ? [`\nand ${more} more, in [suites.json](suites.json).`] : []),
  ].join("\n");
}

function code(text: string): string {
  return `\`${inCell(text).replaceAll("`", "'")}\``;
}

function inCell(text: string): string {
  const visible = text.replaceAll(/\s+/g, " ").replaceAll(/\p{Cc}/gu, escaped);
  return visible.replaceAll("|", "\\|").slice(0, 400);
}

/** A control character, as most languages write it. */
function escaped(character: string): string {
  return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

const INTRODUCTION = `# Public test suites

Results of public test suites: through both data planes, with the same manifests, and against the
backend without a gateway. \`npm run suites\` runs them and writes this page and
[suites.json](suites.json). \`npm run suites -- --help\` lists the suites and the flags.

The bar: a case that passes without a gateway, or through one data plane, passes through both.
Failures are listed below their suite with the reason, from \`suites/known-differences.ts\`. The
command fails when a case fails that is not in that list, and when a listed case passes. Figures are
cases that passed; an empty cell was not run.`;
