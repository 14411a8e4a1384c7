import { type AuthenticationCheck, isAuthentication } from "../../../plan/authentication.ts";
import type { AddressCheck, GuardItem, RateLimitCheck, RateLimitKey } from "../../../plan/guard.ts";
import type { RequestBodyCheck } from "../../../plan/limits/request-limits.ts";
import { AddressList } from "./address-list.ts";
import { addressWords } from "./ip-address.ts";
import { type Refill, refillOf } from "./rate-buckets.ts";

/** A guard in the form in which it is asked. One that is `unusable` lets nothing pass. */
export type CompiledGuard =
  | { readonly type: "addresses"; lets(client: string): boolean }
  | CompiledRateLimit
  | RequestBodyCheck
  | {
      readonly type: "authentication";
      /** It wants the body, up to this many bytes. */
      readonly maxBytes?: number;
    }
  | { readonly type: "unusable" };

export interface CompiledRateLimit {
  readonly type: "rateLimit";
  readonly refill: Refill | "never";
  readonly periodMs: number;
  readonly key: RateLimitKey;
  /** The namespace of the policy. */
  readonly tenant: string;
  /**
   * The part of a bucket's name that is the guard's. With the limit in it, a changed limit has
   * buckets of its own.
   */
  readonly name: string;
}

/** Items are immutable. */
const compiled: WeakMap<GuardItem, CompiledGuard> = new WeakMap();

/** Made when the first request meets it: many guards of a plan are never asked by a thread. */
export function compiledGuard(item: GuardItem): CompiledGuard {
  let guard = compiled.get(item);
  if (guard === undefined) {
    guard = compile(item);
    compiled.set(item, guard);
  }
  return guard;
}

function compile({ id, policy, check }: GuardItem): CompiledGuard {
  if (isAuthentication(check)) return compileAuthentication(check);
  const guard =
    check.type === "addresses"
      ? compileAddresses(check)
      : check.type === "rateLimit"
        ? compileRateLimit(id, policy.namespace, check)
        : check.type === "requestBody" && check.maxBytes >= 0
          ? check
          : undefined;
  return guard ?? { type: "unusable" };
}

function compileAuthentication(check: AuthenticationCheck): CompiledGuard {
  const maxBytes = check.type === "externalAuth" ? check.maxBodyBytes : undefined;
  if (maxBytes === undefined) return { type: "authentication" };
  const isUsable = Number.isSafeInteger(maxBytes) && maxBytes > 0;
  return isUsable ? { type: "authentication", maxBytes } : { type: "unusable" };
}

function compileAddresses({ allow, deny = [] }: AddressCheck): CompiledGuard | undefined {
  const denied = AddressList.of(deny);
  const allowed = AddressList.of(allow ?? []);
  if (denied === undefined || allowed === undefined) return undefined;
  return {
    type: "addresses",
    lets: (client) => {
      const address = addressWords(client);
      if (address === undefined || denied.includes(address)) return false;
      return allow === undefined || allowed.includes(address);
    },
  };
}

function compileRateLimit(id: string, tenant: string, check: RateLimitCheck): CompiledGuard | undefined {
  const { requests, periodMs, burst } = check;
  const refill = refillOf(check);
  if (refill === undefined) return undefined;
  const key = keyOf(check.key);
  const keyName = key.type === "header" ? `header ${key.name}` : key.type;
  return {
    type: "rateLimit",
    refill,
    periodMs,
    key,
    tenant,
    name: [id, requests, periodMs, burst, keyName].join("\0"),
  };
}

/** Host is written in many ways, and buckets are of one hostname pattern already. */
function keyOf(key: RateLimitKey): RateLimitKey {
  if (key.type !== "header") return key;
  const name = key.name.toLowerCase();
  return name === "host" ? { type: "all" } : { type: "header", name };
}
