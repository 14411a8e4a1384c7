/**
 * What a request must meet before its rule acts: all guards of the rule, in their order, and behind
 * the others those that ask who sends it. Whoever meets them counts where a limit says so; who is
 * refused by an earlier guard takes no token of a later one.
 */

import { hostnameOf } from "../../../matching/authority.ts";
import type { RoutingTable } from "../../../matching/routing-table.ts";
import type { RateLimitKey } from "../../../plan/guard.ts";
import type { ItemId } from "../../../plan/plan.ts";
import type { Authenticator } from "../../authentication/authenticator.ts";
import { type CompiledRateLimit, compiledGuard } from "../guards/compiled-guard.ts";
import { addressWords } from "../guards/ip-address.ts";
import type { RateBuckets } from "../guards/rate-buckets.ts";
import type { Limits } from "../limits/options.ts";
import { authenticate } from "./authentication.ts";
import { replyLocally } from "./local-reply.ts";
import type { RoutedRequest } from "./routed-request.ts";

export interface GuardServing {
  readonly table: RoutingTable;
  readonly buckets: RateBuckets;
  readonly authenticator: Authenticator;
  readonly limits: Limits;
}

/** Calls `next` at once or later, or answers the request. */
export function passGuards(serving: GuardServing, request: RoutedRequest, next: () => void): void {
  const guards = request.rule?.guards;
  if (guards === undefined) {
    next();
    return;
  }
  const authentication: ItemId[] = [];
  if (!guards.every((id) => passGuard(serving, request, id, authentication))) return;
  if (authentication.length === 0) next();
  else authenticate(serving, request, authentication, next);
}

/** Those that ask who sends the request are put into `later`. False: it has its answer. */
function passGuard(serving: GuardServing, request: RoutedRequest, id: ItemId, later: ItemId[]): boolean {
  const item = serving.table.get("guard", id);
  const guard = item && compiledGuard(item);
  if (guard?.type === "authentication") {
    later.push(id);
    if (guard.maxBytes === undefined) return true;
    request.askedBytes = Math.min(request.askedBytes || guard.maxBytes, guard.maxBytes);
    return true;
  }
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
  } else if (guard?.type === "requestBody") {
    if (limitBody(request, guard.maxBytes)) return true;
    request.exchange.closeAfterAnswer();
    replyLocally(request, 413, { reason: "BodyTooLarge", message: "the request body is too large" });
  } else {
    replyLocally(request, 500, {
      reason: "PolicyUnavailable",
      message: "a policy of this route cannot be applied",
    });
  }
  return false;
}

/** False: the request announces a longer body. One that does not say is counted as it comes. */
function limitBody(request: RoutedRequest, maxBytes: number): boolean {
  request.maxBodyBytes = Math.min(request.maxBodyBytes, maxBytes);
  return Number(request.exchange.headers.get("content-length") ?? 0) <= maxBytes;
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
  return addressWords(client)?.slice(0, 2).join(" ") ?? "";
}
