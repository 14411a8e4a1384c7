/**
 * TrafficPolicy: what traffic must meet, level by level. From far to near:
 *
 *   Gateway → ListenerSet, XListenerSet or child Gateway → listener → route → rule
 *
 * - A policy of the Gateway reaches its sets and children; one of a set or child reaches its own
 *   listeners alone (GEP-1713, "Policy Attachment").
 * - `overrides` of all levels hold together, so that a nearer level can only be stricter.
 * - Of the `defaults` the nearest one holds. A farther one gives way to it, and to an override of
 *   the same field at a nearer level.
 * - Fields are decided one by one, and each is one unit.
 */
import { type Key, partsOf } from "../../api/key.ts";
import type { RateLimit, TrafficSettings } from "../../api/traffic-policy.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { AddressCheck, GuardCheck, GuardItem, RateLimitCheck } from "../../plan/guard.ts";
import type { RequestBodyCheck } from "../../plan/limits/request-limits.ts";
import type { ItemId } from "../../plan/plan.ts";
import type { RuleOrigin } from "../../plan/rule.ts";
import { milliseconds } from "../foundation/durations.ts";
import { gatewayName } from "../foundation/item-ids.ts";
import { targetKey } from "../foundation/policy-targets.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { MergedListener } from "../listeners/merge.ts";
import {
  type AttachedPolicies,
  type AttachedPolicy,
  type PolicySettings,
  policyAt,
} from "./attached-policies.ts";
import { AUTHENTICATION_FIELDS, type ReferringCheck, readAuthentication } from "./authentication.ts";
import { readNetworks } from "./networks.ts";
import { readRequestBody, type Unreadable } from "./request-limits.ts";
import {
  type HoldingSetting,
  RULE_FIELDS,
  type RuleField,
  type RuleSetting,
  readRuleSettings,
} from "./rule-settings.ts";

/** Fields whose settings are guards, in the order in which they are checked. */
const GUARD_FIELDS = [
  "clientAddresses",
  "rateLimits",
  "apiKeys",
  "basicAuth",
  "jwt",
  "externalAuth",
  "requestBody",
] as const;

/** The units that are decided one by one. */
export type GuardField = (typeof GUARD_FIELDS)[number];
export type TrafficField = GuardField | RuleField;
export const TRAFFIC_FIELDS: readonly TrafficField[] = [...GUARD_FIELDS, ...RULE_FIELDS];
/** An override of these only limits what others ask for, so that it takes no default's place. */
const LIMITING_FIELDS: readonly TrafficField[] = ["retries"];

/**
 * What each field that is set says. A field that cannot be read is `undefined`: what it guards, or
 * would change, stays closed.
 */
export type TrafficChecks = Readonly<
  Partial<
    Record<GuardField, readonly PolicyCheck[] | undefined> &
      Record<RuleField, readonly RuleSetting[] | undefined>
  >
>;

export type PolicyCheck = AddressCheck | RateLimitCheck | ReferringCheck | RequestBodyCheck;

export type TrafficPolicies = AttachedPolicies<TrafficChecks>;
export type AttachedTrafficPolicy = AttachedPolicy<TrafficChecks>;

const LONGEST_PERIOD_MS = 86_400_000;

export const TRAFFIC_SETTINGS: PolicySettings<TrafficSettings, TrafficChecks> = {
  read: readTrafficSettings,
  closed: Object.fromEntries(TRAFFIC_FIELDS.map((field) => [field, undefined])),
};

function readTrafficSettings(
  written: TrafficSettings,
): { readonly settings: TrafficChecks } | { readonly settings: TrafficChecks; readonly problem: string } {
  const settings: { -readonly [Field in TrafficField]?: TrafficChecks[Field] } = {};
  let problem: string | undefined;
  if (written.clientAddresses !== undefined) {
    const check = readAddresses(written.clientAddresses);
    settings.clientAddresses = "problem" in check ? undefined : [check];
    if ("problem" in check) problem = `clientAddresses.${check.problem}`;
  }
  if (written.rateLimits !== undefined) {
    const checks = written.rateLimits.map(readRateLimit);
    const wrong = checks.find((check) => "problem" in check);
    settings.rateLimits = wrong === undefined ? (checks as readonly RateLimitCheck[]) : undefined;
    if (wrong !== undefined) problem ??= `rateLimits: ${wrong.problem}`;
  }
  for (const [field, reading] of readAuthentication(written)) {
    settings[field] = "problem" in reading ? undefined : [reading];
    if ("problem" in reading) problem ??= `${field}: ${reading.problem}`;
  }
  if (written.requestBody !== undefined) {
    const check = readRequestBody(written.requestBody);
    settings.requestBody = "problem" in check ? undefined : [check];
    if ("problem" in check) problem ??= `requestBody.${check.problem}`;
  }
  for (const [field, reading] of readRuleSettings(written)) {
    settings[field] = "problem" in reading ? undefined : [reading];
    if ("problem" in reading) problem ??= reading.problem;
  }
  return problem === undefined ? { settings } : { settings, problem };
}

