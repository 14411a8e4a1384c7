/**
 * Regular expressions of routes (HTTPPathMatch leaves the dialect to the implementation: it is
 * RE2). Data planes do not read quite the same RE2: Envoy matches bytes (RE2's Latin-1 mode), and
 * knows fewer Unicode classes than RE2JS. What one of them would refuse is refused here, since
 * Envoy would refuse all rules of the hostname with it.
 */
import { RE2JS } from "re2js";
import { Unservable } from "./compiled.ts";
import { unicodeClasses } from "./unicode-classes.ts";

/**
 * RE2 matches in time proportional to the text times the program, so one tenant's large program
 * would slow down everybody. A short pattern with repetitions can be a large program, so both are
 * limited.
 */
const MAX_PATTERN_LENGTH = 1024;
const MAX_PROGRAM_SIZE = 500;

export function checkedPattern(pattern: string, what: string): Unservable | undefined {
  const problem = patternProblem(pattern);
  return problem === undefined
    ? undefined
    : new Unservable("UnsupportedValue", `the regular expression for ${what} ${problem}`);
}

function patternProblem(pattern: string): string | undefined {
  if (pattern === "") return "is empty";
  if (pattern.length > MAX_PATTERN_LENGTH) return `is longer than ${MAX_PATTERN_LENGTH} characters`;
  try {
    const size = RE2JS.compile(pattern).programSize();
    if (size > MAX_PROGRAM_SIZE)
      return `is too large: ${size} instructions, at most ${MAX_PROGRAM_SIZE}; shorten its repetitions`;
  } catch (error) {
    return `is not valid RE2: ${error instanceof Error ? error.message : String(error)}`;
  }
  return escapeProblem(pattern);
}

/**
 * Quoted text, which contains no escapes; a class; a character by its number; any other escape. The
 * last one consumes its second character, so that it cannot begin another escape.
 */
const escapes =
  /\\Q.*?(?:\\E|$)|\\[pP](?:\{\^?(?<name>[^}]*)\}|(?<letter>.))|\\x(?:\{(?<long>[0-9A-Fa-f]*)\}|[0-9A-Fa-f]{2})|\\(?<octal>[0-7]{1,3})|\\./gs;
const LARGEST_BYTE = 0xff;

function escapeProblem(pattern: string): string | undefined {
  for (const { 0: text, groups = {} } of pattern.matchAll(escapes)) {
    const { long, octal } = groups;
    const name = groups["name"] ?? groups["letter"];
    if (name !== undefined && !unicodeClasses.has(name))
      return `has a class that not every data plane knows: ${text}`;
    const code = long === undefined ? Number.parseInt(octal ?? "0", 8) : Number.parseInt(long, 16);
    if (code > LARGEST_BYTE) return `names a character that cannot stand in a request: ${text}`;
  }
  return undefined;
}
