/** What would change if the chosen node went: the answer of /api/v1/blast-radius. */
import type { BlastRadius, HostnameMove, ListenerMove, RouteMove } from "../../view/blast/blast-answer.ts";
import type { ListenerRef } from "../../view/merged-state.ts";
import { type Child, element, link, replaceChildren } from "../dom/element.ts";
import { pill } from "../dom/pill.ts";
import { treeFragment } from "../model/place.ts";
import { counted, STATE_TONES } from "../model/row-text.ts";
import { listenerNodeId, objectKey, type TreeNode } from "../model/tree.ts";

/** Rows of each list; the rest is counted. */
const ROWS = 20;

/** A button for nodes that can be deleted; undefined for others. */
export function blastButton(node: TreeNode): Child {
  const of = objectOf(node);
  if (of === undefined) return undefined;
  const what = node.type === "listener" ? "listener" : (of.split("/")[0] ?? "object");
  const answer = element("div", { class: "blast", "aria-live": "polite" });
  const button = element("button", { type: "button", class: "secondary" }, `If this ${what} were deleted…`);
  button.addEventListener("click", () => void show(of, answer));
  return element("div", {}, button, answer);
}

function objectOf(node: TreeNode): string | undefined {
  switch (node.type) {
    case "gateway":
      return `Gateway/${node.gateway.namespace}/${node.gateway.name}`;
    case "owner":
      return objectKey(node.owner);
    case "listener":
      return node.listener.key;
    case "route":
    case "stray":
      return objectKey(node.route);
    case "backend":
      return objectKey(node.backend);
    default:
      return undefined;
  }
}

async function show(of: string, answer: HTMLElement): Promise<void> {
  let children: readonly Child[];
  try {
    const response = await fetch(`/api/v1/blast-radius?${new URLSearchParams({ of })}`);
    const found = (await response.json()) as BlastRadius & { readonly error?: string };
    children = response.ok ? parts(found) : [element("p", { class: "note bad" }, found.error ?? "")];
  } catch {
    children = [element("p", { class: "note bad" }, "The admin server does not answer.")];
  }
  replaceChildren(answer, ...children);
}

function parts({ hostnames, listeners, routes, totals }: BlastRadius): readonly Child[] {
  const sum = totals.hostnames + totals.listeners + totals.routes;
  if (sum === 0) return [element("p", {}, "Nothing that is served would change.")];
  return [
    ...section("Hostnames", totals.hostnames, hostnames.map(hostnameRow)),
    ...section("Listeners", totals.listeners, listeners.map(listenerRow)),
    ...section("Routes", totals.routes, routes.map(routeRow)),
  ];
}

function section(title: string, total: number, rows: readonly HTMLElement[]): readonly Child[] {
  if (total === 0) return [];
  const left = total - Math.min(total, ROWS);
  return [
    element("h3", {}, `${title} (${total.toLocaleString("en")})`),
    element(
      "ul",
      { class: "conditions" },
      ...rows.slice(0, ROWS),
      left > 0 && element("li", {}, `and ${left.toLocaleString("en")} more`),
    ),
  ];
}

function hostnameRow({ port, hostname, before, after }: HostnameMove): HTMLElement {
  const name = element("span", { class: "strong" }, `${hostname || "any hostname"} on port ${port}`);
  if (after === undefined) return element("li", {}, pill("bad", "lost"), " ", name);
  return element(
    "li",
    {},
    pill("warn", before === undefined ? "new" : "changes hands"),
    " ",
    name,
    element("p", {}, "then held by ", listenerLink(after)),
  );
}

function listenerRow({ listener, before, after, reason, message }: ListenerMove): HTMLElement {
  // The data plane cannot have confirmed what has not been done.
  const state = after === "waiting" ? "serving" : (after ?? "gone");
  const tone = state === "gone" ? "quiet" : STATE_TONES[state];
  return element(
    "li",
    {},
    pill(tone, `${before ?? "new"} → ${state}`),
    element("p", {}, listenerLink(listener)),
    reason !== undefined &&
      after !== "waiting" &&
      element("p", { class: "meta" }, `${reason}: ${message ?? ""}`),
  );
}

function routeRow({ route, before, after, problems }: RouteMove): HTMLElement {
  const { kind, namespace, name } = route;
  const text = after < before ? (after === 0 ? "not served" : "fewer listeners") : "problem";
  return element(
    "li",
    {},
    pill(after === 0 || problems.length > 0 ? "bad" : "warn", text),
    element("p", {}, `${kind} ${namespace}/${name}, at ${counted(before, "parent")} now, then at ${after}`),
    ...problems.map(({ reason, message }) => element("p", { class: "meta" }, `${reason}: ${message}`)),
  );
}

function listenerLink(ref: ListenerRef): HTMLElement {
  const text = `${ref.kind} ${ref.namespace}/${ref.name}, listener ${ref.section}`;
  return link(treeFragment(listenerNodeId(ref)), text);
}