function readAddresses({
  allow,
  deny,
}: NonNullable<TrafficSettings["clientAddresses"]>): AddressCheck | Unreadable {
  const allowed = allow && readNetworks(allow);
  if (allowed !== undefined && "problem" in allowed) return { problem: `allow: ${allowed.problem}` };
  const denied = deny && readNetworks(deny);
  if (denied !== undefined && "problem" in denied) return { problem: `deny: ${denied.problem}` };
  return {
    type: "addresses",
    ...(allowed === undefined ? {} : { allow: allowed.networks }),
    ...(denied === undefined ? {} : { deny: denied.networks }),
  };
}

const FIELD_NAME = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,256}$/;

function readRateLimit({ requests, period, burst, per, header }: RateLimit): RateLimitCheck | Unreadable {
  const periodMs = milliseconds(period);
  if (periodMs < 1 || periodMs > LONGEST_PERIOD_MS)
    return { problem: `period ${period} is not between 1ms and 24h` };
  if (!isCount(requests) || (burst !== undefined && !isCount(burst)))
    return { problem: "requests and burst are whole numbers from 1 to 1000000000" };
  const limit = { type: "rateLimit", requests, periodMs, burst: burst ?? requests } as const;
  if (per === "All") return { ...limit, key: { type: "all" } };
  if (per === "ClientAddress") return { ...limit, key: { type: "client" } };
  if (per !== "Header") return { problem: `per ${JSON.stringify(per)} is not known` };
  if (header === undefined || !FIELD_NAME.test(header)) return { problem: "header is no name of a field" };
  return { ...limit, key: { type: "header", name: header.toLowerCase() } };
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= 1_000_000_000;
}

export type PolicySection = "defaults" | "overrides";

/** One field of one section of a policy, as it holds somewhere. */
export interface EffectiveSetting<Policy extends PolicySections = AttachedTrafficPolicy> {
  readonly policy: Policy;
  readonly section: PolicySection;
  readonly field: TrafficField;
}

/** What decides which settings hold: the fields that each section has. */
export type PolicySections = Readonly<Partial<Record<PolicySection, object>>>;

/** `levels`: the policies that count, from far to near. */
export function effectiveSettings<Policy extends PolicySections>(
  levels: readonly Policy[],
): readonly EffectiveSetting<Policy>[] {
  return TRAFFIC_FIELDS.flatMap((field): EffectiveSetting<Policy>[] => {
    const found: EffectiveSetting<Policy>[] = [];
    let nearestDefault: EffectiveSetting<Policy> | undefined;
    for (const policy of levels) {
      if (policy.defaults !== undefined && field in policy.defaults)
        nearestDefault = { policy, section: "defaults", field };
      if (policy.overrides !== undefined && field in policy.overrides) {
        found.push({ policy, section: "overrides", field });
        if (!LIMITING_FIELDS.includes(field)) nearestDefault = undefined;
      }
    }
    return nearestDefault === undefined ? found : [...found, nearestDefault];
  });
}

/** The fields that rules of this kind have. Rules of streams have no requests to count. */
export function fieldsOfRules(kind: RuleOrigin["kind"]): readonly TrafficField[] {
  return STREAMS.includes(kind) ? FIELDS_OF_STREAMS : TRAFFIC_FIELDS;
}

/** Why a policy does nothing at routes of a kind. */
export function inapplicable(
  kind: RuleOrigin["kind"],
  { defaults = {}, overrides = {} }: AttachedTrafficPolicy,
): Failure | undefined {
  const fields = TRAFFIC_FIELDS.filter((field) => field in defaults || field in overrides);
  if (fields.some((field) => fieldsOfRules(kind).includes(field))) return undefined;
  return { reason: "Invalid", message: `${fields.join(" and ")} cannot be applied to a ${kind}` };
}

