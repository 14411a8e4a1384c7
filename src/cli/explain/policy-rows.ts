/** The effective policy of a request, one row for each check and for each default that gave way. */
import {
  authenticationText,
  clientAddressSource,
  limitText,
  listText,
} from "../../matching/explain/guard-outcome.ts";
import { isAuthentication } from "../../plan/authentication.ts";
import type { GuardCheck } from "../../plan/guard.ts";
import type { EffectivePolicy, EffectiveValue } from "../../view/explain/effective-policy.ts";
import type { SettingSource } from "../../view/explain/setting-levels.ts";
import { describe } from "../../view/merged-state.ts";

export function policyRows({ settings, overridden }: EffectivePolicy): readonly (readonly string[])[] {
  return [
    ...settings.flatMap((setting) =>
      valuesOf(setting).map((value) => [setting.field, placeText(setting), value]),
    ),
    ...overridden.map((each) => [each.field, placeText(each), `gave way to ${sourceText(each.by)}`]),
  ];
}

function valuesOf(setting: EffectiveValue): readonly string[] {
  const { policy, clientAddress, value, section, field, checks = [] } = setting;
  const isRuleDefault =
    policy.kind === "TrafficPolicy" && section === "defaults" && !UNKNOWN_TO_ROUTES.includes(field);
  if (value !== undefined) return [`${value}${isRuleDefault ? RULE_DEFAULT : ""}`];
  if (clientAddress !== undefined) return [`from ${clientAddressSource(clientAddress)}`];
  if (checks.length === 0) return ["cannot be read: nothing passes (500)"];
  return checks.map(({ check, result }) => `${checkText(check)}${RESULT[result]}`);
}

const RULE_DEFAULT = "; what the route itself says comes first";

/** Fields that routes have no words for. */
const UNKNOWN_TO_ROUTES: readonly string[] = ["compression", "directResponse"];

const RESULT = {
  passes: ": passes",
  refuses: ": refused (403)",
  depends: "; name a client with --client",
  counts: "",
  asks: "",
  absent: "",
} as const;

function checkText(check: GuardCheck): string {
  if (isAuthentication(check)) return authenticationText(check);
  if (check.type !== "addresses") return limitText(check);
  return [
    check.allow === undefined ? [] : `allow ${listText(check.allow)}`,
    check.deny === undefined ? [] : `deny ${listText(check.deny)}`,
  ]
    .flat()
    .join(", ");
}

/** `overrides of TrafficPolicy infra/base` */
function sourceText({ policy, section }: SettingSource): string {
  return `${section} of ${describe(policy)}`;
}

/** With what the policy is attached to. */
function placeText(source: SettingSource): string {
  const { target } = source;
  const where = target.section === undefined ? "" : `, ${target.section}`;
  return `${sourceText(source)} at ${describe(target)}${where}`;
}
