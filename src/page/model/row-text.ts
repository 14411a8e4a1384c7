/** What a row of the tree says: plain text, whatever draws it. */
import type { ListenerState } from "../../view/merged-state.ts";
import type {
  Outline,
  OutlineBackend,
  OutlineGateway,
  OutlineListener,
  OutlineOwner,
  OutlineRoute,
} from "../../view/outline.ts";
import { type Rate, type Rates, rateText, sumOf } from "./traffic.ts";
import { type Group, listenerNodeId, type TreeNode } from "./tree.ts";
import type { TreeRow } from "./tree-rows.ts";

type NodeOf<Type extends TreeNode["type"]> = Extract<TreeNode, { readonly type: Type }>;

export type Tone = "good" | "bad" | "warn" | "quiet";

export interface RowText {
  readonly kind: string;
  readonly title: string;
  readonly meta: string;
  /** Place in the order of precedence. */
  readonly rank?: number;
  readonly state?: { readonly tone: Tone; readonly text: string };
  /** What is wrong, with reason and message. */
  readonly note?: { readonly tone: Tone; readonly text: string; readonly holder?: Holder };
  readonly rate?: { readonly text: string; readonly errors?: string };
}

/** Who holds what a listener wanted. */
export interface Holder {
  readonly node: string;
  readonly text: string;
}

export const STATE_TONES: Readonly<Record<ListenerState, Tone>> = {
  serving: "good",
  waiting: "warn",
  failed: "bad",
  conflicted: "bad",
  refused: "bad",
};

export function rowText(
  { node, isOpen }: Pick<TreeRow, "node" | "isOpen">,
  outline: Outline,
  rates: Rates,
): RowText {
  switch (node.type) {
    case "gateway":
      return gatewayText(node.gateway, rates);
    case "owner":
      return ownerText(node.owner, isOpen, rates);
    case "listener":
      return listenerText(node.listener, rates);
    case "route":
      return routeText(node.route, outline);
    case "backend":
      return backendText(node);
    case "group":
      return { kind: "", ...GROUPS[node.group], state: { tone: "warn", text: String(node.count) } };
    case "stray":
      return strayText(node.route);
    case "stray-policy":
      return strayPolicyText(node.policy);
    case "foreign":
      return { kind: node.ref.kind, title: `${node.ref.namespace}/${node.ref.name}`, meta: "" };
  }
}

function gatewayText(gateway: OutlineGateway, rates: Rates): RowText {
  const { namespace, name, className, addresses, owners } = gateway;
  if (gateway.isUnread === true) {
    const meta = `you may not read it · ${counted(owners.length, "owner")} of yours`;
    return { kind: "Gateway", title: `${namespace}/${name}`, meta };
  }
  const keys = owners.flatMap((owner) => owner.listeners.map(({ key }) => key));
  const at = addresses.map(({ value }) => value).join(", ");
  return {
    kind: "Gateway",
    title: `${namespace}/${name}`,
    meta: [`class ${className}`, at, counted(owners.length, "owner")].filter(Boolean).join(" · "),
    ...stateAndNote(conditionTrouble(gateway.conditions)),
    ...rateOf(sumOf(rates, keys)),
  };
}

function routeText(route: OutlineRoute, outline: Outline): RowText {
  const { kind, namespace, name, rules, problems, backends } = route;
  const targets = backends.map(({ backend }) => outline.backends[backend]);
  const shown = targets.slice(0, 2).map((backend) => (backend === undefined ? "" : backendName(backend)));
  const more = targets.length > 2 ? ` and ${targets.length - 2} more` : "";
  const dead = targets.some((backend) => backend?.isUnread !== true && !backend?.endpoints);
  return {
    kind,
    title: `${namespace}/${name}`,
    meta: `${counted(rules, "rule")}${shown.length > 0 ? ` → ${shown.join(", ")}${more}` : ""}`,
    ...(problems.length > 0
      ? { state: { tone: "bad", text: "problem" }, note: { tone: "bad", text: problemText(problems) } }
      : dead && targets.length > 0
        ? { state: { tone: "warn", text: "no endpoints" } }
        : {}),
  };
}

function backendText({ backend, weight }: NodeOf<"backend">): RowText {
  const { endpoints, isUnread } = backend;
  return {
    kind: backend.kind,
    title: backendName(backend),
    meta: weight === 1 ? "" : `weight ${weight}`,
    state:
      isUnread === true
        ? { tone: "quiet", text: "you may not read it" }
        : endpoints === undefined
          ? { tone: "bad", text: "not resolved" }
          : { tone: endpoints > 0 ? "good" : "bad", text: counted(endpoints, "ready endpoint") },
  };
}

function strayText(route: NodeOf<"stray">["route"]): RowText {
  const { kind, namespace, name, hostnames, parents } = route;
  const [first] = parents;
  return {
    kind,
    title: `${namespace}/${name}`,
    meta: hostnames.join(", "),
    state: { tone: "bad", text: first?.reason ?? "no parent" },
    note: {
      tone: "bad",
      text: parents
        .map(
          ({ parent, reason, message }) =>
            `${parent.kind} ${parent.namespace}/${parent.name}: ${reason}: ${message}`,
        )
        .join("; "),
    },
  };
}

