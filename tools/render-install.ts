/**
 * Makes install.yaml from the chart with its default values, for people without Helm:
 *
 *     node tools/render-install.ts
 *
 * Helm is built from its Go module by the test bed when it is not in the cache yet.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chartDigest } from "./chart-digest.ts";
import { output } from "./host/processes.ts";
import { build, builtFile } from "./programs/build.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CHART = join(ROOT, "charts", "mergeway");
const NAMESPACE = "mergeway-system";

const NAMESPACE_MANIFEST = `---
apiVersion: v1
kind: Namespace
metadata:
  name: ${NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
`;

export async function renderInstall(): Promise<string> {
  await build(["helm"]);
  const settings = ["mergeway", CHART, "--namespace", NAMESPACE, "--include-crds"];
  const rendered = await output(builtFile("helm", "helm"), ["template", ...settings]);
  const head = [
    "# Mergeway without Helm: the chart in charts/mergeway with its default values.",
    "# Made by tools/render-install.ts; do not edit.",
    `# chart sha256: ${chartDigest(CHART)}`,
  ];
  // Nothing here belongs to a Helm release, and Helm must not take it for its own.
  const plain = rendered.replaceAll(
    /^ +(?:helm\.sh\/chart: .*|app\.kubernetes\.io\/managed-by: Helm)\n/gm,
    "",
  );
  return `${head.join("\n")}\n${NAMESPACE_MANIFEST}${plain}`;
}

if (import.meta.main) {
  writeFileSync(join(ROOT, "install.yaml"), await renderInstall());
}
