/**
 * Settings that an override of a farther level makes pointless. All overrides hold together, so a
 * looser limit never decides, and two lists without a common address let nobody pass.
 */
import type { FieldPath } from "../../../api/admission/schema/field-error.ts";
import type { Key } from "../../../api/key.ts";
import { effectiveSettings, type TrafficField } from "../../../engine/policies/traffic-policies.ts";
import { overlap, parseNetwork } from "../../../matching/networks.ts";
import type { AddressCheck, GuardCheck, RateLimitCheck } from "../../../plan/guard.ts";
import type { PolicyLevel } from "./policy-levels.ts";

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
};

function problemBetween(check: GuardCheck, overrides: readonly GuardCheck[]): string | undefined {
  if (check.type === "rateLimit") {
    const isLooser = overrides.some((each) => each.type === "rateLimit" && isLooserLimit(check, each));
    return isLooser ? "the limit never decides: it is looser than an override" : undefined;
  }
  const excludes = overrides.some((each) => each.type === "addresses" && excludesAll(check, each));
  return excludes ? "nobody passes: the list has no address in common with an override" : undefined;
}

/** With the same key, and in no respect stricter. */
function isLooserLimit(limit: RateLimitCheck, override: RateLimitCheck): boolean {
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
    return network !== undefined && others.some((other) => overlap(network, other));
  });
}
