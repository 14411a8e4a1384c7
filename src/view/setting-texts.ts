/** What settings say that become part of rules, ports or backends. */
import type { AttachedPolicy } from "../engine/policies/attached-policies.ts";
import type { AttachedBackendPolicy } from "../engine/policies/backend-settings.ts";
import type { CertificateDemand } from "../engine/policies/client-certificates.ts";
import type { ClientPortSettings } from "../engine/policies/client-policies.ts";
import {
  RULE_FIELDS,
  type RuleSetting,
  TIMEOUT_NAMES,
  type TimeoutName,
} from "../engine/policies/rule-settings.ts";
import { type CompressionSetting, USUAL_TYPES } from "../engine/policies/settings/compression.ts";
import type { RetrySetting } from "../engine/policies/settings/retries.ts";
import type { AttachedTrafficPolicy } from "../engine/policies/traffic-policies.ts";
import { shortDuration } from "../matching/explain/guard-outcome.ts";
import { BACKEND_LIMITS, type BackendLimits } from "../plan/limits/backend-limits.ts";
import type { ClientLimits } from "../plan/limits/client-limits.ts";
import type { LoadBalancing } from "../plan/load-balancing.ts";
import type { CorsPolicy, PersistencePolicy } from "../plan/rule.ts";

/** By `section.field`; undefined: the policy has none. */
export function ruleSettingTexts(
  policy: AttachedTrafficPolicy,
): Readonly<Record<string, string>> | undefined {
  const texts = (["overrides", "defaults"] as const).flatMap((section) =>
    RULE_FIELDS.flatMap((field) =>
      (policy[section]?.[field] ?? []).map((setting) => [`${section}.${field}`, textOf(setting)] as const),
    ),
  );
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}

const CLIENT_FIELDS = ["headerLimits", "connections"] as const;

/** Of a ClientPolicy: its limits. */
export function clientLimitTexts(
  policy: AttachedPolicy<ClientPortSettings>,
): Readonly<Record<string, string>> | undefined {
  const texts = (["overrides", "defaults"] as const).flatMap((section) => [
    ...CLIENT_FIELDS.flatMap((field) => {
      const limits = policy[section]?.[field];
      return limits === undefined ? [] : [[`${section}.${field}`, limitsText(limits)] as const];
    }),
    ...(policy[section] !== undefined && "clientCertificates" in policy[section]
      ? [[`${section}.clientCertificates`, demandText(policy[section].clientCertificates)] as const]
      : []),
  ]);
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}

function demandText(demand: CertificateDemand | undefined): string {
  if (demand === undefined) return "cannot be read: nobody is let in";
  const { mode, configMaps, subjectAltNames, forward } = demand;
  return [
    `${mode}, by ConfigMap ${configMaps.join(", ")}`,
    ...(subjectAltNames === undefined ? [] : [`for ${subjectAltNames.join(", ")}`]),
    ...(forward === undefined ? [] : [`forwards ${forward}`]),
  ].join("; ");
}

function limitsText(limits: ClientLimits): string {
  const { headerBytes, headerCount, headerTimeoutMs, idleMs, concurrentStreams } = limits;
  return [
    headerBytes === undefined ? [] : `maxSize ${headerBytes / 1024}Ki`,
    headerCount === undefined ? [] : `maxCount ${headerCount}`,
    headerTimeoutMs === undefined ? [] : `timeout ${shortDuration(headerTimeoutMs)}`,
    idleMs === undefined ? [] : `idleTimeout ${shortDuration(idleMs)}`,
    concurrentStreams === undefined ? [] : `maxConcurrentStreams ${concurrentStreams}`,
  ]
    .flat()
    .join(", ");
}

function corsText({ allowOrigins, allowCredentials }: CorsPolicy): string {
  if (allowOrigins.length === 0) return "no origins";
  return `origins ${allowOrigins.join(", ")}${allowCredentials ? ", with credentials" : ""}`;
}

function compressionText({ policy }: CompressionSetting): string {
  if (policy === undefined) return "none";
  const { algorithms, minBytes, contentTypes } = policy;
  const types = isUsual(contentTypes) ? "the usual types" : contentTypes.join(", ");
  return `${algorithms.join(", ")}; from ${minBytes} bytes; ${types}`;
}

function isUsual(types: readonly string[]): boolean {
  return types.length === USUAL_TYPES.length && types.every((each) => USUAL_TYPES.includes(each));
}

function retryText({ attempts, codes, methods, backoffMs }: RetrySetting): string {
  return [
    `attempts ${attempts}`,
    codes === undefined ? [] : `codes ${codes.join(" ")}`,
    methods === undefined ? [] : `methods ${methods.join(" ")}`,
    backoffMs === undefined ? [] : `backoff ${shortDuration(backoffMs)}`,
  ]
    .flat()
    .join(", ");
}

const WORDS: Readonly<Record<TimeoutName, string>> = {
  requestMs: "request",
  backendRequestMs: "backendRequest",
  idleMs: "idle",
};

function textOf(setting: RuleSetting): string {
  if ("edits" in setting) return setting.edits.map(({ op, name }) => `${op} ${name}`).join(", ");
  if (setting.type === "httpsRedirect") {
    const { enabled, statusCode, port } = setting;
    const to = port === undefined ? "" : `, port ${port}`;
    return enabled ? `at HTTP listeners ${statusCode} to HTTPS${to}` : "none";
  }
  if (setting.type === "cors") return corsText(setting.policy);
  if (setting.type === "compression") return compressionText(setting);
  if (setting.type === "directResponse") return setting.enabled ? `answers ${setting.status}` : "none";
  if (setting.type === "retries") return retryText(setting);
  return TIMEOUT_NAMES.flatMap((name) => {
    const value = setting[name];
    return value === undefined ? [] : [`${WORDS[name]} ${shortDuration(value)}`];
  }).join(", ");
}

/** Of a BackendPolicy. */
export function backendSettingTexts(
  policy: AttachedBackendPolicy,
): Readonly<Record<string, string>> | undefined {
  const texts = (["overrides", "defaults"] as const).flatMap((section) => {
    const { loadBalancing, sessionPersistence, limits } = policy[section] ?? {};
    return [
      ...(limits === undefined ? [] : [[`${section}.limits`, limitTexts(limits)] as const]),
      ...(sessionPersistence === undefined
        ? []
        : [[`${section}.sessionPersistence`, persistenceText(sessionPersistence)] as const]),
      ...(loadBalancing === undefined
        ? []
        : [[`${section}.loadBalancing`, balancingText(loadBalancing)] as const]),
    ];
  });
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}

function limitTexts(limits: BackendLimits): string {
  return BACKEND_LIMITS.flatMap((name) => (limits[name] === undefined ? [] : `${name} ${limits[name]}`)).join(
    ", ",
  );
}

function persistenceText({ type, name, absoluteTimeoutMs }: PersistencePolicy): string {
  const limit = absoluteTimeoutMs === undefined ? "" : `, for ${shortDuration(absoluteTimeoutMs)}`;
  return `by ${type} ${name}${limit}`;
}

const BALANCING_WORDS = {
  roundRobin: "round robin",
  leastRequest: "least request",
  random: "random",
} as const;

function balancingText(balancing: LoadBalancing): string {
  if (balancing.type !== "hash") return BALANCING_WORDS[balancing.type];
  const { key } = balancing;
  return key.type === "client" ? "hash by the address of the client" : `hash by ${key.type} ${key.name}`;
}
