/**
 * Settings of a TrafficPolicy that become part of the rules themselves. What the route says counts
 * as the nearest default: it comes before the defaults of policies, and gives way to overrides.
 *
 * - `timeouts`: of each, the smallest of the overrides and of what holds otherwise.
 * - `httpsRedirect`: at listeners without TLS, a redirect takes the place of what the rule does. A
 *   default leaves redirects of the route alone, an override those that lead to HTTPS.
 * - `requestHeaders`, `responseHeaders`: a default holds for rules without edits of their own.
 *   Overrides come after all edits of the route, the farthest one last.
 * - `directResponse`: an answer takes the place of what the rule does; redirects to HTTPS stay.
 * - `cors`, `compression`, `retries`: see their own files.
 */
import type { TrafficSettings } from "../../api/traffic-policy.ts";
import type {
  Action,
  Filters,
  ForwardAction,
  HeaderEdit,
  RedirectAction,
  Timeouts,
} from "../../plan/rule.ts";
import { milliseconds } from "../foundation/durations.ts";
import { checkedModifier, headerEdits } from "../rules/filters.ts";
import type { Unreadable } from "./request-limits.ts";
import { type CompressionSetting, readCompression, withCompression } from "./settings/compression.ts";
import { type CorsSetting, readCors, withCors } from "./settings/cors.ts";
import { type ResponseSetting, readDirectResponse, respondAction } from "./settings/direct-response.ts";
import { type RetrySetting, readRetries, withRetries } from "./settings/retries.ts";

/** Fields whose settings become part of rules. */
export const RULE_FIELDS = [
  "timeouts",
  "retries",
  "httpsRedirect",
  "requestHeaders",
  "responseHeaders",
  "cors",
  "compression",
  "directResponse",
] as const;
export type RuleField = (typeof RULE_FIELDS)[number];

export type RuleSetting =
  | TimeoutSetting
  | RetrySetting
  | RedirectSetting
  | HeaderSetting
  | CorsSetting
  | CompressionSetting
  | ResponseSetting;

export interface HeaderSetting {
  readonly type: "requestHeaders" | "responseHeaders";
  readonly edits: readonly HeaderEdit[];
}

export interface RedirectSetting {
  readonly type: "httpsRedirect";
  readonly enabled: boolean;
  readonly statusCode: number;
  readonly port?: number;
}

export interface TimeoutSetting extends Pick<Timeouts, TimeoutName> {
  readonly type: "timeouts";
}

export type TimeoutName = "requestMs" | "backendRequestMs" | "idleMs";

export const TIMEOUT_NAMES: readonly TimeoutName[] = ["requestMs", "backendRequestMs", "idleMs"];

const LONGEST_MS = 86_400_000;

function readTimeouts({
  request,
  backendRequest,
  idle,
}: NonNullable<TrafficSettings["timeouts"]>): TimeoutSetting | Unreadable {
  const written = { request, backendRequest, idle };
  for (const [name, value] of Object.entries(written)) {
    if (value === undefined) continue;
    const ms = milliseconds(value);
    if (ms < 1 || ms > LONGEST_MS) return { problem: `${name}: ${value} is not between 1ms and 24h` };
  }
  const requestMs = request === undefined ? undefined : milliseconds(request);
  const backendRequestMs = backendRequest === undefined ? undefined : milliseconds(backendRequest);
  if (requestMs !== undefined && backendRequestMs !== undefined && backendRequestMs > requestMs) {
    const problem = `backendRequest: ${backendRequest} is longer than request, ${request}: it would never end a request`;
    return { problem };
  }
  return {
    type: "timeouts",
    ...(requestMs === undefined ? {} : { requestMs }),
    ...(backendRequestMs === undefined ? {} : { backendRequestMs }),
    ...(idle === undefined ? {} : { idleMs: milliseconds(idle) }),
  };
}

const REDIRECT_CODES: readonly number[] = [301, 302, 303, 307, 308];

function readHttpsRedirect({
  enabled = true,
  statusCode = 301,
  port,
}: NonNullable<TrafficSettings["httpsRedirect"]>): RedirectSetting | Unreadable {
  if (!REDIRECT_CODES.includes(statusCode))
    return { problem: `statusCode: ${statusCode} is not one of ${REDIRECT_CODES.join(", ")}` };
  return { type: "httpsRedirect", enabled, statusCode, ...(port === undefined ? {} : { port }) };
}

function readHeaders(
  type: HeaderSetting["type"],
  written: NonNullable<TrafficSettings[HeaderSetting["type"]]>,
): HeaderSetting | Unreadable {
  const unfit = checkedModifier(written);
  return unfit === undefined ? { type, edits: headerEdits(written) } : { problem: unfit.failure.message };
}

const READERS: {
  readonly [Field in RuleField]: (written: NonNullable<TrafficSettings[Field]>) => RuleSetting | Unreadable;
} = {
  timeouts: readTimeouts,
  retries: readRetries,
  httpsRedirect: readHttpsRedirect,
  requestHeaders: (written) => readHeaders("requestHeaders", written),
  responseHeaders: (written) => readHeaders("responseHeaders", written),
  cors: readCors,
  compression: readCompression,
  directResponse: readDirectResponse,
};
/** Their problems begin with no field below them. */
const WITHOUT_FIELDS: readonly RuleField[] = ["requestHeaders", "responseHeaders", "cors"];

