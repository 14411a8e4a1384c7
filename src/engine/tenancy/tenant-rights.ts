/**
 * What a namespace may have at a Gateway (TenantPolicy).
 *
 * - The first rule whose selector matches the namespace decides; without one,
 *   `unmatchedNamespaces`.
 * - A hostname must be covered by a pattern of `allow`. It must not overlap one of `deny` or of the
 *   reserved names: a wildcard that would take a reserved name along is refused as well.
 * - A listener without a hostname asks for all names, which only the pattern `*` allows. TCP and
 *   UDP have no hostnames.
 * - A rule whose selector cannot be read might select any namespace. Those that no earlier rule
 *   selects may have nothing.
 * - A placeholder that has no value, or whose value makes no hostname, allows nothing; in `deny` it
 *   denies everything.
 */
import type { LabelSelector } from "../../api/metadata.ts";
import type { TenantPolicy, TenantRule } from "../../api/tenant-policy.ts";
import { coversPattern, isPattern, patternsOverlap } from "../../plan/hostname.ts";
import type { ListenerProtocol } from "../../plan/plan.ts";
import { isOperator, selects } from "../foundation/selectors.ts";
import type { Failure } from "../foundation/verdict.ts";

/** The pattern of all hostnames. */
const EVERYTHING = "";

type Labels = Readonly<Record<string, string>>;

/** Hostnames are in the plan's form: `*` is the empty pattern. */
export interface TenantRights {
  readonly namespace: string;
  /** Absent: no rule selects the namespace, and it is denied or, without restrictions, allowed. */
  readonly rule?: TenantRule;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly reserved: readonly string[];
}

const memory = new WeakMap<TenantPolicy["spec"], Map<string, TenantRights>>();

/** Labels of namespaces change: what was remembered for old ones is dropped some time. */
const MOST_REMEMBERED = 20_000;

/** Remembered: a policy may have thousands of rules, and a namespace many listeners and routes. */
export function rightsOf(spec: TenantPolicy["spec"], namespace: string, labels: Labels): TenantRights {
  let known = memory.get(spec);
  if (known === undefined) {
    known = new Map();
    memory.set(spec, known);
  }
  const key = `${namespace} ${JSON.stringify(labels)}`;
  let rights = known.get(key);
  if (rights === undefined) {
    rights = findRights(spec, namespace, labels);
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.set(key, rights);
  }
  return rights;
}

function findRights(spec: TenantPolicy["spec"], namespace: string, labels: Labels): TenantRights {
  const reserved = spec.reservedHostnames ?? [];
  const rule = spec.rules?.find(
    ({ namespaceSelector }) => !isReadable(namespaceSelector) || selects(namespaceSelector, labels),
  );
  if (rule !== undefined && !isReadable(rule.namespaceSelector))
    return { namespace, allow: [], deny: [], reserved };
  if (rule === undefined) {
    return { namespace, allow: spec.unmatchedNamespaces === "Allow" ? [""] : [], deny: [], reserved };
  }
  const { allow, deny = [] } = rule.hostnames;
  const resolved = (text: string): string | undefined => resolvePattern(text, namespace, labels);
  return {
    namespace,
    rule,
    allow: allow.flatMap((text) => resolved(text) ?? []),
    deny: deny.map((text) => resolved(text) ?? EVERYTHING),
    reserved,
  };
}

/** Why a policy does not say what its author wanted. */
export function specProblem({ unreadable, rules = [] }: TenantPolicy["spec"]): Failure | undefined {
  const rule = rules.findIndex(({ namespaceSelector }) => !isReadable(namespaceSelector));
  const problem =
    unreadable ?? (rule < 0 ? undefined : `spec.rules.${rule}.namespaceSelector: an operator is not known`);
  if (problem === undefined) return undefined;
  return { reason: "Invalid", message: `namespaces that might be meant may have nothing, ${problem}` };
}

