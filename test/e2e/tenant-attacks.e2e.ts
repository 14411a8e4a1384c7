/**
 * A tenant who may write only in its own namespace, and means harm. Whatever mallory tries is
 * refused, harms nobody else, and is seen by the platform team: in an Event of the Gateway, a
 * condition, a metric or the controller's log. All the while alice is served, by one Gateway on
 * each data plane: her statuses at the end are those of the beginning. What the Gateway API itself
 * allows, and platforms may not want to, the policy of docs/guides/tenants.md refuses. What she
 * tries is in test/e2e/tenants, and happens in this order. Needs `npm run build`.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rightsUsed } from "../../tools/cluster/audit-rights.ts";
import { auditLogOf } from "../../tools/cluster/components.ts";
import { exhaustingTheController } from "./tenants/exhaustion.ts";
import { fromAPod } from "./tenants/from-a-pod.ts";
import { takingHostnames } from "./tenants/hostnames.ts";
import { oddValues } from "./tenants/odd-values.ts";
import { policyOfTheGuide, quotaOfTheGuide, readingOthers } from "./tenants/policy.ts";
import { referringToOthers } from "./tenants/references.ts";
import { Siege } from "./tenants/sustained-attack.ts";
import { FRONTS, SYSTEM } from "./tenants/world.ts";

let siege: Siege;
const underSiege = (): Siege => siege;

beforeAll(async () => {
  siege = await Siege.begin("e2e-tenants");
});

afterAll(async () => {
  await siege?.end();
});

takingHostnames(underSiege);
referringToOthers(underSiege);
fromAPod(underSiege);
oddValues(underSiege);
readingOthers(underSiege);
policyOfTheGuide(underSiege);
exhaustingTheController(underSiege);
quotaOfTheGuide(underSiege);

describe("in the end", () => {
  test("alice's statuses are what they were, and not one of her requests has failed", async () => {
    expect(await siege.statusesOfAlice()).toBe(siege.before);
    for (const front of FRONTS) {
      const { sent, failed, reasons } = await siege.endLoad(front);
      console.log(`${sent} requests of alice's on ${front.plane}, ${failed} failed`);
      expect(reasons).toEqual([]);
      expect(failed).toBe(0);
      expect(sent).toBeGreaterThan(100);
    }
  });

  test("controller and data planes are those that began; it led all the time, and was refused nothing", async () => {
    const restarts = "jsonpath={.items[*].status.containerStatuses[*].restartCount}";
    for (const namespace of [SYSTEM, "infra"])
      expect(await siege.kubectl("get", "pods", "-n", namespace, "-o", restarts)).toMatch(/^0( 0)*$/);
    expect(await siege.metric("mergeway_leader")).toBe(1);
    const { refused, missing } = await rightsUsed(auditLogOf(siege.bed.cluster));
    expect({ refused, missing }).toEqual({ refused: [], missing: [] });
  });

  test("propagation was measured all the while", async () => {
    for (const stage of ["sent", "acknowledged", "status"]) {
      const count = await siege.metric(`mergeway_propagation_seconds_count{stage="${stage}"}`);
      const sum = await siege.metric(`mergeway_propagation_seconds_sum{stage="${stage}"}`);
      console.log(`${stage}: ${count} changes, ${((sum / count) * 1000).toFixed(0)} ms on average`);
      expect(count).toBeGreaterThan(10);
      expect(sum).toBeGreaterThan(0);
    }
  });
});
