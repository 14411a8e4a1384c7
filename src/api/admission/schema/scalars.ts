import { integerRange, stringFormat } from "./formats.ts";
import type { Pass } from "./pass.ts";
import { matcher, meaningOf } from "./patterns.ts";
import type { Schema } from "./schema.ts";

/**
 * Checks one value, records what is wrong with it, and returns it as the API server would store it.
 */
export type Check = (value: unknown, pass: Pass) => unknown;

export function wrongType(value: unknown, wanted: string, pass: Pass): unknown {
  pass.block("schema/type", `${pass.show(value)} is not ${wanted}`, `Write ${wanted} here.`);
  return value;
}

/** What is usually meant by a value of another type where a string should be. */
const QUOTING: Readonly<Partial<Record<string, string>>> = {
  boolean: "Put the text in quotes: YAML takes words such as yes, no, on and off for true and false.",
  number: "Put the number in quotes.",
};

function isByte(value: unknown): boolean {
  return value === null || (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 255);
}

export function compileString(schema: Schema): Check {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern, format } = schema;
  const matches = pattern === undefined ? undefined : matcher(pattern);
  const formatted = format === undefined ? undefined : stringFormat(format);
  const inEnum = compileEnum(schema);
  return (value, pass) => {
    // Go reads a list of numbers where bytes are wanted as those bytes, and null as 0.
    if (format === "byte" && Array.isArray(value) && value.every(isByte)) {
      return Buffer.from(value.map(Number)).toString("base64");
    }
    if (typeof value !== "string") {
      const remedy = QUOTING[typeof value];
      if (remedy === undefined) return wrongType(value, "a string", pass);
      pass.block("schema/type", `${pass.show(value)} is not a string`, remedy);
      return value;
    }
    if (isLongerThan(value, maxLength)) {
      pass.block(
        "schema/max-length",
        `longer than ${maxLength} characters`,
        `Use at most ${maxLength} characters.`,
      );
      return value;
    }
    if (minLength > 0 && value.length < 2 * minLength && countRunes(value) < minLength) {
      const remedy =
        minLength === 1
          ? "Give it a value, or leave the field out."
          : `Use at least ${minLength} characters.`;
      pass.fail(
        "schema/min-length",
        minLength === 1 ? "is empty" : `shorter than ${minLength} characters`,
        remedy,
      );
      return value;
    }
    inEnum?.(value, pass);
    if (matches?.(value) === false) failPattern(value, pattern ?? "", pass);
    if (formatted !== undefined && !formatted.test(value)) {
      pass.fail(
        "schema/format",
        `${pass.show(value)} is not ${formatted.meaning}`,
        `Use ${formatted.meaning}.`,
      );
    }
    return value;
  };
}

export function compileNumber(schema: Schema): Check {
  const whole = schema.type === "integer";
  const range = whole ? integerRange(schema.format) : undefined;
  const least = Math.max(
    schema.minimum ?? Number.NEGATIVE_INFINITY,
    range?.least ?? Number.NEGATIVE_INFINITY,
  );
  const most = Math.min(schema.maximum ?? Number.POSITIVE_INFINITY, range?.most ?? Number.POSITIVE_INFINITY);
  const wanted = whole ? "a whole number" : "a number";
  const inEnum = compileEnum(schema);
  return (value, pass) => {
    if (typeof value !== "number" || !Number.isFinite(value) || (whole && !Number.isInteger(value))) {
      const quoted = typeof value === "string" && /^-?\d{1,15}$/.test(value);
      if (!quoted) return wrongType(value, wanted, pass);
      pass.block("schema/type", `${pass.show(value)} is a string, not ${wanted}`, "Write it without quotes.");
      return value;
    }
    if (value < least)
      pass.fail("schema/minimum", `${value} is less than ${least}`, rangeRemedy(least, most));
    if (value > most) pass.fail("schema/maximum", `${value} is more than ${most}`, rangeRemedy(least, most));
    inEnum?.(value, pass);
    return value;
  };
}

function rangeRemedy(least: number, most: number): string {
  if (least === Number.NEGATIVE_INFINITY) return `Use a number up to ${most}.`;
  if (most === Number.POSITIVE_INFINITY) return `Use ${least} or more.`;
  return `Use a number from ${least} to ${most}.`;
}

export function compileBoolean(): Check {
  return (value, pass) => (typeof value === "boolean" ? value : wrongType(value, "true or false", pass));
}

export function compileIntOrString({ pattern }: Schema): Check {
  const matches = pattern === undefined ? undefined : matcher(pattern);
  return (value, pass) => {
    if (typeof value !== "string" && !Number.isInteger(value))
      return wrongType(value, "a whole number or a string", pass);
    if (typeof value === "string" && matches?.(value) === false) failPattern(value, pattern ?? "", pass);
    return value;
  };
}

function failPattern(value: string, pattern: string, pass: Pass): void {
  pass.fail(
    "schema/pattern",
    `${pass.show(value)} does not have the right form`,
    `Use ${meaningOf(pattern)}.`,
  );
}

function compileEnum(schema: Schema): ((value: unknown, pass: Pass) => void) | undefined {
  if (schema.enum === undefined) return undefined;
  const allowed = new Set(schema.enum);
  const list = schema.enum.map((value) => (value === "" ? '""' : String(value))).join(", ");
  return (value, pass) => {
    if (!allowed.has(value))
      pass.block("schema/enum", `${pass.show(value)} is not a possible value`, `Use one of: ${list}.`);
  };
}

/** Kubernetes counts code points, not UTF-16 units. */
function countRunes(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

function isLongerThan(text: string, limit: number): boolean {
  if (text.length <= limit) return false;
  return text.length > 2 * limit || countRunes(text) > limit;
}
