import { type ASTNode, Environment, Optional } from "@marcbachmann/cel-js";
import { isIpv4, isIpv6 } from "./formats.ts";
import { isDnsLabel, isDnsSubdomain, isLabelValue, isQualifiedName } from "./names.ts";
import { matcher } from "./patterns.ts";
import type { ValidationRule } from "./schema.ts";

/**
 * CEL rules of CustomResourceDefinitions, with the functions of Kubernetes that the library does
 * not have.
 *
 * Integers stay JavaScript numbers, which the library takes for CEL doubles: the rules of the
 * Gateway API only compare them, and CEL compares int and double by value. A field that may be of
 * either type is given as what it is, because its rules ask for the type.
 */

type Verdict = "holds" | "broken" | "undecidable";

export type CompiledRule = (self: unknown) => Verdict;

/**
 * Rules about the previous version of an object; they do not apply to an object that is created.
 */
export function isTransitionRule(rule: ValidationRule): boolean {
  return /\boldSelf\b/.test(rule.rule);
}

export function compileRule(rule: ValidationRule): CompiledRule {
  const program = environment.parse(adapt(rule.rule));
  const { valid, error } = program.check();
  if (!valid) throw new Error(`CEL rule of a schema cannot be used: ${rule.rule}`, { cause: error });
  return (self) => {
    try {
      return program({ self }) === true ? "holds" : "broken";
    } catch {
      // Such as a field that is absent: the API server refuses the object then, too.
      return "undecidable";
    }
  };
}

/** The same rule in the library's dialect: see the functions registered below. */
function adapt(expression: string): string {
  return expression
    .replaceAll(/\bhas\(/g, "present(")
    .replaceAll(".matches(", ".matchesRe2(")
    .replaceAll("__namespace__", "namespace");
}

class NamedFormat {
  readonly name: string;
  readonly test: (text: string) => boolean;
  constructor(name: string, test: (text: string) => boolean) {
    this.name = name;
    this.test = test;
  }
}

class FormatLibrary {}

const FORMATS: readonly NamedFormat[] = [
  new NamedFormat("dns1123Label", isDnsLabel),
  new NamedFormat("dns1123Subdomain", isDnsSubdomain),
  new NamedFormat("qualifiedName", isQualifiedName),
  new NamedFormat("labelValue", isLabelValue),
];

function createEnvironment(): Environment {
  const fresh = new Environment({ enableOptionalTypes: true })
    .registerVariable("self", "dyn")
    .registerType("NamedFormat", NamedFormat)
    .registerType("FormatLibrary", FormatLibrary)
    .registerConstant("format", "FormatLibrary", new FormatLibrary())
    .registerFunction("isIP(string): bool", (text: string) => isIpv4(text) || isIpv6(text))
    .registerFunction("string.matchesRe2(string): bool", (text: string, pattern: string) =>
      matcher(pattern)(text),
    )
    .registerFunction(
      "NamedFormat.validate(string): optional<list<string>>",
      (format: NamedFormat, text: string) =>
        format.test(text) ? Optional.none() : Optional.of([`is no ${format.name}`]),
    )
    .registerFunction("present(ast): bool", presenceMacro);
  for (const format of FORMATS) {
    fresh.registerFunction(`FormatLibrary.${format.name}(): NamedFormat`, () => format);
  }
  return fresh;
}

/**
 * `has()` of the library takes no index (`has(self[0].matches)`), and sees inherited properties.
 */
function presenceMacro({ args }: { readonly args: readonly ASTNode[] }): unknown {
  const selection = args[0];
  if (selection?.op !== ".") throw new Error("has() takes a field selection");
  const [owner, field] = selection.args as unknown as readonly [ASTNode, string];
  return {
    typeCheck(checker: Checker, _macro: unknown, context: unknown): unknown {
      checker.check(owner, context);
      return checker.getType("bool");
    },
    evaluate(evaluator: Evaluator, _macro: unknown, context: unknown): boolean {
      const value = evaluator.run(owner, context);
      if (value instanceof Map) return value.has(field);
      if (typeof value !== "object" || value === null) throw new Error(`no field ${field} in a scalar`);
      return Object.hasOwn(value, field);
    },
  };
}

interface Checker {
  check(node: ASTNode, context: unknown): unknown;
  getType(name: string): unknown;
}

interface Evaluator {
  run(node: ASTNode, context: unknown): unknown;
}

const environment: Environment = createEnvironment();

/** A copy in which objects are Maps, for values with keys such as `constructor`. */
export function asMaps(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asMaps);
  if (typeof value !== "object" || value === null) return value;
  return new Map(Object.entries(value).map(([key, field]) => [key, asMaps(field)]));
}
