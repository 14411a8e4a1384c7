/**
 * `directResponse` of a TrafficPolicy: a fixed answer takes the place of what a rule does, as for
 * maintenance. Guards of the rule come first: who may not reach it still learns no more than that.
 *
 * The answer is text of the policy, or of a ConfigMap in its namespace. One that cannot be had is
 * answered with 500: a rule that was taken out of service does not serve by mistake.
 */
import { keyFor } from "../../../api/key.ts";
import type { TrafficSettings } from "../../../api/traffic-policy.ts";
import type { Lookup } from "../../../graph/lookup.ts";
import type { RespondAction } from "../../../plan/rule.ts";
import { milliseconds } from "../../foundation/durations.ts";
import type { Inputs } from "../../foundation/inputs.ts";
import type { Failure } from "../../foundation/verdict.ts";

export interface ResponseSetting {
  readonly type: "directResponse";
  readonly enabled: boolean;
  readonly status: number;
  readonly contentType: string;
  readonly retryAfterSeconds?: number;
  readonly body: ResponseBody;
}

type ResponseBody =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "configMap"; readonly name: string; readonly key: string }
  | { readonly type: "absent" };

/** Envoy takes no longer one, unless all routes of a tenant are changed for it. */
const LARGEST_BODY = 4096;
const LONGEST_RETRY_MS = 86_400_000;
const DEFAULT_STATUS = 503;
const DEFAULT_TYPE = "text/plain; charset=utf-8";
/** A media type with parameters that need no quotes (RFC 9110, 8.3.1). */
const MEDIA_TYPE =
  /^[A-Za-z0-9!#$&^_.+-]{1,64}\/[A-Za-z0-9!#$&^_.+-]{1,64}(?:; ?[A-Za-z0-9_-]{1,32}=[A-Za-z0-9._-]{1,64}){0,4}$/;

export function readDirectResponse(
  written: NonNullable<TrafficSettings["directResponse"]>,
): ResponseSetting | { readonly problem: string } {
  const { enabled = true, status = DEFAULT_STATUS, contentType = DEFAULT_TYPE, retryAfter, body } = written;
  if (!Number.isInteger(status) || !(status === 200 || (status >= 400 && status <= 599)))
    return { problem: `status: ${status} is neither 200 nor between 400 and 599` };
  if (!MEDIA_TYPE.test(contentType)) return { problem: "contentType: it is no media type" };
  const retryMs = retryAfter === undefined ? undefined : milliseconds(retryAfter);
  if (retryMs !== undefined && !(retryMs >= 1_000 && retryMs <= LONGEST_RETRY_MS))
    return { problem: `retryAfter: ${retryAfter} is not between 1s and 24h` };
  const { inline, configMapRef } = body ?? {};
  if (inline !== undefined && configMapRef !== undefined)
    return { problem: "body: set inline or configMapRef, not both" };
  const tooLarge = problemOf(inline ?? "");
  if (tooLarge !== undefined) return { problem: `body.inline: it ${tooLarge}` };
  return {
    type: "directResponse",
    enabled,
    status,
    contentType,
    ...(retryMs === undefined ? {} : { retryAfterSeconds: Math.ceil(retryMs / 1_000) }),
    body:
      configMapRef === undefined
        ? { type: "text", text: inline ?? "" }
        : { type: "configMap", name: configMapRef.name, key: configMapRef.key },
  };
}

function problemOf(text: string): string | undefined {
  return new TextEncoder().encode(text).length > LARGEST_BODY ? "is larger than 4 KiB" : undefined;
}

/** `namespace`: the policy's. */
export function resolveBody(
  { body }: ResponseSetting,
  namespace: string,
  lookup: Lookup,
  { configMaps }: Pick<Inputs, "configMaps">,
): { readonly text: string } | { readonly failure: Failure } {
  if (body.type === "text") return body;
  if (body.type === "absent") return missing("the body is not there");
  const { name, key } = body;
  const map = lookup.get(configMaps, keyFor("ConfigMap", namespace, name));
  if (map === undefined) return missing(`ConfigMap ${name} does not exist`);
  const text = Object.hasOwn(map.data ?? {}, key) ? map.data?.[key] : undefined;
  if (text === undefined) return missing(`ConfigMap ${name} has no ${key}`);
  const problem = problemOf(text);
  return problem === undefined ? { text } : missing(`${key} of ConfigMap ${name} ${problem}`);
}

function missing(message: string): { readonly failure: Failure } {
  return { failure: { reason: "InvalidBodyRef", message } };
}

/** The setting with its body in place of the reference to it. */
export function withBody(
  setting: ResponseSetting,
  namespace: string,
  lookup: Lookup,
  inputs: Pick<Inputs, "configMaps">,
): ResponseSetting {
  if (setting.body.type !== "configMap" || !setting.enabled) return setting;
  const resolved = resolveBody(setting, namespace, lookup, inputs);
  const body: ResponseBody =
    "failure" in resolved ? { type: "absent" } : { type: "text", text: resolved.text };
  return { ...setting, body };
}

export function hasBodyReference({ body }: ResponseSetting): boolean {
  return body.type === "configMap";
}

export function respondAction(setting: ResponseSetting): RespondAction {
  const { status, contentType, retryAfterSeconds, body } = setting;
  if (body.type !== "text")
    return { type: "respond", status: 500, reason: "the answer of a policy cannot be read" };
  return {
    type: "respond",
    status,
    reason: "a policy answers in place of the route",
    content: {
      type: contentType,
      text: body.text,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    },
  };
}
