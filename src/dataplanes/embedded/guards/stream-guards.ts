import type { GuardItem } from "../../../plan/guard.ts";
import type { ItemId } from "../../../plan/plan.ts";
import type { Rule } from "../../../plan/rule.ts";
import { compiledGuard } from "./compiled-guard.ts";

/**
 * Whether a client may have a stream of a rule (TCP, TLS, UDP). Streams have only lists of
 * addresses: any other guard cannot be applied to them, and lets nothing pass.
 */
export function letsStream(
  table: { get(type: "guard", id: ItemId): GuardItem | undefined },
  rule: Rule | undefined,
  client: string,
): boolean {
  if (rule?.guards === undefined) return true;
  return rule.guards.every((id) => {
    const item = table.get("guard", id);
    const guard = item && compiledGuard(item);
    return guard?.type === "addresses" && guard.lets(client);
  });
}
