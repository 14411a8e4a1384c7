import { type Child, element } from "../dom/element.ts";
import { pill } from "../dom/pill.ts";
import { quotaRows } from "../model/quotas.ts";
import type { TreeNode } from "../model/tree.ts";

const ROWS = 50;

/** Of a Gateway those of all namespaces, of a set or child those of its own. */
export function quotaParts(node: TreeNode): readonly Child[] {
  const rows =
    node.type === "gateway"
      ? quotaRows(node.gateway)
      : node.type === "owner" && node.owner.role !== "root" && node.gateway !== undefined
        ? quotaRows(node.gateway, node.owner.namespace)
        : [];
  if (rows.length === 0) return [];
  const left = rows.length - Math.min(rows.length, ROWS);
  return [
    element("h3", {}, "Quotas"),
    element(
      "ul",
      { class: "conditions" },
      ...rows
        .slice(0, ROWS)
        .map(({ namespace, rule, uses }) =>
          element(
            "li",
            {},
            element("span", { class: "strong" }, `namespace ${namespace}`),
            rule !== undefined && element("span", { class: "meta" }, ` by rule ${rule}`),
            element("p", {}, ...uses.flatMap(({ tone, text }) => [pill(tone, text), " "])),
          ),
        ),
      left > 0 && element("li", {}, `and ${left.toLocaleString("en")} more`),
    ),
  ];
}
