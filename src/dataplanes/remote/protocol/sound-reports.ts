import type { RefusedRule } from "../../../plan/item-report.ts";
import type { VersionReport } from "./protocol.ts";

const MOST_MESSAGE = 1024;
/** Kinds, namespaces, names, sections and hostnames of an id, each as long as it can be. */
const MOST_ID = 2048;
const MOST_DIGEST = 64;
/** Rejected rules of one host that are reported. */
const MOST_RULES = 64;
const MOST_RULE_MESSAGE = 256;
const MOST_NAME = 253;
/** `reason` of a Kubernetes condition. */
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]{0,254}[A-Za-z0-9_])?$/;

/**
 * The valid part of what a pod sent as reports. Reports become statuses, and the API server would
 * reject a whole status for one invalid field. Pods apply this function before they send, so that
 * controllers drop nothing and the digests of both sides are equal.
 */
export function soundReports(given: unknown): readonly VersionReport[] {
  return (Array.isArray(given) ? given : []).flatMap((report: Partial<VersionReport> | null) =>
    soundReport(report ?? {}),
  );
}

function soundReport(report: Partial<VersionReport>): readonly VersionReport[] {
  const { id, of, state, reason, message, rules } = report;
  if (!isItemId(id) || (state !== "programmed" && state !== "rejected")) return [];
  return [
    {
      id,
      state,
      ...(isDigest(of) ? { of } : {}),
      ...(typeof reason === "string" && REASON.test(reason) ? { reason } : {}),
      ...(typeof message === "string" ? { message: message.slice(0, MOST_MESSAGE) } : {}),
      ...(Array.isArray(rules) ? { rules: soundRules(rules) } : {}),
    },
  ];
}

function soundRules(given: readonly unknown[]): readonly RefusedRule[] {
  return given.slice(0, MOST_RULES).flatMap((each): readonly RefusedRule[] => {
    const { kind, namespace, name, rule, message } = (each ?? {}) as Partial<RefusedRule>;
    if (![kind, namespace, name].every((text) => isName(text)) || typeof message !== "string") return [];
    if (typeof rule !== "number" || !Number.isInteger(rule)) return [];
    return [{ kind, namespace, name, rule, message: message.slice(0, MOST_RULE_MESSAGE) } as RefusedRule];
  });
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value.length <= MOST_NAME;
}

export function isItemId(value: unknown): value is string {
  return typeof value === "string" && value.length <= MOST_ID;
}

export function isDigest(value: unknown): value is string {
  return typeof value === "string" && value.length <= MOST_DIGEST;
}
