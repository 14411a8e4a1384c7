/** An explanation as elements: the outcome, the steps, and everybody who was eliminated. */
import type { FullExplanation } from "../../view/explain/full-explanation.ts";
import { type Child, element, link } from "../dom/element.ts";
import { pill } from "../dom/pill.ts";
import { treeFragment } from "../model/place.ts";
import type { Tone } from "../model/row-text.ts";
import { counted } from "../model/row-text.ts";
import { listenerNodeId, routeNodeId } from "../model/tree.ts";

export function explanationParts(answer: FullExplanation): readonly Child[] {
  const { steps, eliminated, backends } = answer;
  return [
    outcome(answer),
    element("h2", {}, "Step by step"),
    element(
      "ol",
      { class: "steps" },
      ...steps.map(({ at, text }) =>
        element("li", {}, element("span", { class: "kind" }, at), element("span", {}, text)),
      ),
    ),
    ...policyParts(answer.policy),
    backends.length > 0 && element("h2", {}, "Backends"),
    backends.length > 0 &&
      element(
        "ul",
        { class: "shares" },
        ...backends.map(({ namespace, name, port, share, endpoints, status }) =>
          element(
            "li",
            {},
            element(
              "span",
              { class: "title" },
              name === undefined
                ? "a reference that does not resolve"
                : `Service ${namespace}/${name}:${port}`,
            ),
            element("span", { class: "meta" }, `${Math.round(share * 100)} % of the requests`),
            status === undefined
              ? pill("good", counted(endpoints.length, "ready endpoint"))
              : pill("bad", `answered with ${status}`),
          ),
        ),
      ),
    element(
      "h2",
      {},
      eliminated.length === 0 ? "Nobody else was in question" : `Eliminated (${eliminated.length})`,
    ),
    element("ul", { class: "eliminated" }, ...eliminated.map(elimination)),
  ];
}

/** Each effective setting with its origin, and the defaults that gave way. */
function policyParts({ settings, overridden }: FullExplanation["policy"]): readonly Child[] {
  if (settings.length === 0 && overridden.length === 0) return [];
  return [
    element("h2", {}, "Policies"),
    element(
      "ul",
      { class: "eliminated" },
      ...settings.map((setting) =>
        element(
          "li",
          {},
          element("span", { class: "kind" }, setting.field),
          element("span", {}, sourceText(setting)),
          ...(setting.checks ?? []).map(({ result }) => pill(...RESULTS[result])),
        ),
      ),
      ...overridden.map((setting) =>
        element(
          "li",
          {},
          element("span", { class: "kind" }, setting.field),
          element("span", {}, sourceText(setting)),
          pill("quiet", "gave way"),
          element("p", {}, `to ${sourceText(setting.by)}`),
        ),
      ),
    ),
  ];
}

type Setting = FullExplanation["policy"]["settings"][number];

const RESULTS: Readonly<Record<NonNullable<Setting["checks"]>[number]["result"], readonly [Tone, string]>> = {
  passes: ["good", "passes"],
  refuses: ["bad", "refuses"],
  depends: ["warn", "depends on the client’s address"],
  counts: ["quiet", "counts requests"],
  asks: ["quiet", "asks who sends the request"],
  absent: ["bad", "cannot be read: nothing passes"],
};

function sourceText({ policy, section, target }: Pick<Setting, "policy" | "section" | "target">): string {
  const where = target.section === undefined ? "" : `, ${target.section}`;
  return `${section} of ${policy.kind} ${policy.namespace}/${policy.name} at ${target.kind} ${target.namespace}/${target.name}${where}`;
}

function outcome({ outcome: how, status, location, listener, route }: FullExplanation): HTMLElement {
  const text =
    how === "forward"
      ? "Forwarded"
      : how === "refuse"
        ? "The connection is refused"
        : `Answered with ${status}${location === undefined ? "" : ` and location ${location}`}`;
  const at = listener && listenerNodeId(listener);
  const isGood = how === "forward" || (status !== undefined && status < 400);
  return element(
    "div",
    { class: `outcome ${isGood ? "good" : "bad"}`, role: "status" },
    element("p", { class: "verdict" }, text),
    listener !== undefined &&
      at !== undefined &&
      element(
        "p",
        {},
        "by ",
        link(
          treeFragment(at),
          `${listener.kind} ${listener.namespace}/${listener.name}, listener ${listener.section}`,
        ),
      ),
    route !== undefined &&
      at !== undefined &&
      element(
        "p",
        {},
        "with ",
        link(treeFragment(routeNodeId(at, route)), `${route.kind} ${route.namespace}/${route.name}`),
      ),
  );
}

function elimination({ listener, route, rule, reason }: FullExplanation["eliminated"][number]): HTMLElement {
  const at = listener && listenerNodeId(listener);
  const who =
    route === undefined
      ? listener && `${listener.kind} ${listener.namespace}/${listener.name} · ${listener.section}`
      : `${route.kind} ${route.namespace}/${route.name}`;
  const node =
    at === undefined
      ? route && `stray:${route.kind}/${route.namespace}/${route.name}`
      : route === undefined
        ? at
        : routeNodeId(at, route);
  return element(
    "li",
    {},
    element("span", { class: "kind" }, rule),
    node === undefined ? element("span", {}, who ?? "") : link(treeFragment(node), who ?? ""),
    listener !== undefined && element("span", { class: "meta" }, listener.hostname || "any hostname"),
    element("p", {}, reason),
  );
}
