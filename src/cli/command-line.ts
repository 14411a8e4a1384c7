/**
 * Parses a command line against the command table. Throws `CannotRun` with a message that says what
 * is wrong.
 */
import { parseArgs } from "node:util";
import {
  CannotRun,
  type ChoiceFlag,
  type Command,
  type Flag,
  type NumberFlag,
} from "./foundation/command.ts";
import { suggestion } from "./suggestion.ts";

export type Request =
  | { readonly type: "help"; readonly command: Command | undefined }
  | { readonly type: "version" }
  | {
      readonly type: "run";
      readonly command: Command;
      readonly args: readonly string[];
      readonly flags: Readonly<Record<string, unknown>>;
    };

const HELP = new Set(["--help", "-h"]);

export function parseCommandLine(commands: readonly Command[], argv: readonly string[]): Request {
  const [first, ...rest] = argv;
  if (first === undefined || HELP.has(first)) return { type: "help", command: undefined };
  if (first === "--version" || first === "-V" || first === "version") return { type: "version" };
  if (first === "help")
    return { type: "help", command: rest[0] === undefined ? undefined : find(commands, rest[0]) };
  if (first.startsWith("-")) {
    throw new CannotRun(
      `unknown flag ${first}`,
      "Name a command first: mergeway COMMAND [FLAGS]. `mergeway --help` lists them.",
    );
  }
  const command = find(commands, first);
  const end = rest.indexOf("--");
  if (rest.slice(0, end < 0 ? undefined : end).some((word) => HELP.has(word)))
    return { type: "help", command };
  return parseCommand(command, rest);
}

function find(commands: readonly Command[], name: string): Command {
  const command = commands.find((candidate) => candidate.name === name);
  if (command !== undefined) return command;
  const near = suggestion(
    name,
    commands.map((candidate) => candidate.name),
  );
  throw new CannotRun(
    `unknown command ${name}${near === undefined ? "" : `; did you mean ${near}?`}`,
    "`mergeway --help` lists the commands.",
  );
}

function parseCommand(command: Command, words: readonly string[]): Request {
  const { tokens } = parseArgs({
    args: withBareValues(command, words),
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries(
      Object.entries(command.flags).map(([name, { type, short }]) => [
        name,
        { type: type === "switch" ? "boolean" : "string", ...(short === undefined ? {} : { short }) },
      ]),
    ),
  });
  const values: Record<string, unknown> = {};
  const args: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") args.push(token.value);
    if (token.kind !== "option") continue;
    const flag = command.flags[token.name];
    if (flag === undefined) throw unknownFlag(command, token.rawName);
    values[token.name] = readValue(command, { ...token, flag, before: values[token.name] });
  }
  for (const [name, flag] of Object.entries(command.flags)) values[name] ??= defaultOf(flag);
  checkArguments(command, args);
  return { type: "run", command, args, flags: values };
}

/**
 * Writes out the value of a `bare` flag that has none: `parseArgs` would take the next word for its
 * value.
 */
function withBareValues(command: Command, words: readonly string[]): string[] {
  return words.map((word, index) => {
    const flag = word.startsWith("--") ? command.flags[word.slice(2)] : undefined;
    if (flag?.type !== "text" || flag.bare === undefined) return word;
    const next = words[index + 1];
    return next === undefined || next.startsWith("-") || next.includes("://") ? `${word}=${flag.bare}` : word;
  });
}

interface GivenFlag {
  readonly flag: Flag;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly before: unknown;
}

function readValue(command: Command, { flag, rawName, value, before }: GivenFlag): unknown {
  if (flag.type === "switch") {
    if (value === undefined) return true;
    throw misuse(command, `${rawName} takes no value`, `Write ${rawName} alone.`);
  }
  if (value === undefined)
    throw misuse(command, `${rawName} needs a value`, `Write ${rawName} ${valueName(flag)}.`);
  switch (flag.type) {
    case "text":
      return value;
    case "list":
      return [...((before as string[] | undefined) ?? []), value];
    case "choice":
      return readChoice(command, flag, rawName, value);
    case "number":
      return readNumber(command, flag, rawName, value);
  }
}

function readChoice(command: Command, flag: ChoiceFlag, rawName: string, value: string): string {
  if (flag.values.includes(value)) return value;
  const near = suggestion(value, flag.values);
  throw misuse(
    command,
    `${rawName} cannot be ${JSON.stringify(value)}${near === undefined ? "" : `; did you mean ${near}?`}`,
    `Use one of ${flag.values.join(", ")}.`,
  );
}

function readNumber(command: Command, { min, max }: NumberFlag, rawName: string, value: string): number {
  const number = Number(value);
  if (value.trim() !== "" && Number.isInteger(number) && number >= min && number <= max) return number;
  throw misuse(
    command,
    `${rawName} cannot be ${JSON.stringify(value)}`,
    `Use a whole number from ${min} to ${max}.`,
  );
}

function defaultOf(flag: Flag): unknown {
  switch (flag.type) {
    case "switch":
      return false;
    case "list":
      return [];
    default:
      return flag.default;
  }
}

export function valueName(flag: Flag): string {
  if (flag.type === "switch") return "";
  return flag.type === "choice" ? flag.values.join("|") : flag.value;
}

function unknownFlag(command: Command, written: string): CannotRun {
  const names = Object.keys(command.flags).map((name) => `--${name}`);
  const near = suggestion(written, [...names, "--help"]);
  return misuse(
    command,
    `unknown flag ${written}${near === undefined ? "" : `; did you mean ${near}?`}`,
    `\`mergeway ${command.name} --help\` lists the flags.`,
  );
}

function checkArguments(command: Command, args: readonly string[]): void {
  const wanted = command.arguments[0];
  const usage = `\`mergeway ${command.name} --help\` shows how it is used.`;
  if (wanted === undefined || wanted.count === "one") {
    const extra = args[wanted === undefined ? 0 : 1];
    if (extra !== undefined)
      throw misuse(command, `does not know what to do with ${JSON.stringify(extra)}`, usage);
  }
  if (wanted !== undefined && wanted.count !== "any" && args.length === 0) {
    throw misuse(command, `needs ${wanted.name}: ${wanted.help}`, usage);
  }
}

function misuse(command: Command, message: string, remedy: string): CannotRun {
  return new CannotRun(`${command.name}: ${message}`, remedy);
}