function isReadable({ matchExpressions = [] }: LabelSelector): boolean {
  return matchExpressions.every(({ operator }) => isOperator(operator));
}

function resolvePattern(text: string, namespace: string, labels: Labels): string | undefined {
  if (text === "*") return "";
  let isKnown = true;
  const resolved = text.replace(/\{(namespace|label:([^}]*))\}/g, (_all, what: string, label: string) => {
    const value = what === "namespace" ? namespace : Object.hasOwn(labels, label) ? labels[label] : "";
    if (!value) isKnown = false;
    return (value ?? "").toLowerCase();
  });
  return isKnown && isPattern(resolved) ? resolved : undefined;
}

/**
 * Why the namespace may not have the hostname; the empty pattern is all names. `shown` is what its
 * author has written of it.
 */
export function hostnameProblem(
  hostname: string,
  rights: TenantRights,
  shown: string = hostname === "" ? "a listener without a hostname" : `hostname ${hostname}`,
): Failure | undefined {
  const reserved = rights.reserved.some((pattern) => patternsOverlap(pattern, hostname));
  if (reserved) return notAllowed("HostnameNotAllowed", `${shown} is, or covers, a name that is reserved`);
  const isAllowed = rights.allow.some((pattern) => coversPattern(pattern, hostname));
  const isDenied = rights.deny.some((pattern) => patternsOverlap(pattern, hostname));
  if (isAllowed && !isDenied) return undefined;
  return notAllowed("HostnameNotAllowed", `${shown} is not allowed to namespace ${rights.namespace}`, rights);
}

interface AskedListener {
  readonly hostname: string;
  /** Absent: it is yet to be assigned. */
  readonly port: number | undefined;
  readonly protocol: ListenerProtocol;
}

export function listenerProblem(
  { hostname, port, protocol }: AskedListener,
  rights: TenantRights,
): Failure | undefined {
  const { namespace, rule, allow } = rights;
  if (rule === undefined && allow.length === 0)
    return notAllowed("NamespaceNotAllowed", `namespace ${namespace} may have no listeners`);
  if (rule?.protocols !== undefined && !rule.protocols.includes(protocol))
    return notAllowed(
      "ProtocolNotAllowed",
      `protocol ${protocol} is not allowed to namespace ${namespace}; allowed: ${rule.protocols.join(", ")}`,
    );
  if (port !== undefined && rule?.ports !== undefined && !rule.ports.some((range) => isIn(port, range)))
    return notAllowed("PortNotAllowed", `port ${port} is not allowed to namespace ${namespace}`);
  return protocol === "TCP" || protocol === "UDP" ? undefined : hostnameProblem(hostname, rights);
}

export function routeKindProblem(kind: string, { namespace, rule }: TenantRights): Failure | undefined {
  if (rule?.routeKinds === undefined || rule.routeKinds.includes(kind)) return undefined;
  const allowed = rule.routeKinds.join(", ");
  return notAllowed(
    "RouteKindNotAllowed",
    `kind ${kind} is not allowed to namespace ${namespace}; allowed: ${allowed}`,
  );
}

function isIn(port: number, range: { readonly port: number; readonly endPort?: number }): boolean {
  return port >= range.port && port <= (range.endPort ?? range.port);
}

/** So many patterns help; more would hide the rest of the message. */
const SHOWN_PATTERNS = 5;

function notAllowed(reason: string, message: string, rights?: TenantRights): Failure {
  const patterns = rights?.allow.map((pattern) => pattern || "*") ?? [];
  const more = patterns.length > SHOWN_PATTERNS ? `, and ${patterns.length - SHOWN_PATTERNS} more` : "";
  const allowed =
    patterns.length === 0 ? "" : `; allowed: ${patterns.slice(0, SHOWN_PATTERNS).join(", ")}${more}`;
  return { reason, message: `${message} by the Gateway's TenantPolicy${allowed}` };
}
