/** docs/reference/cli.md, made from the command table; a test fails when the page is stale. */
import { markdownTable } from "../view/markdown-table.ts";
import { wrapProse } from "../view/wrap-prose.ts";
import type { Command } from "./foundation/command.ts";
import { EXIT_CODES, flagHelp, flagUsage, usageLine } from "./help.ts";

export function cliReferencePage(commands: readonly Command[]): string {
  return `${[
    "# Commands",
    "",
    "<!-- Made from the command table in src/cli. Refresh with: npm run docs -->",
    "",
    ...wrapProse(`${EXIT_CODES} \`NO_COLOR\` switches colours off, \`FORCE_COLOR=1\` on.
      \`SOURCE_DATE_EPOCH\` fixes the time that statuses and certificate checks use.`),
    "",
    ...markdownTable([
      ["command", "what it does"],
      ...commands.map(({ name, summary }) => [`[\`${name}\`](#mergeway-${name})`, cell(summary)]),
    ]),
    ...commands.flatMap(commandSection),
  ].join("\n")}\n`;
}

function commandSection(command: Command): string[] {
  const flags = Object.entries(command.flags);
  return [
    "",
    `## mergeway ${command.name}`,
    "",
    "```",
    usageLine(command),
    "```",
    "",
    ...wrapProse(command.about),
    ...table(
      "argument",
      command.arguments.map(({ name, help }) => [name, help]),
    ),
    ...table(
      "flag",
      flags.map(([name, flag]) => [flagUsage(name, flag), flagHelp(flag)]),
    ),
    ...table("exit code", Object.entries(command.exits)),
    "",
    "```sh",
    ...command.examples.flatMap(({ line, says }) => [`# ${says}`, line]),
    "```",
  ];
}

function table(head: string, rows: readonly (readonly [string, string])[]): string[] {
  if (rows.length === 0) return [];
  return [
    "",
    ...markdownTable([[head, ""], ...rows.map(([name, help]) => [`\`${cell(name)}\``, cell(help)])]),
  ];
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