function strayPolicyText(policy: NodeOf<"stray-policy">["policy"]): RowText {
  const { kind, namespace, name, target, reason, message } = policy;
  const section = target.section === "" ? "" : `, ${target.section}`;
  return {
    kind,
    title: `${namespace}/${name}`,
    meta: `at ${target.kind} ${target.namespace}/${target.name}${section}`,
    state: { tone: "bad", text: reason },
    note: { tone: "bad", text: `${reason}: ${message}` },
  };
}

const GROUPS: Readonly<Record<Group, { readonly title: string; readonly meta: string }>> = {
  orphans: { title: "Without a Gateway", meta: "owners whose Gateway is not here" },
  strays: { title: "Routes without a listener", meta: "no listener has taken them" },
  policies: { title: "Policies without effect", meta: "no target has taken them" },
  foreign: { title: "Of other controllers", meta: "not served here" },
};

function ownerText(owner: OutlineOwner, isOpen: boolean, rates: Rates): RowText {
  const { createdAt } = owner;
  const age =
    createdAt === undefined ? [] : [`${durationText((Date.now() - Date.parse(createdAt)) / 1000)} old`];
  const { kind, namespace, name, role, attached, listeners, conditions, precedence } = owner;
  const serving = listeners.filter(({ state }) => state === "serving").length;
  const routes = new Set(listeners.flatMap((listener) => listener.routes)).size;
  const trouble = conditionTrouble(conditions);
  const isNoted = trouble !== undefined && (!attached || !isOpen);
  const tone: Tone = serving === listeners.length ? "good" : serving === 0 ? "bad" : "warn";
  return {
    kind: role === "child" ? "Gateway (child)" : kind,
    title: `${namespace}/${name}`,
    meta: [
      role === "root" ? "its own listeners" : counted(listeners.length, "listener"),
      ...(routes > 0 ? [counted(routes, "route")] : []),
      ...age,
    ].join(" · "),
    ...(attached && precedence > 0 ? { rank: precedence } : {}),
    state: attached
      ? { tone, text: serving === listeners.length ? "serving" : `${serving} of ${listeners.length} serving` }
      : { tone: "bad", text: "not attached" },
    ...(isNoted ? { note: { tone: tone === "warn" && attached ? "warn" : "bad", text: trouble } } : {}),
    ...rateOf(
      sumOf(
        rates,
        listeners.map(({ key }) => key),
      ),
    ),
  };
}

function listenerText(listener: OutlineListener, rates: Rates): RowText {
  const { hostname, protocol, port, section, state, reason, message, unresolved, heldBy } = listener;
  if (listener.isUnread === true)
    return { kind: "Listener", title: section || "its listeners", meta: "you may not read it" };
  const holder = heldBy === undefined ? {} : { holder: holderOf(heldBy) };
  return {
    kind: `${protocol} :${port}`,
    title: hostname || "any hostname",
    meta: section,
    state: { tone: STATE_TONES[state], text: state },
    ...(reason !== undefined
      ? { note: { tone: STATE_TONES[state], text: `${reason}: ${message ?? ""}`, ...holder } }
      : unresolved !== undefined
        ? { note: { tone: "warn", text: `${unresolved.reason}: ${unresolved.message}` } }
        : {}),
    ...rateOf(sumOf(rates, [listener.key])),
  };
}

function holderOf(heldBy: NonNullable<OutlineListener["heldBy"]>): Holder {
  const { kind, namespace, name, section } = heldBy;
  return { node: listenerNodeId(heldBy), text: `${kind} ${namespace}/${name}, listener ${section}` };
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** The first condition that should be True and is not. */
function conditionTrouble(conditions: readonly Condition[]): string | undefined {
  const wrong = conditions.find(({ type, status }) => POSITIVE.has(type) && status === "False");
  return wrong && `${wrong.reason}: ${wrong.message}`;
}

const POSITIVE: ReadonlySet<string> = new Set(["Accepted", "Programmed", "ResolvedRefs"]);

function stateAndNote(trouble: string | undefined): Pick<RowText, "state" | "note"> {
  return trouble === undefined
    ? { state: { tone: "good", text: "programmed" } }
    : { state: { tone: "warn", text: "see conditions" }, note: { tone: "warn", text: trouble } };
}

function rateOf({ requests, errors }: Rate): Pick<RowText, "rate"> {
  if (requests === 0) return {};
  return { rate: { text: rateText(requests), ...(errors > 0 ? { errors: rateText(errors) } : {}) } };
}

function problemText(problems: readonly { readonly reason: string; readonly message: string }[]): string {
  return problems.map(({ reason, message }) => `${reason}: ${message}`).join("; ");
}

export function backendName({ namespace, name, port }: OutlineBackend): string {
  return `${namespace}/${name}${port === undefined ? "" : `:${port}`}`;
}

export function counted(count: number, what: string): string {
  return count === 1 ? `1 ${what}` : `${count.toLocaleString("en")} ${what}s`;
}

/** In the largest unit that is not 0. */
export function durationText(seconds: number): string {
  for (const [unit, length] of UNITS) {
    if (seconds >= length) return counted(Math.floor(seconds / length), unit);
  }
  return "less than a minute";
}

const UNITS: readonly (readonly [unit: string, seconds: number])[] = [
  ["year", 31_557_600],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
