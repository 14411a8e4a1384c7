import type { Outline, OutlineGateway } from "../../view/outline.ts";
import { type Child, element, link } from "../dom/element.ts";
import { pill } from "../dom/pill.ts";
import { treeFragment } from "../model/place.ts";
import { rolloutOf } from "../model/rollout.ts";

const ROWS = 20;

/** How far what a Gateway should serve has come. */
export function rolloutParts(gateway: OutlineGateway, outline: Outline): readonly Child[] {
  if (gateway.isUnread === true) return [];
  const { listeners, accepted, programmed, waiting, refusals, note } = rolloutOf(gateway, outline);
  const left = refusals.length - Math.min(refusals.length, ROWS);
  return [
    element("h3", {}, "Rollout"),
    element(
      "ul",
      { class: "conditions" },
      step(accepted === listeners, `${accepted} of ${listeners} listeners accepted`),
      step(programmed === accepted, `${programmed} of ${accepted} programmed`),
      waiting > 0 && element("li", {}, pill("warn", `${waiting} wait for the data plane`)),
      note !== undefined && element("li", {}, pill("warn", "replicas"), element("p", {}, note)),
      ...refusals
        .slice(0, ROWS)
        .map(({ node, what, text }) =>
          element(
            "li",
            {},
            pill("bad", "refused by the data plane"),
            element("p", {}, link(treeFragment(node), what)),
            element("p", { class: "note bad" }, text),
          ),
        ),
      left > 0 && element("li", {}, `and ${left.toLocaleString("en")} more`),
    ),
  ];
}

function step(isDone: boolean, text: string): HTMLElement {
  return element("li", {}, pill(isDone ? "good" : "warn", text));
}
