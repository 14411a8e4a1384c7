/**
 * Runs test suites of others through both data planes and without a gateway: `npm run suites --
 * --help`.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ClusterFailure } from "../tools/host/failure.ts";
import { writeCertificates } from "./certificates.ts";
import { parseCommandLine, type Wanted } from "./command-line.ts";
import { CONTESTANTS, type Contestant, startContestant } from "./contestants.ts";
import { judge, type Results, type Verdict } from "./judge.ts";
import { KNOWN_DIFFERENCES } from "./known-differences.ts";
import { type Entry, entryOf, page, table } from "./report.ts";
import { type Case, type Room, type Suite, SuiteFailure } from "./suite.ts";
import { OWN_SUITES, SUITES } from "./suites.ts";

const DOCS = fileURLToPath(new URL("../docs/reference", import.meta.url));

/** Lines on the terminal; the page and its JSON file have them all. */
const SHOWN = 100;

async function main(args: readonly string[]): Promise<number> {
  const wanted = parseCommandLine(args, [...SUITES, ...OWN_SUITES]);
  if (typeof wanted === "string") {
    console.log(wanted);
    return 0;
  }
  const entries: Entry[] = [];
  const errors: string[] = [];
  for (const suite of wanted.suites) {
    const verdict = await runSuite(suite, wanted);
    entries.push(entryOf(suite, verdict));
    errors.push(...verdict.errors);
    if (isWhole(wanted) && SUITES.includes(suite)) record(entryOf(suite, verdict));
  }
  console.log(`\n${table(entries)}\n`);
  for (const error of errors.slice(0, SHOWN)) console.log(`failed: ${error.slice(0, 400)}`);
  if (errors.length > SHOWN) console.log(`… and ${errors.length - SHOWN} more`);
  console.log(
    errors.length === 0 ? "all well" : `${errors.length} failures that no known difference explains`,
  );
  return errors.length === 0 ? 0 : 1;
}

/** Only a whole run says what the page says. */
function isWhole({ short, contestants }: Wanted): boolean {
  return !short && CONTESTANTS.every((contestant) => contestants.includes(contestant));
}

function record(entry: Entry): void {
  const file = join(DOCS, "suites.json");
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as readonly Entry[]) : [];
  const after = [entry, ...before.filter(({ suite }) => suite !== entry.suite)];
  const entries = SUITES.flatMap(({ name }) => after.filter(({ suite }) => suite === name));
  writeFileSync(file, `${JSON.stringify(entries, undefined, 2)}\n`);
  writeFileSync(join(DOCS, "suites.md"), page(entries, KNOWN_DIFFERENCES, SUITES));
}

async function runSuite(suite: Suite, wanted: Wanted): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), `mergeway-suite-${suite.name}-`));
  const ends: (() => Promise<void>)[] = [];
  const room: Room = {
    folder,
    short: wanted.short,
    certificates: await writeCertificates(folder),
    say: (line) => console.log(`${suite.name}: ${line}`),
    keep: (end) => void ends.push(end),
  };
  // A second signal must not end the run before what it started has ended.
  const interrupted = () => void endAll(ends).then(() => process.exit(130));
  process.on("SIGINT", interrupted).on("SIGTERM", interrupted);
  try {
    await suite.install(room);
    return judge(suite.name, await meetAll(suite, wanted.contestants, room, ends), KNOWN_DIFFERENCES);
  } finally {
    await endAll(ends);
    process.off("SIGINT", interrupted).off("SIGTERM", interrupted);
    if (wanted.keep) room.say(`logs are in ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

async function meetAll(
  suite: Suite,
  contestants: readonly Contestant[],
  room: Room,
  ends: (() => Promise<void>)[],
): Promise<Results> {
  const backends = await suite.start(room);
  const results: [Contestant, readonly Case[]][] = [];
  for (const contestant of contestants) {
    const began = Date.now();
    const target = await startContestant(contestant, backends, room);
    ends.push(target.end);
    const cases = await suite.run(target, room);
    ends.splice(ends.indexOf(target.end), 1);
    await target.end();
    results.push([contestant, cases]);
    const passed = cases.filter(({ outcome }) => outcome === "passed").length;
    const seconds = Math.round((Date.now() - began) / 1000);
    room.say(`${contestant}: ${passed} of ${cases.length} cases passed in ${seconds} s`);
  }
  return Object.fromEntries(results);
}

async function endAll(ends: (() => Promise<void>)[]): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof SuiteFailure || error instanceof ClusterFailure)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
