/** docs/reference/check-rules.md, made from the rules; a test fails when the page is stale. */
import { markdownTable } from "../../view/markdown-table.ts";
import { CHANGE_RULES, DOCUMENT_RULES, RULES } from "./rules.ts";

export function checkRulesPage(): string {
  return `${[
    "# Rules of `mergeway check`",
    "",
    "<!-- Made from the rules in src/cli/check. Refresh with: npm run docs -->",
    "",
    "Every finding has a rule, a severity, a place (file, line, column and field), an owner (the object whose author can mend it), a message and a remedy.",
    "Findings name both sides of a conflict: they are for whoever has all the manifests. `--fail-on` says from which severity on the exit code is 1.",
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
    "Errors, as an API server would refuse them; other documents of the same file still count. Unknown fields that an API server would only drop are warnings.",
    "",
    ...markdownTable([
      ["rule", ""],
      ...Object.entries(DOCUMENT_RULES).map(([id, summary]) => [`\`${id}\``, summary]),
    ]),
  ].join("\n")}\n`;
}