/** The setting of each field that is set, or what is wrong with it. */
export function readRuleSettings(
  written: TrafficSettings,
): readonly (readonly [field: RuleField, reading: RuleSetting | Unreadable])[] {
  return RULE_FIELDS.flatMap((field): (readonly [RuleField, RuleSetting | Unreadable])[] => {
    const value = written[field];
    if (value === undefined) return [];
    const reading = READERS[field](value as never);
    if (!("problem" in reading)) return [[field, reading]];
    const place = WITHOUT_FIELDS.includes(field) ? `${field}: ` : `${field}.`;
    return [[field, { problem: `${place}${reading.problem}` }]];
  });
}

/** A setting as it holds at a rule. */
export interface HoldingSetting {
  readonly setting: RuleSetting;
  readonly isOverride: boolean;
  /** Of the policy. */
  readonly namespace: string;
}

/**
 * `settings`: the overrides, from far to near, and the default that holds among those of policies.
 * `isSecure`: the listener has TLS.
 */
export function actionWith(action: Action, settings: readonly HoldingSetting[], isSecure: boolean): Action {
  // Defaults first: an override must not be taken for what the route says. The farthest is last.
  const inOrder = settings.toReversed().toSorted((a, b) => Number(a.isOverride) - Number(b.isOverride));
  const set = inOrder.reduce(withSetting, action);
  const redirect = isSecure ? undefined : redirectInstead(action, settings);
  if (redirect !== undefined) return inOrder.reduce(withSetting, redirect);
  return responseInstead(settings) ?? set;
}

/** Of several overrides the farthest one decides. */
function responseInstead(settings: readonly HoldingSetting[]): Action | undefined {
  const found = settings
    .map(({ setting }) => setting)
    .find((setting) => setting.type === "directResponse" && setting.enabled);
  return found?.type === "directResponse" ? respondAction(found) : undefined;
}

function withSetting(action: Action, { setting, isOverride }: HoldingSetting): Action {
  switch (setting.type) {
    case "timeouts":
      return action.type === "forward" ? withTimeouts(action, setting, isOverride) : action;
    case "requestHeaders":
    case "responseHeaders":
      return withHeaders(action, setting, isOverride);
    case "retries":
      return action.type === "forward" ? withRetries(action, setting, isOverride) : action;
    case "cors":
      return action.type === "forward" ? withCors(action, setting, isOverride) : action;
    case "compression":
      return action.type === "forward" ? withCompression(action, setting) : action;
    case "httpsRedirect":
    case "directResponse":
      return action;
  }
}

/** Edits of backends come after those of the rule: what no route may undo is theirs. */
function withHeaders(action: Action, { type, edits }: HeaderSetting, isOverride: boolean): Action {
  if (action.type === "respond" || (action.type === "redirect" && type === "requestHeaders")) return action;
  const { filters } = action;
  if (!isOverride)
    return filters[type] === undefined ? { ...action, filters: { ...filters, [type]: edits } } : action;
  const edited = (of: Filters): Filters => ({ ...of, [type]: [...(of[type] ?? []), ...edits] });
  return action.type === "redirect"
    ? { ...action, filters: edited(filters) }
    : { ...action, backends: action.backends.map((each) => ({ ...each, filters: edited(each.filters) })) };
}

/** Of several overrides the farthest one says how. */
function redirectInstead(action: Action, settings: readonly HoldingSetting[]): RedirectAction | undefined {
  for (const { setting, isOverride } of settings) {
    if (setting.type !== "httpsRedirect" || !setting.enabled) continue;
    if (action.type === "respond") return undefined;
    if (action.type === "redirect" && (!isOverride || action.scheme === "https")) return undefined;
    const { statusCode, port } = setting;
    return {
      type: "redirect",
      scheme: "https",
      ...(port === undefined ? {} : { port }),
      statusCode,
      filters: {},
    };
  }
  return undefined;
}

/** A redirect to the same address over HTTPS, which tells nobody anything. */
export function changesSchemeAlone(action: Action): boolean {
  if (action.type !== "redirect") return false;
  return action.scheme === "https" && action.hostname === undefined && action.path === undefined;
}

function withTimeouts(action: ForwardAction, setting: TimeoutSetting, isOverride: boolean): ForwardAction {
  const { timeouts } = action;
  const changed: { -readonly [Name in TimeoutName]?: number } = {};
  for (const name of TIMEOUT_NAMES) {
    const value = setting[name];
    if (value === undefined) continue;
    const own = timeouts[name];
    if (isOverride) changed[name] = Math.min(own ?? value, value);
    // A route that turns a timeout off has said so.
    else if (own === undefined && (name === "idleMs" || timeouts.unbounded !== true)) changed[name] = value;
  }
  return { ...action, timeouts: { ...timeouts, ...changed } };
}
