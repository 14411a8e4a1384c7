import { valueName } from "./command-line.ts";
import type { Argument, Command, Flag } from "./foundation/command.ts";
import type { Terminal } from "./foundation/terminal.ts";
import { columns } from "./foundation/text-table.ts";

export const EXIT_CODES = "Exit codes: 0 all well, 1 it ran and found something, 2 it could not run.";

export function programHelp(commands: readonly Command[], { style }: Terminal): string {
  return [
    "mergeway: one Gateway, many teams",
    "",
    `${style("bold", "Usage")}  mergeway COMMAND [ARGUMENTS] [FLAGS]`,
    "",
    style("bold", "Commands"),
    ...indented(columns(commands.map(({ name, summary }) => [name, summary]))),
    "",
    style("bold", "Flags"),
    ...indented(
      columns([
        ["-h, --help", "help of the program or of a command"],
        ["-V, --version", "the version"],
      ]),
    ),
    "",
    EXIT_CODES,
    "`mergeway COMMAND --help` tells more, with examples.\n",
  ].join("\n");
}

export function commandHelp(command: Command, { style }: Terminal): string {
  const flags = Object.entries(command.flags);
  return [
    `mergeway ${command.name}: ${command.summary}`,
    "",
    `${style("bold", "Usage")}  ${usageLine(command)}`,
    "",
    command.about,
    ...section(
      style("bold", "Arguments"),
      command.arguments.map(({ name, help }) => [name, help]),
    ),
    ...section(style("bold", "Flags"), [
      ...flags.map(([name, flag]): [string, string] => [flagUsage(name, flag), flagHelp(flag)]),
      ["-h, --help", "this text"],
    ]),
    "",
    style("bold", "Examples"),
    ...command.examples.flatMap(({ line, says }) => [`  ${style("dim", `# ${says}`)}`, `  ${line}`]),
    ...section(
      style("bold", "Exit codes"),
      Object.entries(command.exits).map(([code, meaning]) => [code, meaning]),
    ),
  ]
    .join("\n")
    .concat("\n");
}

export function usageLine(command: Command): string {
  const flags = Object.keys(command.flags).length > 0 ? ["[FLAGS]"] : [];
  return ["mergeway", command.name, ...command.arguments.map(argumentUsage), ...flags].join(" ");
}

function argumentUsage({ name, count }: Argument): string {
  return { one: name, some: `${name}…`, any: `[${name}…]` }[count];
}

export function flagUsage(name: string, flag: Flag): string {
  const value = valueName(flag);
  const written = flag.type === "text" && flag.bare !== undefined ? `[=${value}]` : ` ${value}`;
  const short = flag.short === undefined ? "" : `-${flag.short}, `;
  return `${short}--${name}${value === "" ? "" : written}`;
}

export function flagHelp(flag: Flag): string {
  const fallback =
    (flag.type === "text" || flag.type === "number" || flag.type === "choice") && flag.default !== undefined
      ? ` (default ${flag.default})`
      : "";
  return `${flag.help}${flag.type === "list" ? "; may be repeated" : ""}${fallback}`;
}

function section(title: string, rows: readonly (readonly [string, string])[]): string[] {
  return rows.length === 0 ? [] : ["", title, ...indented(columns(rows))];
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}
