/** The fields of a BackendPolicy, read. What cannot be read is left to the data plane. */
import type { WrittenBackendSettings } from "../../api/backend-policy.ts";
import { BACKEND_LIMITS, type BackendLimits } from "../../plan/limits/backend-limits.ts";
import type { LoadBalancing } from "../../plan/load-balancing.ts";
import type { PersistencePolicy } from "../../plan/rule.ts";
import { milliseconds } from "../foundation/durations.ts";
import { wrongName, wrongSetName } from "../foundation/field-names.ts";
import type { Unreadable } from "./request-limits.ts";

/** The units that are decided one by one. */
export const BACKEND_FIELDS = ["loadBalancing", "sessionPersistence", "limits"] as const;
export type BackendField = (typeof BACKEND_FIELDS)[number];

export interface BackendSettings {
  readonly loadBalancing?: LoadBalancing;
  readonly sessionPersistence?: PersistencePolicy;
  readonly limits?: BackendLimits;
}

export function readBackendSettings(
  written: WrittenBackendSettings,
): { readonly settings: BackendSettings } | { readonly settings: BackendSettings; readonly problem: string } {
  const settings: { -readonly [Field in BackendField]?: BackendSettings[Field] } = {};
  let problem: string | undefined;
  if (written.loadBalancing !== undefined) {
    const read = readLoadBalancing(written.loadBalancing);
    if ("problem" in read) problem ??= `loadBalancing.${read.problem}`;
    else settings.loadBalancing = read;
  }
  if (written.sessionPersistence !== undefined) {
    const read = readPersistence(written.sessionPersistence);
    if ("problem" in read) problem ??= `sessionPersistence.${read.problem}`;
    else settings.sessionPersistence = read;
  }
  if (written.limits !== undefined) {
    const read = readLimits(written.limits);
    if ("problem" in read) problem ??= `limits.${read.problem}`;
    else settings.limits = read;
  }
  return problem === undefined ? { settings } : { settings, problem };
}

const BALANCING = { RoundRobin: "roundRobin", LeastRequest: "leastRequest", Random: "random" } as const;
/** Narrower than a token: what some clients quote or cut off is no key for them. */
const COOKIE_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

function readLoadBalancing({
  type,
  consistentHash,
}: NonNullable<WrittenBackendSettings["loadBalancing"]>): LoadBalancing | Unreadable {
  if (type !== "ConsistentHash") {
    const known = BALANCING[type];
    return known === undefined ? { problem: `type: ${JSON.stringify(type)} is not known` } : { type: known };
  }
  const { key, header = "", cookie = "" } = consistentHash ?? {};
  switch (key) {
    case "ClientAddress":
      return { type: "hash", key: { type: "client" } };
    case "Header": {
      const wrong = wrongName([header]);
      if (wrong !== undefined) return { problem: `consistentHash.header: ${wrong.problem}` };
      return { type: "hash", key: { type: "header", name: header.toLowerCase() } };
    }
    case "Cookie":
      if (!COOKIE_NAME.test(cookie))
        return { problem: `consistentHash.cookie: ${JSON.stringify(cookie)} is no name of a cookie` };
      return { type: "hash", key: { type: "cookie", name: cookie } };
    default:
      return { problem: `consistentHash.key: ${JSON.stringify(key ?? "")} is not known` };
  }
}

const LONGEST_SESSION_MS = 8760 * 3_600_000;
/** Fields of answers that mean something to every client. */
const TAKEN =
  /^(authorization|cookie|date|location|server|set-cookie|via|vary|www-authenticate|accept.*|access-control-.*|content-.*|grpc-.*|if-.*|sec-.*)$/i;

function readPersistence({
  type,
  cookie,
  header,
  absoluteTimeout,
}: NonNullable<WrittenBackendSettings["sessionPersistence"]>): PersistencePolicy | Unreadable {
  if (type === "Header") {
    const name = header?.name ?? "";
    const wrong = wrongSetName([name]);
    if (wrong !== undefined) return { problem: `header.name: ${wrong.problem}` };
    if (TAKEN.test(name)) return { problem: `header.name: the field ${name} cannot be set` };
    return { type: "header", name: name.toLowerCase(), permanent: false };
  }
  if (type !== "Cookie") return { problem: `type: ${JSON.stringify(type)} is not known` };
  const name = cookie?.name ?? "";
  if (!COOKIE_NAME.test(name))
    return { problem: `cookie.name: ${JSON.stringify(name)} is no name of a cookie` };
  if (cookie?.lifetimeType !== "Permanent") return { type: "cookie", name, permanent: false };
  const absoluteTimeoutMs = milliseconds(absoluteTimeout ?? "0s");
  if (absoluteTimeoutMs < 1_000 || absoluteTimeoutMs > LONGEST_SESSION_MS)
    return { problem: `absoluteTimeout: ${absoluteTimeout} is not between 1s and 8760h` };
  return { type: "cookie", name, permanent: true, absoluteTimeoutMs };
}

const MOST_AT_A_TIME = 1_000_000;

function readLimits(written: NonNullable<WrittenBackendSettings["limits"]>): BackendLimits | Unreadable {
  for (const name of BACKEND_LIMITS) {
    const value = written[name];
    if (value !== undefined && !(Number.isInteger(value) && value >= 1 && value <= MOST_AT_A_TIME))
      return { problem: `${name}: ${value} is not from 1 to ${MOST_AT_A_TIME}` };
  }
  const { connections, pendingRequests, requests } = written;
  return {
    ...(connections === undefined ? {} : { connections }),
    ...(pendingRequests === undefined ? {} : { pendingRequests }),
    ...(requests === undefined ? {} : { requests }),
  };
}
