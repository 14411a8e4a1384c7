/**
 * Validation against the real thing: thousands of documents, whole and broken, are read as
 * `mergeway check` reads them and given to an API server with the CRDs of the Gateway API and our
 * own as a dry run. Both must accept or refuse, and what they accept must have the same defaults.
 * Seeded: the same documents every time.
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { knownKinds } from "../../src/api/admission/kinds.ts";
import { Bed, ok } from "../../tools/cluster/bed.ts";
import { CRD_FOLDER } from "../../tools/cluster/chart.ts";
import type { Comparison } from "./admission/compare.ts";

const DOCUMENTS = 4000;

let bed: Bed;
let comparison: Comparison;

beforeAll(async () => {
  bed = await Bed.up("e2e-admission");
  await ok(bed.kubectl(["apply", "--server-side", "-f", CRD_FOLDER]));
  for (const plural of [
    "gatewayparameters",
    "trafficpolicies",
    "clientpolicies",
    "backendpolicies",
    "tenantpolicies",
  ])
    await ok(bed.kubectl(["wait", `crd/${plural}.mergeway.dev`, "--for=condition=Established"]));
  const program = fileURLToPath(new URL("admission/compare.ts", import.meta.url));
  const out = await ok(bed.run([process.execPath, program, "--documents", String(DOCUMENTS)]));
  comparison = JSON.parse(out) as Comparison;
  const { documents, accepted, refused, intended, differences } = comparison;
  console.log(
    `${documents} documents: ${accepted} accepted by both, ${refused} refused by both, ${differences.length} differences`,
  );
  for (const [reason, count] of Object.entries(intended)) console.log(`${count} as intended: ${reason}`);
});

afterAll(async () => {
  await bed?.down();
});

test("every document is judged and defaulted as an API server does it", () => {
  expect(comparison.differences).toEqual([]);
  const { accepted, refused, intended, documents } = comparison;
  const meant = Object.values(intended).reduce((sum, count) => sum + count, 0);
  expect(accepted + refused + meant).toBe(documents);
  expect(accepted + refused).toBeGreaterThan(0.95 * DOCUMENTS);
});

test.each(knownKinds("standard").map(({ kind }) => kind))(
  "of kind %s there are enough of both sorts",
  (kind) => {
    const [accepted, refused] = comparison.kinds[kind] ?? [0, 0];
    expect(accepted).toBeGreaterThan(20);
    expect(refused).toBeGreaterThan(50);
  },
);
