/**
 * Copies the chart for publication, with the image's published name as the default:
 *
 *   npm run chart:copy -- FOLDER REGISTRY/NAME
 */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseDocument } from "yaml";

const CHART = fileURLToPath(new URL("../charts/mergeway", import.meta.url));

export function copyChart(folder: string, image: string): void {
  const slash = image.indexOf("/");
  if (slash < 1) throw new Error(`"${image}" is not REGISTRY/NAME`);
  cpSync(CHART, folder, { recursive: true });
  const file = join(folder, "values.yaml");
  const values = parseDocument(readFileSync(file, "utf8"));
  values.setIn(["image", "registry"], image.slice(0, slash));
  values.setIn(["image", "repository"], image.slice(slash + 1));
  writeFileSync(file, values.toString({ lineWidth: 0 }));
}

if (import.meta.main) {
  const [folder = "", image = ""] = process.argv.slice(2);
  copyChart(folder, image);
}
