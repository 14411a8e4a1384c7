/**
 * The unmodified conformance suite against the product as users install it: a cluster of its own,
 * the chart, the chart's own role.
 *
 *   node tools/conformance.ts envoy|embedded [--tenant-policy] [suite flags…]
 *
 * With --tenant-policy every Gateway of the suite has a TenantPolicy that allows everything, and
 * the report has its own name: nothing may change.
 *
 * Claims every feature that the data plane and the controller say they have, and writes the
 * official report into conformance/. Exits 0 only when every test passed and none that belongs to a
 * claimed profile was skipped.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { supportedFeatures } from "../src/controller/features.ts";
import { embeddedFeatures } from "../src/dataplanes/embedded/features.ts";
import { envoyFeatures } from "../src/dataplanes/envoy/features.ts";
import { AllowAll } from "./cluster/allow-all.ts";
import { rightsUsed } from "./cluster/audit-rights.ts";
import { Bed, ok } from "./cluster/bed.ts";
import { CHART, ROOT } from "./cluster/chart.ts";
import { loadImage } from "./cluster/cluster.ts";
import { auditLogOf } from "./cluster/components.ts";
import { loadSuiteImages, runConformance } from "./cluster/conformance.ts";
import { productImage } from "./images/product-image.ts";

const PROFILES = ["GATEWAY-HTTP", "GATEWAY-GRPC", "GATEWAY-TLS", "GATEWAY-TCP", "GATEWAY-UDP"];
const FEATURES: Readonly<Record<string, ReadonlySet<string>>> = {
  envoy: envoyFeatures,
  embedded: embeddedFeatures,
};

const TENANT_POLICY = "--tenant-policy";

const [dataPlane = "envoy", ...given] = process.argv.slice(2);
const hasPolicy = given.includes(TENANT_POLICY);
const flags = given.filter((flag) => flag !== TENANT_POLICY);
const features = FEATURES[dataPlane];
if (features === undefined) {
  console.error(`there is no data plane ${dataPlane}; there are ${Object.keys(FEATURES).join(", ")}`);
  process.exit(2);
}

const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
const run = hasPolicy ? `${dataPlane}-tenants` : dataPlane;
const report = join(ROOT, "conformance", `standard-v${version}-${run}-report.yaml`);
mkdirSync(join(ROOT, "conformance"), { recursive: true });

const bed = await Bed.up(`conformance-${run}`);
const ended = new AbortController();
try {
  await install(bed);
  const policies = hasPolicy ? new AllowAll(bed) : undefined;
  const following = policies?.follow(ended.signal);
  const code = await runConformance(bed.cluster, {
    flags: [
      `--conformance-profiles=${PROFILES.join(",")}`,
      `--supported-features=${supportedFeatures(features).join(",")}`,
      `--report-output=${report}`,
      // The suite waits for its namespaces to be gone when it ends; on two busy cores their thirty
      // pods can take longer than its 30 s.
      "--timeout-config-overrides=DeleteTimeout:180",
      ...flags,
    ],
    implementation: { version: `v${version}` },
    log: join(ROOT, "conformance", `${run}.log`),
    verbose: false,
  });
  ended.abort();
  await following;
  if (policies !== undefined) console.log(`${policies.gateways} Gateways had a TenantPolicy`);
  const isRight = await hasTheRights(bed);
  process.exitCode = code === 0 && isSuccess(readFileSync(report, "utf8")) && isRight ? 0 : 1;
} finally {
  ended.abort();
  await bed.down();
}

/** As the guide says, with the image of this checkout. */
async function install(target: Bed): Promise<void> {
  await loadImage(target.cluster, await productImage(ROOT, `mergeway:${version}`));
  await loadSuiteImages(target.cluster);
  await ok(target.kubectl(["create", "namespace", "mergeway-system"]));
  const manifests = await ok(
    target.helm([
      "template",
      "mergeway",
      CHART,
      "--include-crds",
      "-n",
      "mergeway-system",
      `--set=dataPlane.type=${dataPlane}`,
    ]),
  );
  await ok(target.kubectl(["apply", "--server-side", "-n", "mergeway-system", "-f", "-"], manifests));
  await ok(
    target.kubectl(["rollout", "status", "-n", "mergeway-system", "deploy/mergeway", "--timeout=120s"]),
  );
}

/**
 * The suite ran under the chart's own role: nothing was refused. Which rights it did not need is
 * told; audit-rights.e2e.ts shows that each has its use.
 */
async function hasTheRights({ cluster }: Bed): Promise<boolean> {
  const { requests, refused, missing, unused } = await rightsUsed(auditLogOf(cluster));
  console.log(`${requests} requests of the controller, ${unused.length} rights that the suite did not need`);
  for (const right of [...refused, ...missing])
    console.log(`refused, or not in the table of rights: ${right}`);
  return requests > 0 && refused.length + missing.length === 0;
}

interface ReportPart {
  readonly result: string;
  readonly statistics?: { readonly Skipped: number };
}

/** The suite exits 0 even when a claimed test was skipped; the report tells. */
function isSuccess(text: string): boolean {
  const { profiles } = parse(text) as {
    readonly profiles: readonly {
      readonly name: string;
      readonly core: ReportPart;
      readonly extended?: ReportPart;
    }[];
  };
  for (const { name, core, extended } of profiles) {
    for (const part of [core, ...(extended === undefined ? [] : [extended])]) {
      console.log(`${name}: ${part.result}, ${JSON.stringify(part.statistics)}`);
    }
  }
  return profiles.every(({ core, extended }) =>
    [core, ...(extended === undefined ? [] : [extended])].every(
      ({ result, statistics }) => result === "success" && (statistics?.Skipped ?? 0) === 0,
    ),
  );
}
