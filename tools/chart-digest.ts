import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";

/**
 * What a rendered chart was made from: names and contents of all its files, whatever the order in
 * which a disk lists them.
 */
export function chartDigest(chart: string): string {
  const files = readdirSync(chart, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(chart.length + 1))
    .sort();
  const hash = createHash("sha256");
  for (const file of files) {
    const content = readFileSync(join(chart, file));
    hash.update(`${file.split(sep).join("/")}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}
