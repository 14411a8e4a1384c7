import { expect, test } from "vitest";
import { fromTransfer, toTransfer } from "../../../src/dataplanes/embedded/threads/plan-transfer.ts";
import { decodeItem, encodeItem } from "../../../src/dataplanes/remote/protocol/protocol.ts";
import { type AuthenticationCheck, ClientCredentials } from "../../../src/plan/authentication.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { guard } from "../support/plan-builder.ts";

const checks: readonly AuthenticationCheck[] = [
  { type: "basicAuth", users: new ClientCredentials("ann:hash") },
  { type: "apiKeys", keys: new ClientCredentials("ann:key"), headers: ["x-api-key"], queries: [] },
];

function revealed(item: PlanItem | undefined): string | undefined {
  if (item?.type !== "guard") return undefined;
  if (item.check.type === "basicAuth") return item.check.users.reveal();
  return item.check.type === "apiKeys" ? item.check.keys.reveal() : undefined;
}

test.each(checks)("credentials of a $type guard reach pods and threads, and no log", (check) => {
  const item = guard("g", check);
  const secret = revealed(item);
  expect(secret).toMatch(/^ann:/);
  expect(revealed(decodeItem(encodeItem(item)))).toBe(secret);
  const posted = structuredClone(toTransfer({ upserts: [item], removes: [] }));
  expect(revealed(fromTransfer(posted).upserts[0])).toBe(secret);
  expect(JSON.stringify(item)).not.toContain("ann");
});
