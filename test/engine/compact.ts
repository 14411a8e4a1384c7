/**
 * Statuses and plan in the few lines that a reader of a golden case wants: everything is there but
 * times and key material.
 */
import type { Condition } from "../../src/api/metadata.ts";
import type { ParentReference } from "../../src/api/references.ts";
import type { BackendItem } from "../../src/plan/backend.ts";
import type { ClientValidation } from "../../src/plan/client-validation.ts";
import type { GatewayItem, ListenerItem, PlanItem, PortItem } from "../../src/plan/plan.ts";
import type { Action, ForwardAction, RequestMatch, Rule } from "../../src/plan/rule.ts";

type Fields = Readonly<Record<string, unknown>>;

interface ListenerFields {
  readonly name: string;
  readonly port?: number;
  readonly supportedKinds: readonly { readonly kind: string }[];
  readonly attachedRoutes: number;
  readonly conditions: readonly Condition[];
}

/** What is said when nothing is wrong; its message says nothing new. */
const CALM: readonly string[] = [
  "Accepted=True Accepted",
  "Conflicted=False NoConflicts",
  "ResolvedRefs=True ResolvedRefs",
  "Programmed=True Programmed",
];
const CALM_LISTENER = CALM.join("; ");

export function compactStatus(status: Fields): Fields {
  const parents = (status["parents"] ?? []) as readonly {
    parentRef: ParentReference;
    conditions: Condition[];
  }[];
  const ancestors = (status["ancestors"] ?? []) as readonly {
    ancestorRef: ParentReference;
    conditions: Condition[];
  }[];
  const listeners = (status["listeners"] ?? []) as readonly ListenerFields[];
  const addresses = (status["addresses"] ?? []) as readonly { type: string; value: string }[];
  const attached = status["attachedListenerSets"];
  return {
    ...("conditions" in status ? { conditions: compactConditions(status["conditions"] as Condition[]) } : {}),
    ...(addresses.length === 0 ? {} : { addresses: addresses.map(({ type, value }) => `${type} ${value}`) }),
    ...(attached === undefined ? {} : { attachedListenerSets: attached }),
    ...(listeners.length === 0 ? {} : { listeners: Object.fromEntries(listeners.map(compactListener)) }),
    ...Object.fromEntries([
      ...parents.map(({ parentRef, conditions }) => [
        `parent ${reference(parentRef)}`,
        compactConditions(conditions),
      ]),
      ...ancestors.map(({ ancestorRef, conditions }) => [
        `ancestor ${reference(ancestorRef)}`,
        compactConditions(conditions),
      ]),
    ]),
  };
}

function compactListener({
  name,
  port,
  supportedKinds,
  attachedRoutes,
  conditions,
}: ListenerFields): [string, unknown] {
  const kinds = supportedKinds.map(({ kind }) => kind).join(" ");
  const shownPort = port === undefined ? "" : ` port ${port}`;
  const own = compactConditions(conditions);
  const calm = own.join("; ") === CALM_LISTENER;
  return [`${name}${shownPort} [${kinds}] routes ${attachedRoutes}`, calm ? CALM_LISTENER : own];
}

function compactConditions(conditions: readonly Condition[]): readonly string[] {
  return conditions.map(({ type, status, reason, message }) => {
    const short = `${type}=${status} ${reason}`;
    const dull = CALM.includes(short) && !message.includes(":");
    return dull ? short : `${short}: ${message}`;
  });
}

function reference({ kind, namespace, name, sectionName, port }: ParentReference): string {
  const place = namespace === undefined ? name : `${namespace}/${name}`;
  return `${kind} ${place}${sectionName === undefined ? "" : `#${sectionName}`}${port === undefined ? "" : `:${port}`}`;
}

const ORDER: readonly PlanItem["type"][] = [
  "gateway",
  "port",
  "listener",
  "host",
  "guard",
  "certificate",
  "backend",
];

export function compactPlan(items: Iterable<PlanItem>): readonly unknown[] {
  return [...items]
    .sort((a, b) => ORDER.indexOf(a.type) - ORDER.indexOf(b.type) || (a.id < b.id ? -1 : 1))
    .map(compactItem);
}

function compactItem(item: PlanItem): unknown {
  switch (item.type) {
    case "gateway":
      return `gateway ${item.gateway}${item.clientCertificate ? ` shows ${item.clientCertificate}` : ""}${limits(item)}`;
    case "port":
      return `${item.id} ${item.protocol}${clients(item)}`;
    case "listener":
      return `${item.id} at ${item.port} ${item.protocol} "${item.hostname}"${tls(item)}`;
    case "host":
      return { [item.id]: item.rules.map(compactRule) };
    case "guard":
      return `${item.id} ${JSON.stringify(item.check)}`;
    case "certificate":
      return `${item.id} for ${item.names.join(" ")}`;
    case "backend":
      return `${item.id} ${item.protocol} [${item.endpoints.map(({ address, port }) => `${address}:${port}`).join(" ")}]${backendTls(item)}${policyParts(item)}`;
    default:
      throw new Error(`no plan item ${item satisfies never}`);
  }
}

