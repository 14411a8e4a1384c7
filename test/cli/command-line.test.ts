import { describe, expect, test } from "vitest";
import { parseCommandLine } from "../../src/cli/command-line.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { type Command, defineCommand } from "../../src/cli/foundation/command.ts";
import { suggestion } from "../../src/cli/suggestion.ts";

const brew: Command = defineCommand({
  name: "brew",
  summary: "brew",
  about: "",
  arguments: [{ name: "BEAN", help: "what to brew", count: "some" }],
  flags: {
    strength: { type: "choice", short: "s", values: ["weak", "strong"], default: "strong", help: "how" },
    cups: { type: "number", value: "N", default: 2, min: 1, max: 12, help: "how many" },
    milk: { type: "switch", help: "with milk" },
    with: { type: "list", value: "THING", help: "something beside" },
    name: { type: "text", value: "NAME", bare: "nobody", help: "for whom" },
  },
  examples: [],
  exits: {},
  run: async () => 0,
});

function parse(...words: string[]): unknown {
  return parseCommandLine([brew], words);
}

describe("the parser of command lines", () => {
  test("fills in defaults", () => {
    expect(parse("brew", "arabica")).toMatchObject({
      args: ["arabica"],
      flags: { strength: "strong", cups: 2, milk: false, with: [] },
    });
  });

  test("accepts flags before, between and after arguments, in every spelling", () => {
    expect(
      parse("brew", "--milk", "a", "-s", "weak", "b", "--cups=3", "--with", "x", "--with", "y"),
    ).toMatchObject({
      args: ["a", "b"],
      flags: { milk: true, strength: "weak", cups: 3, with: ["x", "y"] },
    });
  });

  test("takes everything after -- as an argument", () => {
    expect(parse("brew", "--", "--milk", "--help")).toMatchObject({
      args: ["--milk", "--help"],
      flags: { milk: false },
    });
  });

  test.each([
    [["brew", "a", "--name"], "nobody"],
    [["brew", "a", "--name", "--milk"], "nobody"],
    [["brew", "a", "--name", "me"], "me"],
    [["brew", "a", "--name=me"], "me"],
    [["brew", "--name", "http://a"], "nobody"],
  ])("reads a flag with an optional value from %j as %s", (words, name) => {
    expect(parse(...words)).toMatchObject({ flags: { name } });
  });

  test.each([
    [["brew", "a", "--strenth", "weak"], /unknown flag --strenth; did you mean --strength\?/],
    [["brew", "a", "--cups", "0"], /--cups cannot be "0"/],
    [["brew", "a", "--cups", "2.5"], /--cups cannot be "2.5"/],
    [["brew", "a", "--cups", "many"], /--cups cannot be "many"/],
    [["brew", "a", "--strength", "strog"], /--strength cannot be "strog"; did you mean strong\?/],
    [["brew", "a", "--milk=yes"], /--milk takes no value/],
    [["brew", "a", "--cups"], /--cups needs a value/],
    [["brew"], /brew: needs BEAN: what to brew/],
    [["brwe"], /unknown command brwe; did you mean brew\?/],
    [["--milk"], /unknown flag --milk/],
  ])("rejects %j with a helpful message", (words, message) => {
    expect(() => parse(...words)).toThrow(message);
  });

  test.each([[["brew", "--help"]], [["brew", "a", "-h", "--nonsense"]], [["help", "brew"]]])(
    "takes %j as a request for help",
    (words) => {
      expect(parse(...words)).toEqual({ type: "help", command: brew });
    },
  );

  test.each([[[]], [["--help"]], [["help"]]])("takes %j as a request for the list of commands", (words) => {
    expect(parse(...words)).toEqual({ type: "help", command: undefined });
  });
});

test("a suggestion is close to what was written, or there is none", () => {
  expect(suggestion("--foramt", ["--format", "--output"])).toBe("--format");
  expect(suggestion("stat", ["status", "start-all"])).toBe("status");
  expect(suggestion("--zzzzzz", ["--format", "--output"])).toBeUndefined();
});

test("every command of the table is complete and its examples are accepted", () => {
  for (const command of COMMANDS) {
    expect(command.summary, command.name).toMatch(/^[a-z].*[^.]$/);
    expect(command.examples.length, command.name).toBeGreaterThan(0);
    expect(Object.keys(command.exits).length, command.name).toBeGreaterThan(1);
    for (const { line } of command.examples) {
      const words = /mergeway (.*?)( [>|].*|\)|$)/.exec(line)?.[1];
      if (words === undefined) throw new Error(`no mergeway in ${line}`);
      const parsed = words.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", "")) ?? [];
      expect(parseCommandLine(COMMANDS, parsed), line).toMatchObject({
        type: "run",
        command: { name: command.name },
      });
    }
  }
});