const FIELDS_OF_STREAMS: readonly TrafficField[] = ["clientAddresses"];
const STREAMS: readonly RuleOrigin["kind"][] = ["TLSRoute", "TCPRoute", "UDPRoute"];

export function guardIds(
  gateway: Key,
  kind: RuleOrigin["kind"],
  effective: readonly EffectiveSetting[],
): readonly ItemId[] {
  const ids = effective
    .filter(({ field }) => fieldsOfRules(kind).includes(field))
    .flatMap((setting) => {
      const checks = setting.policy[setting.section]?.[setting.field];
      if (checks !== undefined && isRuleField(setting.field)) return [];
      // Without an item a data plane answers 500: what cannot be read is never open.
      return (checks ?? [undefined]).map((_check, place) => guardId(gateway, setting, place));
    });
  // A policy may be attached at two levels of a rule: its limits count a request once.
  return [...new Set(ids)];
}

export function isRuleField(field: TrafficField): field is RuleField {
  return (RULE_FIELDS as readonly string[]).includes(field);
}

/** What holds among the settings that become part of rules. */
export function ruleSettings(
  kind: RuleOrigin["kind"],
  effective: readonly EffectiveSetting[],
): readonly HoldingSetting[] {
  const fields = fieldsOfRules(kind);
  const seen = new Set<string>();
  return effective.flatMap(({ policy, section, field }) => {
    if (!isRuleField(field) || !fields.includes(field)) return [];
    // A policy may be attached at two levels of a rule: what it adds is added once.
    const source = `${policy.key} ${section} ${field}`;
    if (seen.has(source)) return [];
    seen.add(source);
    return (policy[section]?.[field] ?? []).map((setting) => ({
      setting,
      isOverride: section === "overrides",
      namespace: partsOf(policy.key).namespace,
    }));
  });
}

/** `guard:infra/gw:infra/base:overrides.rateLimits.0` */
function guardId(gateway: Key, { policy, section, field }: EffectiveSetting, place: number): ItemId {
  const { namespace, name } = partsOf(policy.key);
  return `guard:${gatewayName(gateway)}:${namespace}/${name}:${section}.${field}.${place}`;
}

/** A check of a policy, and the item that it is at a Gateway. */
export interface PlacedCheck {
  readonly check: PolicyCheck;
  readonly item: (check: GuardCheck) => GuardItem;
}

export function placedChecks(gateway: Key, policy: AttachedTrafficPolicy): readonly PlacedCheck[] {
  const { namespace, name } = partsOf(policy.key);
  return (["overrides", "defaults"] as const).flatMap((section) =>
    GUARD_FIELDS.flatMap((field) =>
      (policy[section]?.[field] ?? []).map((check, place) => ({
        check,
        item: (resolved: GuardCheck): GuardItem => ({
          type: "guard",
          id: guardId(gateway, { policy, section, field }, place),
          gateway: gatewayName(gateway),
          policy: { namespace, name },
          check: resolved,
        }),
      })),
    ),
  );
}

/** The checks of a policy that refer to something. */
export function referringChecks({ overrides, defaults }: AttachedTrafficPolicy): readonly ReferringCheck[] {
  return [overrides, defaults].flatMap((settings) =>
    AUTHENTICATION_FIELDS.flatMap((field) => (settings?.[field] ?? []).filter(isReferring)),
  );
}

export function isReferring(check: PolicyCheck): check is ReferringCheck {
  return check.type !== "addresses" && check.type !== "rateLimit" && check.type !== "requestBody";
}

/** The levels of a listener: those of its Gateway, its owner and its own. */
export type ListenerLevels = readonly AttachedTrafficPolicy[];

/** Only listeners that have any. */
export function deriveListenerLevels(
  graph: Graph,
  merged: ReadonlyCollection<MergedListener>,
  policies: TrafficPolicies,
): ReadonlyCollection<ListenerLevels> {
  return graph.derive<MergedListener, ListenerLevels>(
    "traffic policies of listeners",
    merged,
    (_key, { gateway, owner, section }, lookup) => {
      const targets = [
        targetKey(gateway, undefined),
        ...(owner.key === gateway ? [] : [targetKey(owner.key, undefined)]),
        targetKey(owner.key, section),
      ];
      const levels = targets.flatMap((target) => policyAt(target, lookup, policies) ?? []);
      return levels.length === 0 ? undefined : levels;
    },
  );
}
