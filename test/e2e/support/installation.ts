import { type Bed, ok } from "../../../tools/cluster/bed.ts";
import { CHART, ROOT, readText } from "../../../tools/cluster/chart.ts";
import { loadImage } from "../../../tools/cluster/cluster.ts";
import { productImage } from "../../../tools/images/product-image.ts";

/** Mergeway from the chart, with the image of the present build. Needs `npm run build`. */
export async function installMergeway(bed: Bed): Promise<void> {
  const namespace = "mergeway-system";
  const { version } = JSON.parse(readText("package.json")) as { version: string };
  await loadImage(bed.cluster, await productImage(ROOT, `mergeway:${version}`));
  await ok(bed.kubectl(["create", "namespace", namespace]));
  const manifests = await ok(bed.helm(["template", "mergeway", CHART, "--include-crds", "-n", namespace]));
  await ok(bed.kubectl(["apply", "--server-side", "-n", namespace, "-f", "-"], manifests));
  await ok(bed.kubectl(["rollout", "status", "-n", namespace, "deploy/mergeway", "--timeout=240s"]));
}
