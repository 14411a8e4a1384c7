/**
 * A tenant who may write only in its own namespace, and means harm. Whatever mallory tries is
 * refused, harms nobody else, and is seen by the platform team: in an Event of the Gateway, a
 * condition, a metric or the controller's log. All the while alice is served, by one Gateway on
 * each data plane: her statuses at the end are those of the beginning. What the Gateway API itself
 * allows, and platforms may not want to, the TenantPolicy of docs/guides/tenants.md refuses. What
 * she tries is in test/e2e/tenants, and happens in this order. Needs `npm run build`.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rightsUsed } from "../../tools/cluster/audit-rights.ts";
import { auditLogOf } from "../../tools/cluster/components.ts";
import { exhaustingTheController } from "./tenants/exhaustion.ts";
import { fromAPod } from "./tenants/from-a-pod.ts";
import { takingHostnames } from "./tenants/hostnames.ts";
import { oddValues } from "./tenants/odd-values.ts";
import { quotaOfTheGuide, readingOthers, underThePolicyOfTheGuide } from "./tenants/policy.ts";
import { referringToOthers } from "./tenants/references.ts";
import { SustainedAttack } from "./tenants/sustained-attack.ts";
import { FRONTS, SYSTEM } from "./tenants/world.ts";

let attack: SustainedAttack;
const underAttack = (): SustainedAttack => attack;

beforeAll(async () => {
  attack = await SustainedAttack.begin("e2e-tenants");
});

afterAll(async () => {
  await attack?.end();
});

takingHostnames(underAttack);
referringToOthers(underAttack);
fromAPod(underAttack);
oddValues(underAttack);
readingOthers(underAttack);
underThePolicyOfTheGuide(underAttack);
exhaustingTheController(underAttack);
quotaOfTheGuide(underAttack);

describe("in the end", () => {
  test("alice's statuses are what they were, and not one of her requests has failed", async () => {
    expect(await attack.statusesOfAlice()).toBe(attack.before);
    for (const front of FRONTS) {
      const { sent, failed, reasons } = await attack.endLoad(front);
      console.log(`${sent} requests of alice's on ${front.plane}, ${failed} failed`);
      expect(reasons).toEqual([]);
      expect(failed).toBe(0);
      expect(sent).toBeGreaterThan(100);
    }
  });

  test("controller and data planes are those that began; it led all the time, and was refused nothing", async () => {
    const restarts = "jsonpath={.items[*].status.containerStatuses[*].restartCount}";
    for (const namespace of [SYSTEM, "infra"])
      expect(await attack.kubectl("get", "pods", "-n", namespace, "-o", restarts)).toMatch(/^0( 0)*$/);
    expect(await attack.metric("mergeway_leader")).toBe(1);
    const { refused, missing } = await rightsUsed(auditLogOf(attack.bed.cluster));
    expect({ refused, missing }).toEqual({ refused: [], missing: [] });
  });

  test("propagation was measured all the while", async () => {
    for (const stage of ["sent", "acknowledged", "status"]) {
      const count = await attack.metric(`mergeway_propagation_seconds_count{stage="${stage}"}`);
      const sum = await attack.metric(`mergeway_propagation_seconds_sum{stage="${stage}"}`);
      console.log(`${stage}: ${count} changes, ${((sum / count) * 1000).toFixed(0)} ms on average`);
      expect(count).toBeGreaterThan(10);
      expect(sum).toBeGreaterThan(0);
    }
  });
});
