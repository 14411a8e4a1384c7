/**
 * Settings that an override of a farther level makes pointless. All overrides hold together, so a
 * looser limit never decides, and two lists without a common address let nobody pass.
 */
import type { FieldPath } from "../../../api/admission/schema/field-error.ts";
import type { Key } from "../../../api/key.ts";
import { type RuleSetting, TIMEOUT_NAMES } from "../../../engine/policies/rule-settings.ts";
import {
  effectiveSettings,
  type PolicyCheck,
  type TrafficField,
} from "../../../engine/policies/traffic-policies.ts";
import { networksOverlap, parseNetwork } from "../../../matching/networks.ts";
import type { AddressCheck, RateLimitCheck } from "../../../plan/guard.ts";
import type { RequestBodyCheck } from "../../../plan/limits/request-limits.ts";
import type { PolicyLevel } from "./policy-levels.ts";

type Setting = PolicyCheck | RuleSetting;

export interface LooserSetting {
  readonly policy: Key;
  readonly path: FieldPath;
  readonly message: string;
}

/** `levels` from far to near. Messages name the level of the override by its kind alone. */
export function* looserSettings(levels: readonly PolicyLevel[]): Generator<LooserSetting> {
  const effective = effectiveSettings(levels.map(({ policy }) => policy));
  for (const { policy, section, field } of effective) {
    const place = levels.findIndex((level) => level.policy === policy);
    const written = policy[section]?.[field] ?? [];
    for (const [index, check] of written.entries()) {
      for (const { object, policy: farther } of levels.slice(0, place)) {
        const problem = problemBetween(check, farther.overrides?.[field] ?? []);
        if (problem === undefined) continue;
        const path = ["spec", section, field, ...PLACE_OF[field](index)];
        yield { policy: policy.key, path, message: `${problem} of the ${object.kind}` };
      }
    }
  }
}

const PLACE_OF: Readonly<Record<TrafficField, (index: number) => FieldPath>> = {
  clientAddresses: () => ["allow"],
  rateLimits: (index) => [index],
  apiKeys: () => [],
  basicAuth: () => [],
  jwt: () => [],
  externalAuth: () => [],
  requestBody: () => ["maxSize"],
  timeouts: () => [],
  httpsRedirect: () => ["enabled"],
  requestHeaders: () => [],
  responseHeaders: () => [],
  retries: () => ["attempts"],
  cors: () => [],
  compression: () => [],
  directResponse: () => [],
};

function problemBetween(check: Setting, overrides: readonly Setting[]): string | undefined {
  if ("edits" in check) return undefined;
  if (check.type === "timeouts") {
    const looser = TIMEOUT_NAMES.find((name) =>
      overrides.some(
        (each) => each.type === "timeouts" && (check[name] ?? 0) > (each[name] ?? Number.POSITIVE_INFINITY),
      ),
    );
    return looser && `${looser.replace("Ms", "")} never decides: it is longer than an override`;
  }
  if (check.type === "retries") {
    const isLooser = overrides.some((each) => each.type === "retries" && check.attempts > each.attempts);
    return isLooser ? "attempts never decides: it is more than an override" : undefined;
  }
  if (check.type === "cors" || check.type === "compression")
    return overrides.length > 0 ? "the setting never decides: it gives way to an override" : undefined;
  if (check.type === "directResponse") {
    const isAnswered = overrides.some((each) => each.type === "directResponse" && each.enabled);
    return isAnswered ? "the setting never decides: it gives way to an override" : undefined;
  }
  if (check.type === "httpsRedirect") {
    const isDemanded = overrides.some((each) => each.type === "httpsRedirect" && each.enabled);
    return !check.enabled && isDemanded ? "redirects stay: they are demanded by an override" : undefined;
  }
  if (check.type === "rateLimit" || check.type === "requestBody") {
    const isLooser = overrides.some((each) => isLooserLimit(check, each));
    return isLooser ? "the limit never decides: it is looser than an override" : undefined;
  }
  // Credentials of all levels are asked for, and none of them is stricter than another.
  if (check.type !== "addresses") return undefined;
  const excludes = overrides.some((each) => each.type === "addresses" && excludesAll(check, each));
  return excludes ? "nobody passes: the list has no address in common with an override" : undefined;
}

function isLooserLimit(limit: RateLimitCheck | RequestBodyCheck, override: Setting): boolean {
  if (limit.type === "requestBody" && override.type === "requestBody")
    return limit.maxBytes > override.maxBytes;
  return limit.type === "rateLimit" && override.type === "rateLimit" && isLooserRate(limit, override);
}

/** With the same key, and in no respect stricter. */
function isLooserRate(limit: RateLimitCheck, override: RateLimitCheck): boolean {
  if (JSON.stringify(limit.key) !== JSON.stringify(override.key)) return false;
  const rate = limit.requests * override.periodMs - override.requests * limit.periodMs;
  const burst = limit.burst - override.burst;
  return rate >= 0 && burst >= 0 && rate + burst > 0;
}

function excludesAll({ allow }: AddressCheck, override: AddressCheck): boolean {
  if (allow === undefined || override.allow === undefined) return false;
  const others = override.allow.map(parseNetwork).filter((each) => each !== undefined);
  return !allow.some((text) => {
    const network = parseNetwork(text);
    return network !== undefined && others.some((other) => networksOverlap(network, other));
  });
}
