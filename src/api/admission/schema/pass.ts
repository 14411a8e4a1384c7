import { type FieldError, type FieldPath, show } from "./field-error.ts";

const MAX_ERRORS = 1000;

/** One walk over one object: where it is, and what it found. */
export class Pass {
  readonly path: (string | number)[] = [];
  readonly errors: FieldError[] = [];
  readonly warnings: FieldError[] = [];
  readonly strict: boolean;
  /** How many errors were of a kind that makes CEL rules over the same subtree meaningless. */
  blocking = 0;
  /**
   * Set when a map has a key that the CEL library cannot tell from the JavaScript property of that
   * name.
   */
  awkwardKeys = false;
  /** Set for objects that hold secrets: what is wrong with a value is told, and never the value. */
  hidesValues = false;

  constructor(strict: boolean) {
    this.strict = strict;
  }

  /** A value, for a message. */
  show(value: unknown): string {
    return this.hidesValues ? "the value" : show(value);
  }

  /** Records an error at the current place, or below it. */
  fail(rule: string, message: string, remedy: string, below: FieldPath = []): void {
    this.record(this.errors, { path: [...this.path, ...below], rule, message, remedy });
  }

  /**
   * Like {@link fail}, for errors after which CEL rules over this subtree would only repeat the
   * news.
   */
  block(rule: string, message: string, remedy: string, below: FieldPath = []): void {
    this.blocking++;
    this.fail(rule, message, remedy, below);
  }

  warn(rule: string, message: string, remedy: string, below: FieldPath = []): void {
    this.record(this.warnings, { path: [...this.path, ...below], rule, message, remedy });
  }

  unknownField(name: string, known: readonly string[]): void {
    const message = `unknown field ${JSON.stringify(name.slice(0, 80))}`;
    const close = nearest(name, known);
    const remedy = close === undefined ? "Remove it; no such field exists here." : `Did you mean ${close}?`;
    if (this.strict) this.fail("unknown-field", message, remedy, [name]);
    else this.warn("unknown-field", message, remedy, [name]);
  }

  private record(list: FieldError[], error: FieldError): void {
    if (list.length < MAX_ERRORS) list.push(error);
    else if (list.length === MAX_ERRORS) {
      list.push({
        path: [],
        rule: "too-many-errors",
        message: `more than ${MAX_ERRORS} errors in this object; the rest is not shown`,
        remedy: "Correct the errors above first.",
      });
    }
  }
}

/** The candidate that is a typing mistake away from `name`, if any. */
export function nearest(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > 64) return undefined;
  const limit = name.length < 5 ? 1 : 2;
  let best: string | undefined;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > limit) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitution, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
