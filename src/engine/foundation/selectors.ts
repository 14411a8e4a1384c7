/** Label selectors as Kubernetes evaluates them, and the `from` of namespaces. */
import type { NamespaceSelection } from "../../api/gateway.ts";
import type { LabelSelector } from "../../api/metadata.ts";

type Labels = Readonly<Record<string, string>>;

const OPERATORS: readonly string[] = ["In", "NotIn", "Exists", "DoesNotExist"];

/** An expression with any other operator selects nothing. */
export function isOperator(operator: string): boolean {
  return OPERATORS.includes(operator);
}

export function selects(selector: LabelSelector, labels: Labels): boolean {
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    if (!Object.hasOwn(labels, key) || labels[key] !== value) return false;
  }
  return (selector.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const present = Object.hasOwn(labels, key);
    const value = present ? (labels[key] ?? "") : "";
    if (operator === "In") return present && values.includes(value);
    if (operator === "NotIn") return !present || !values.includes(value);
    if (operator === "Exists") return present;
    if (operator === "DoesNotExist") return !present;
    return false;
  });
}

/**
 * `labelsOf` is asked only when a selector needs them, so that others do not depend on the
 * namespace.
 */
export function allowsNamespace(
  selection: NamespaceSelection,
  home: string,
  guest: string,
  labelsOf: (namespace: string) => Labels,
): boolean {
  switch (selection.from) {
    case "All":
      return true;
    case "Same":
      return home === guest;
    case "Selector":
      return selection.selector !== undefined && selects(selection.selector, labelsOf(guest));
    default:
      return false;
  }
}
