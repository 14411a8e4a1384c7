/**
 * What happens to requests and to the state when something breaks between Envoys and their
 * controllers. With ENVOY_FAULTS=full in the long form, which writes
 * docs/reference/envoy-faults.md.
 */

import { writeFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { envoyBinary } from "../support/envoy-binary.ts";
import { Bed } from "./faults/bed.ts";
import { FAULTS } from "./faults/faults.ts";

const FULL = process.env["ENVOY_FAULTS"] === "full";
const rows: string[] = [];

// Outside of any test's time.
envoyBinary();

describe("faults between Envoys and controllers", () => {
  afterAll(() => {
    if (FULL && rows.length === FAULTS.length) writePage();
  });

  test.each(FAULTS)(
    "$name",
    { timeout: FULL ? 300_000 : 60_000 },
    async ({ name, envoys, rounds, happen }) => {
      const bed = await Bed.up(envoys);
      try {
        const { controller, expected, note } = await happen(bed, FULL ? rounds.full : rounds.small);
        await bed.settled(controller);
        await bed.load.stop();
        const tenants = [...expected.keys()];
        expect(await bed.served(tenants)).toEqual(tenants.map((tenant) => expected.get(tenant)));
        expect(bed.load.failures).toEqual([]);
        expect(bed.load.requests).toBeGreaterThan(0);
        rows.push(
          `| ${name} | ${note} | ${bed.load.requests} | ${bed.load.failures.length} | ${tenants.length} of ${tenants.length} |`,
        );
      } finally {
        await bed.down();
      }
    },
  );
});

function writePage(): void {
  const page = `# Faults between Envoy and its controller

Each fault happens under a steady load of one tenant over HTTP and HTTPS, whose route changes with
every change. A request on a connection that breaks is tried again once, as clients do; it counts as
failed when the answer is not 200 then. At the end all tenants are requested over both ports: those
that exist answer from the right backend, those that were removed do not.

| fault | | requests | failed | tenants right in the end |
|---|---|---:|---:|---:|
${rows.join("\n")}

A rule, a cluster or an endpoint set that Envoy rejects (NACK) does not fail a request of another
tenant either, on a running Envoy or a new one: \`test/dataplanes/envoy/containment/nack.test.ts\`,
and [what Envoy refuses](envoy.md#what-envoy-refuses).

Made by \`ENVOY_FAULTS=full npx vitest run test/dataplanes/envoy/faults.test.ts\`, which fails when a
request does. \`npm test\` runs a shorter form. The numbers are of one run on a machine with two
cores.
`;
  writeFileSync(new URL("../../../docs/reference/envoy-faults.md", import.meta.url), page);
}
