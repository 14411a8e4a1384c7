/**
 * Makes a release, or prints the notes of one:
 *
 *   npm run release -- major|minor|patch|X.Y.Z [--dry-run]
 *   npm run -s release -- --notes vX.Y.Z
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ClusterFailure } from "../host/failure.ts";
import { renderInstall } from "../render-install.ts";
import { ReleaseFailure } from "./failure.ts";
import { notesOfTag, release } from "./release.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { "dry-run": { type: "boolean", default: false }, notes: { type: "string" } },
  });
  if (values.notes !== undefined) {
    process.stdout.write(notesOfTag(root, values.notes));
    return;
  }
  const [step, ...more] = positionals;
  if (step === undefined || more.length > 0) {
    throw new ReleaseFailure("say which: npm run release -- major|minor|patch|X.Y.Z [--dry-run]");
  }
  const date = new Date().toISOString().slice(0, 10);
  const print = (line: string): void => console.log(line);
  await release({ root, step, date, isDryRun: values["dry-run"], renderInstall, print });
}

try {
  await main();
} catch (error) {
  if (!(error instanceof ReleaseFailure || error instanceof ClusterFailure)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
