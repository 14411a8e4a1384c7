/** docs/reference/check-rules.md, made from the rules; a test fails when the page is stale. */
import { markdownTable } from "../../view/markdown-table.ts";
import { wrapProse } from "../../view/wrap-prose.ts";
import { CHANGE_RULES, DOCUMENT_RULES, RULES } from "./rule-table.ts";

export function checkRulesPage(): string {
  return `${[
    "# Rules of `mergeway check`",
    "",
    "<!-- Made from the rules in src/cli/check. Refresh with: npm run docs -->",
    "",
    ...wrapProse(`Every finding has a rule, a severity, a place (file, line, column and field), an
      owner (the object whose author can fix it), a message and a remedy. Findings name both sides
      of a conflict: they are for readers who have all the manifests. \`--fail-on\` says from which
      severity on the exit code is 1.`),
    "",
    ...markdownTable([
      ["rule", "severity", ""],
      ...RULES.map(({ id, severity, summary }) => [`\`${id}\``, severity, summary]),
    ]),
    "",
    "## With `--against`",
    "",
    ...markdownTable([
      ["rule", "severity", ""],
      ...Object.entries(CHANGE_RULES).map(([id, { severity, summary }]) => [`\`${id}\``, severity, summary]),
    ]),
    "",
    "## While reading",
    "",
    ...wrapProse(`Errors are what an API server would reject; the other documents of the same file
      still count. Unknown fields that an API server would only drop are warnings.`),
    "",
    ...markdownTable([
      ["rule", ""],
      ...Object.entries(DOCUMENT_RULES).map(([id, summary]) => [`\`${id}\``, summary]),
    ]),
  ].join("\n")}\n`;
}
