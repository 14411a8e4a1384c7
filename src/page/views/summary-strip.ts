import type { Outline } from "../../view/outline.ts";
import { type Child, element } from "../dom/element.ts";
import type { World } from "../live/world.ts";
import { fragmentOf } from "../model/place.ts";
import { type Summary, summaryOf } from "../model/summary.ts";
import { type Rates, rateText, sumOf } from "../model/traffic.ts";

let last: { readonly outline: Outline; readonly summary: Summary } | undefined;

/** A few numbers above the tree; those that are a problem lead to it. */
export function summaryStrip({ outline, scope }: World, rates: Rates): readonly Child[] {
  if (last?.outline !== outline) last = { outline, summary: summaryOf(outline) };
  const { gateways, owners, listeners, states, routes, routesWithProblems, strayRoutes } = last.summary;
  const total = sumOf(rates, rates.keys());
  return [
    fact(gateways, gateways === 1 ? "Gateway" : "Gateways"),
    fact(owners, owners === 1 ? "owner" : "owners"),
    fact(`${states.serving.toLocaleString("en")} of ${listeners.toLocaleString("en")}`, "listeners serving"),
    fact(routes, routes === 1 ? "route" : "routes"),
    // Pods of a cluster count for Prometheus, not for the page.
    scope === undefined && fact(rateText(total.requests).replace("/s", ""), "requests/s"),
    total.errors > 0 && fact(rateText(total.errors).replace("/s", ""), "errors/s"),
    trouble(states.conflicted, "conflicted", "conflicted"),
    trouble(states.refused, "refused", "refused"),
    trouble(states.failed, "failed", "failed"),
    trouble(states.waiting, "waiting", "waiting"),
    trouble(routesWithProblems, "routes with problems", "route"),
    trouble(strayRoutes, "routes without a listener", "route"),
  ];
}

function fact(value: number | string, what: string): HTMLElement {
  const text = typeof value === "number" ? value.toLocaleString("en") : value;
  return element("p", { class: "fact" }, element("b", {}, text), ` ${what}`);
}

function trouble(count: number, what: string, search: string): Child {
  if (count === 0) return undefined;
  const href = fragmentOf({ view: "tree", parameters: { q: search } });
  return element(
    "a",
    { class: "fact trouble", href },
    element("b", {}, count.toLocaleString("en")),
    ` ${what}`,
  );
}