function limits({ tenantLimits }: GatewayItem): string {
  if (tenantLimits === undefined) return "";
  const { connections, requests, backendConnections, bufferedBytes } = tenantLimits;
  return ` tenants ${connections}/${requests}/${backendConnections}/${bufferedBytes}`;
}

function clients({ clientValidation, clientAddress, clientLimits }: PortItem): string {
  const limited = clientLimits === undefined ? "" : ` client limits ${JSON.stringify(clientLimits)}`;
  const address =
    clientAddress === undefined ? limited : ` client address ${JSON.stringify(clientAddress)}${limited}`;
  if (clientValidation === undefined) return address;
  return `${validation(clientValidation)}${address}`;
}

function validation({ mode, authorities, subjectAltNames, forward }: ClientValidation): string {
  const names = subjectAltNames === undefined ? "" : ` for ${subjectAltNames.join(" ")}`;
  return ` clients ${mode} by ${authorities.length} authorities${names}${forward ? ` forwards ${forward}` : ""}`;
}

function tls({ tls: plan }: ListenerItem): string {
  if (plan === undefined) return "";
  const { mode, certificates, clientValidation, ...options } = plan;
  const asked = clientValidation === undefined ? "" : validation(clientValidation);
  const shown = Object.keys(options).length === 0 ? "" : ` ${JSON.stringify(options)}`;
  return ` ${mode}${certificates.length === 0 ? "" : ` with ${certificates.join(" ")}`}${shown}${asked}`;
}

/** What BackendPolicies say. */
function policyParts({ balancing, persistence, limits }: BackendItem): string {
  const parts = Object.entries({ balancing, persistence, limits }).filter(([, value]) => value !== undefined);
  return parts.map(([name, value]) => ` ${name} ${JSON.stringify(value)}`).join("");
}

function backendTls({ tls: plan, refused }: BackendItem): string {
  const shown =
    plan === undefined
      ? ""
      : ` tls ${plan.hostname} by ${plan.authorities === "system" ? "system" : `${plan.authorities.length} authorities`}`;
  return `${shown}${refused === undefined ? "" : ` refused: ${refused}`}`;
}

function compactRule({ origin, match, action, guards }: Rule): string {
  const from = `${origin.kind} ${origin.namespace}/${origin.name} rule ${origin.rule}.${origin.match}`;
  const guarded = guards === undefined ? "" : ` guarded by ${guards.join(", ")}`;
  return `${compactMatch(match)} -> ${compactAction(action)} (${from})${guarded}`;
}

function compactMatch({ path, method, headers, query }: RequestMatch): string {
  const parts = [
    ...(path === undefined ? [] : [`${path.type} ${path.value}`]),
    ...(method === undefined ? [] : [method]),
    ...headers.map(({ type, name, value }) => `header ${name} ${type} ${value}`),
    ...query.map(({ type, name, value }) => `query ${name} ${type} ${value}`),
  ];
  return parts.length === 0 ? "any" : parts.join(" ");
}

function compactAction(action: Action): string {
  if (action.type === "respond") {
    const content = action.content === undefined ? "" : ` ${JSON.stringify(action.content)}`;
    return `respond ${action.status}: ${action.reason}${content}`;
  }
  const { type, filters, ...rest } = action;
  const filtered = Object.keys(filters).length === 0 ? "" : ` filters ${JSON.stringify(filters)}`;
  if (type === "redirect") return `redirect ${JSON.stringify(rest)}${filtered}`;
  const limits = Object.entries(action.timeouts).map(([name, value]) => ` ${name} ${value}`);
  const retried = action.retry === undefined ? "" : ` retry ${JSON.stringify(action.retry)}`;
  const { compression } = action;
  const compressed = compression === undefined ? "" : ` compression ${JSON.stringify(compression)}`;
  return `${backends(action)}${filtered}${limits.join("")}${retried}${compressed}`;
}

function backends({ backends: list }: ForwardAction): string {
  return list.length === 0
    ? "nowhere"
    : list
        .map(({ backend, weight, filters }) => {
          const filtered = Object.keys(filters).length === 0 ? "" : ` filters ${JSON.stringify(filters)}`;
          return `${weight} of ${backend ?? "an invalid reference"}${filtered}`;
        })
        .join(", ");
}
