/**
 * What a request must meet before its rule acts: all guards of the rule, in their order. Whoever
 * meets them counts where a limit says so; who is refused by an earlier guard takes no token of a
 * later one.
 */

import { hostnameOf } from "../../../matching/authority.ts";
import type { RoutingTable } from "../../../matching/routing-table.ts";
import type { RateLimitKey } from "../../../plan/guard.ts";
import type { ItemId } from "../../../plan/plan.ts";
import { type CompiledRateLimit, compiledGuard } from "../guards/compiled-guard.ts";
import { parseAddress } from "../guards/ip-address.ts";
import type { RateBuckets } from "../guards/rate-buckets.ts";
import { replyLocally } from "./local-reply.ts";
import type { RoutedRequest } from "./routed-request.ts";

export interface GuardServing {
  readonly table: RoutingTable;
  readonly buckets: RateBuckets;
}

/** False: the request has its answer. */
export function passGuards(serving: GuardServing, request: RoutedRequest): boolean {
  const guards = request.rule?.guards;
  return guards === undefined || guards.every((id) => passGuard(serving, request, id));
}

function passGuard(serving: GuardServing, request: RoutedRequest, id: ItemId): boolean {
  const item = serving.table.get("guard", id);
  const guard = item && compiledGuard(item);
  if (guard?.type === "addresses") {
    if (guard.lets(request.client.address)) return true;
    replyLocally(request, 403, {
      reason: "AddressDenied",
      message: "clients of this address are not served",
    });
  } else if (guard?.type === "rateLimit") {
    const retryAfterSeconds = secondsToWait(serving, request, guard);
    if (retryAfterSeconds === 0) return true;
    replyLocally(request, 429, { reason: "RateLimited", message: "too many requests", retryAfterSeconds });
  } else {
    replyLocally(request, 500, {
      reason: "PolicyUnavailable",
      message: "a policy of this route cannot be applied",
    });
  }
  return false;
}

/** 0: there was a token. */
function secondsToWait(
  { table, buckets }: GuardServing,
  request: RoutedRequest,
  { refill, periodMs, key, tenant, name }: CompiledRateLimit,
): number {
  if (refill === "never") return wholeSeconds(periodMs / 1_000);
  const { listener, authority } = request;
  if (listener === undefined) return 1;
  // Not the host whose rule serves: a name has one bucket, whichever of its hosts the rule is of.
  const [host] = table.hostsFor(listener.id, hostnameOf(authority));
  const bucket = [name, listener.id, host?.hostname ?? "", keyOf(request, key)].join("\0");
  const waitNs = buckets.take({ tenant, name: bucket }, refill);
  return waitNs === 0n ? 0 : wholeSeconds(Number(waitNs) / 1e9);
}

function wholeSeconds(seconds: number): number {
  return Math.max(1, Math.ceil(seconds));
}

function keyOf(request: RoutedRequest, key: RateLimitKey): string {
  if (key.type === "all") return "";
  if (key.type === "client") return clientKey(request.client.address);
  let value: string | undefined;
  for (const [name, each] of request.headers) {
    if (name !== key.name) continue;
    if (value !== undefined) return "";
    value = each;
  }
  return value ?? "";
}

/** A client with IPv6 has all addresses of its /64 to choose from. */
function clientKey(client: string): string {
  return parseAddress(client)?.slice(0, 2).join(" ") ?? "";
}
