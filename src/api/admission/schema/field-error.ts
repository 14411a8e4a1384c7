/** What is wrong with one field of one object, and what would be right. */
export interface FieldError {
  readonly path: FieldPath;
  /** Stable id of the rule that was broken, such as `schema/pattern` or `unknown-field`. */
  readonly rule: string;
  readonly message: string;
  readonly remedy: string;
}

export type FieldPath = readonly (string | number)[];

/**
 * `spec.listeners[0].port`; keys that are no plain field names are quoted:
 * `metadata.labels["a.b/c"]`.
 */
export function formatPath(path: FieldPath): string {
  let text = "";
  for (const segment of path) {
    if (typeof segment === "number") text += `[${segment}]`;
    else if (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(segment)) text += text === "" ? segment : `.${segment}`;
    else text += `[${JSON.stringify(segment.length > 80 ? `${segment.slice(0, 80)}…` : segment)}]`;
  }
  return text;
}

const MAX_SHOWN = 60;

/** A short rendering of any value for a message; never walks into nested values. */
export function show(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value);
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? `a list of ${value.length}` : "an object";
    case "number":
    case "boolean":
    case "bigint":
      return String(value);
    default:
      return typeof value;
  }
}
